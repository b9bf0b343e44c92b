"""Microsoft's parser and model accept the T-SQL, and find planted faults."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from rowq.tools import migrate
from rowq.tools.engines.sqlserver.doctor import CHECKS
from rowq.tools.engines.sqlserver.script import BOOKKEEPING, SCRIPT
from rowq.tools.migrate.frozen import files_after
from rowq.tools.migrate.release import read_release, release_for
from sql.generate.release import release
from tests.helpers.releases import change_everything, copied_without_history
from tests.static.required import need
from tests.static.sources import migration_scripts
from tests.static.tsql import faults, gate, tools

pytestmark = pytest.mark.slow("Microsoft's parser and model read all files")

SAMPLE = gate.script(Path(gate.__file__).with_name("sample.sql"))
PLANTED = [
    *faults.SYNTAX,
    *faults.NAMES,
    *faults.COUNTS_AND_ARGUMENTS,
    *faults.COLLATIONS,
    *faults.HINTS_AND_NUMBERS,
]
REQUIRED = "ROWQ_REQUIRE_TSQL"


@pytest.fixture(scope="module", autouse=True)
def _gate() -> None:
    need(tools.missing(), REQUIRED)


@pytest.fixture(scope="module")
def found() -> list[list[gate.Problem]]:
    """Return the gate's findings in each text with one fault."""
    texts = [SAMPLE.text.replace(right, wrong, 1) for right, wrong in PLANTED]
    return gate.check_each([[gate.Script(SAMPLE.name, text)] for text in texts], [SAMPLE.name])


def test_correct_text_passes() -> None:
    assert gate.check([SAMPLE]) == []


@pytest.mark.slow("Microsoft's model reads all files once more", ci=False)
@pytest.mark.pitfall("sqlserver 40")
@pytest.mark.parametrize("place", range(len(PLANTED)), ids=lambda place: PLANTED[place][1][:40])
def test_planted_fault_is_found_near_its_line(place: int, found: list[list[gate.Problem]]) -> None:
    right, _ = PLANTED[place]
    assert right in SAMPLE.text
    assert found[place], "not found"
    line = SAMPLE.text[: SAMPLE.text.index(right)].count("\n") + 1
    assert min(abs(problem.line - line) for problem in found[place]) <= 9, found[place]


def product_and_migrations() -> list[gate.Script]:
    """Return every file, and the statements of migrations, which use their names."""
    first = release_for("sqlserver").get(1)
    records = [
        text for what in ("apply", "rollback") for text, _ in BOOKKEEPING.records(first, what)
    ]
    scripts = [gate.script(path) for path in migration_scripts("sqlserver")]
    assert scripts
    assert len(records) == 4
    return [
        *gate.product(),
        gate.script(gate.SOURCES / "install.sql"),
        *scripts,
        *named("record", (text.replace("?", "N'x'") for text in records)),
    ]


def there_and_back() -> list[gate.Script]:
    """Return the script for sqlcmd and its undo script."""
    release_now = release_for("sqlserver")
    undone = SCRIPT.flyway("back", SCRIPT.undone(release_now, release_now.get(1)))
    assert "RQ805" in undone
    return [gate.Script("up", migrate.script("sqlserver")), gate.Script("down", undone)]


def asked_by_doctor() -> list[gate.Script]:
    """Return the doctor's queries."""
    texts = [CHECKS.now, CHECKS.version, *(setting.query for setting in CHECKS.settings)]
    texts += [text for text in (CHECKS.before, CHECKS.after) if text is not None]
    return named("doctor", texts)


def run_by_a_worker() -> list[gate.Script]:
    """Return the statements of a worker's transaction, none without unixODBC."""
    try:
        from rowq.worker.engines import sqlserver as work
    except ImportError:
        return []
    texts = [work._BEGIN, work._KEEP, work._UNDO, work._CLOSE, work._REOPEN]
    return named("worker", (text.format(opened=1) for text in texts))


def named(name: str, texts: Iterable[str]) -> list[gate.Script]:
    """Return statements as scripts."""
    return [gate.Script(f"{name} {number}", text) for number, text in enumerate(texts)]


DATABASES = (product_and_migrations, there_and_back, asked_by_doctor, run_by_a_worker)
"""Functions that return the scripts of one database each."""


@pytest.fixture(scope="module")
def judged() -> dict[str, list[gate.Problem]]:
    """Return the gate's findings in each database, from one run."""
    databases = [scripts_of() for scripts_of in DATABASES]
    names = [script.name for database in databases for script in database]
    found = gate.check_each(databases, names)
    return dict(zip((of.__name__ for of in DATABASES), found, strict=True))


@pytest.mark.parametrize("database", DATABASES, ids=lambda database: database.__name__)
def test_sql_sent_to_sql_server_passes(
    database: Callable[[], list[gate.Script]], judged: dict[str, list[gate.Problem]]
) -> None:
    if not database():
        pytest.skip("no unixODBC; to run it: apt-get install unixodbc")
    problems = judged[database.__name__]
    assert not problems, "\n".join(map(str, problems))


@pytest.mark.slow("Microsoft's model reads all files once more", ci=False)
def test_scripts_of_two_releases_pass(tmp_path: Path) -> None:
    migrations = copied_without_history(tmp_path, "sqlserver")
    release(migrations)
    change_everything(migrations)
    release(migrations)
    texts = read_release(migrations)
    first, second = (gate.Script(f"release {number}", texts.script(number)) for number in (1, 2))
    assert "InternalSecond" not in first.text
    assert "InternalSecond" in second.text
    # The model allows each name once: leave out the files that the second migration replaces.
    there = [
        gate.Script(name, text)
        for name, text in files_after(migrations, 1).items()
        if f"-- [file {name}]\n" not in second.text
    ]
    found = gate.check_each([[first], [*there, second]], [first.name, second.name])
    assert found == [[], []]
