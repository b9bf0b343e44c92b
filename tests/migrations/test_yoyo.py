"""The command `yoyo` installs, lists and removes rowq: by yoyo's own backends, and by rowq's."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from yoyo import read_migrations
from yoyo.connections import parse_uri
from yoyo.scripts.main import main

import rowq
from rowq.contrib import yoyo as backend
from rowq.contrib.yoyo import url_of
from rowq.engines import engines
from rowq.tools import migrate
from rowq.tools.migrate.frozen import migration_files
from sql.generate.release import release
from tests.engines.base import Server
from tests.helpers.one_message import leave_message, works
from tests.helpers.releases import (
    BACK,
    EVERY,
    NEWEST,
    change_everything,
    copied_without_history,
    use_released,
)
from tests.static.sources import ENGINES, MIGRATIONS, ROOT

STOCK = {"postgres": "postgresql+psycopg", "mysql": "mysql"}
"""The scheme of yoyo's backend, by engine; there is none for the others."""
SCHEMES = {engine.name: engine.schemes[0] for engine in engines()}
BACKENDS = ("yoyo's backend", "rowq's backend")
SHOP = """
import rowq
from yoyo import step

__depends__ = {{"{first}"}}

step(
    lambda connection: rowq.Queue(connection).create_queue("orders"),
    lambda connection: rowq.Queue(connection).drop_queue("orders"),
)
"""

Yoyo = Callable[..., str]


def entry_points() -> dict[str, str]:
    """Return the backends that the package declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, str] = project["entry-points"]["yoyo.backends"]
    return found


@pytest.fixture
def yoyo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Yoyo:
    """Return a function that runs the command in an empty folder, and returns its output."""
    metadata = tmp_path / "rowq-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: rowq\nVersion: 0\n", encoding="utf-8")
    lines = "".join(f"{name} = {place}\n" for name, place in entry_points().items())
    (metadata / "entry_points.txt").write_text(f"[yoyo.backends]\n{lines}", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> str:
        capsys.readouterr()
        assert main(list(map(str, words))) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture(params=BACKENDS)
def database(request: pytest.FixtureRequest, server: Server, empty_database: str) -> str:
    """Return the option --database for an empty database."""
    if request.param == BACKENDS[1]:
        return f"--database=rowq+{empty_database}"
    return stock(server, empty_database)


def stock(server: Server, url: str) -> str:
    """Return the option --database for yoyo's own backend."""
    if server.engine not in STOCK:
        pytest.skip("yoyo has no backend that works; to run it: --engine postgres18,mariadb11.8")
    if server.engine == "mysql":
        url = url.partition("?")[
            0
        ]  # yoyo passes parameters to PyMySQL, which names them otherwise.
    return f"--database={STOCK[server.engine]}{url[url.index('://') :]}"


def listed(output: str) -> list[tuple[str, str]]:
    """Return status and id of each line of `yoyo list`."""
    return [(status, name) for status, name, _ in map(str.split, output.splitlines()[2:])]


def all_as(server: Server, status: str) -> list[tuple[str, str]]:
    """Return what `yoyo list` says of rowq's migrations."""
    return [(status, path.stem) for path in migration_files(MIGRATIONS / server.engine)]


def test_yoyo_applies_lists_and_rolls_back(
    server: Server, empty_database: str, database: str, yoyo: Yoyo
) -> None:
    folder = MIGRATIONS / server.engine
    assert listed(yoyo("list", database, folder)) == all_as(server, "U")
    yoyo("apply", database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "A")
    found = migrate.status(empty_database)
    assert (found.installed, found.pending, found.drift) == (NEWEST, (), ())
    assert migrate.migrate(empty_database).applied == ()
    works(empty_database)
    yoyo("apply", database, folder)

    with rowq.connect(empty_database) as queue:
        queue.drop_queue("orders")
    yoyo("rollback", "--all", database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "U")
    assert migrate.status(empty_database).installed == 0
    yoyo("apply", database, folder)
    assert migrate.status(empty_database).installed == NEWEST


@pytest.mark.parametrize("words", [[], ["--force"]], ids=["rollback", "with --force"])
def test_yoyo_rollback_refuses_to_delete_messages(
    words: list[str], server: Server, empty_database: str, database: str, yoyo: Yoyo
) -> None:
    folder = MIGRATIONS / server.engine
    yoyo("apply", database, folder)
    leave_message(empty_database, "ready")
    with pytest.raises(migrate.MessagesLeft, match="RQ805 messages_left"):
        yoyo("rollback", "--all", *words, database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "A")
    with rowq.connect(empty_database) as queue:
        assert queue.dequeue_fast("orders")[0].data == 1


def test_yoyo_follows_migrate_and_rollback(
    server: Server, empty_database: str, database: str, yoyo: Yoyo
) -> None:
    folder = MIGRATIONS / server.engine
    assert migrate.migrate(empty_database).applied == EVERY
    leave_message(empty_database, "ready")
    yoyo("apply", database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "A")

    migrate.rollback(empty_database, to=0, force=True)
    yoyo("rollback", "--all", database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "U")
    yoyo("apply", database, folder)
    assert migrate.status(empty_database).installed == NEWEST


def test_yoyo_applies_and_rolls_back_a_second_migration(
    server: Server,
    empty_database: str,
    database: str,
    yoyo: Yoyo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = use_released(copied_without_history(tmp_path, server.engine), monkeypatch)
    change_everything(folder)
    first, second = (path.stem for path in migration_files(folder))
    # A database that `rowq migrate` has upgraded is recorded, not refused as newer.
    migrate.migrate(empty_database)
    yoyo("apply", database, folder)
    with pytest.raises(migrate.SchemaNewer, match="RQ804"):
        yoyo("rollback", "--match", first, database, folder)
    yoyo("rollback", database, folder)
    assert listed(yoyo("list", database, folder)) == [("A", first), ("U", second)]
    assert migrate.status(empty_database).installed == 1
    leave_message(empty_database, "ready")
    yoyo("apply", database, folder)
    found = migrate.status(empty_database)
    assert (found.installed, found.drift) == (2, ())
    with pytest.raises(migrate.MessagesLeft):
        yoyo("rollback", "--all", database, folder)
    assert migrate.status(empty_database).installed == 1


def test_own_migration_depends_on_rowqs(
    server: Server, empty_database: str, yoyo: Yoyo, tmp_path: Path
) -> None:
    folder = MIGRATIONS / server.engine
    first, shop = migration_files(folder)[0].stem, tmp_path / "shop"
    shop.mkdir()
    (shop / "0001-orders.py").write_text(SHOP.format(first=first), encoding="utf-8")
    # yoyo.ini reads % as the start of a name.
    option, _, url = stock(server, empty_database).replace("%", "%%").partition("=")
    lines = f"[DEFAULT]\nsources = {folder} %(here)s/shop\n{option[2:]} = {url}\n"
    (tmp_path / "yoyo.ini").write_text(lines, encoding="utf-8")
    yoyo("apply")
    assert listed(yoyo("list")) == [*all_as(server, "A"), ("A", "0001-orders")]
    with rowq.connect(empty_database) as queue:
        queue.enqueue("orders", 1)
        queue.purge_queue("orders")
    yoyo("rollback", "--revision", first)
    assert listed(yoyo("list")) == [*all_as(server, "U"), ("U", "0001-orders")]
    assert migrate.status(empty_database).installed == 0


def test_rowqs_backend_refuses_other_migrations(
    server: Server, empty_database: str, yoyo: Yoyo, tmp_path: Path
) -> None:
    (tmp_path / "0001-shop.sql").write_text("select 1", encoding="utf-8")
    database = f"--database=rowq+{empty_database}"
    with pytest.raises(migrate.UnknownMigration, match="only, got 0001-shop"):
        yoyo("apply", database, tmp_path)
    for command in ("mark", "unmark"):
        with pytest.raises(migrate.MigrationError, match="cannot mark"):
            yoyo(command, "--all", database, MIGRATIONS / server.engine)
    assert migrate.status(empty_database).installed == 0
    yoyo("break-lock", database)


def test_psycopg2_applies_and_refuses_a_rollback(
    server: Server, empty_database: str, yoyo: Yoyo
) -> None:
    if server.engine != "postgres":
        pytest.skip("the driver is PostgreSQL's; to run it: --engine postgres18")
    database, folder = f"--database={empty_database}", MIGRATIONS / "postgres"
    yoyo("apply", database, folder)
    leave_message(empty_database, "ready")
    with pytest.raises(migrate.MessagesLeft):
        yoyo("rollback", "--force", database, folder)
    migrate.rollback(empty_database, to=0, force=True)
    yoyo("rollback", database, folder)
    assert listed(yoyo("list", database, folder)) == all_as(server, "U")


@pytest.mark.parametrize("engine", ENGINES)
def test_yoyo_takes_only_migrations_for_migrations(engine: str, tmp_path: Path) -> None:
    folder = copied_without_history(tmp_path, engine)
    release(folder)
    for each in (MIGRATIONS / engine, folder):
        read = [Path(migration.path) for migration in read_migrations(str(each))]
        assert read == migration_files(each)


def test_every_scheme_of_rowq_has_a_backend_of_yoyo() -> None:
    schemes = {scheme for engine in engines() for scheme in engine.schemes}
    assert entry_points().keys() == {f"rowq+{scheme}" for scheme in schemes}


@pytest.mark.parametrize("engine", ENGINES)
def test_rowqs_backend_calls_the_installer(
    engine: str, yoyo: Yoyo, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{SCHEMES[engine]}://user:p%40ss@[::1]:1234/name?connect_timeout=3"
    ids = [path.stem for path in migration_files(MIGRATIONS / engine)]
    calls: list[tuple[str, int | None]] = []

    def record(url: str, to: int) -> migrate.Migrated:
        calls.append((url, to))
        return migrate.Migrated((), (), to, ())

    def plan(_url: str, to: int) -> migrate.Plan:
        return migrate.Plan(to + 1, to, (to + 1,), migrate.Losses())

    for name, call in (("migrate", record), ("rollback", record), ("plan_rollback", plan)):
        monkeypatch.setattr(backend, name, call)
    database, folder = f"--database=rowq+{url}", MIGRATIONS / engine
    monkeypatch.setattr(backend, "installed_ids", lambda _url: ids[:0])
    yoyo("apply", database, folder)
    assert calls == [(url, number) for number in EVERY]
    monkeypatch.setattr(backend, "installed_ids", lambda _url: ids)
    assert listed(yoyo("list", database, folder)) == [("A", name) for name in ids]
    yoyo("rollback", "--all", database, folder)
    assert calls[NEWEST:] == [(url, number - 1) for number in BACK]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:///name?host=%2Frun%2Fpostgresql&options=-c%20a%3Db",
        "postgresql://host",
        "mariadb://user:p%2Fss@host/",
    ],
)
def test_url_survives_yoyo(url: str) -> None:
    assert url_of(parse_uri(f"rowq+{url}")).rstrip("/") == url.rstrip("/")
