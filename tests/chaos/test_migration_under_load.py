"""rowq is upgraded and rolled back while ten sessions work; nothing is lost."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from rowq.tools.migrate import migrate, rollback, status
from rowq.tools.migrate.errors import MigrationBusy
from rowq.tools.migrate.frozen import Section, files_after, joined, script_of, split
from rowq.tools.migrate.sources import file_units, has_units, read, sources, sources_of
from sql.generate.release import release
from tests.chaos.features import Features
from tests.chaos.killable import KillableServer
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import count, perform
from tests.dice import dice, limit, times
from tests.helpers.releases import (
    COLUMN,
    begin_next,
    change_sources,
    copied,
    use_released,
)

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("genuine"),
    pytest.mark.timeout(limit(900)),
]

MESSAGES = 2000
_BUSIEST = {f"routines/{name}.sql" for name in ("enqueue_batch", "dequeue_fast", "complete")}
_PRODUCER = "packages/rowq_produce_body.sql"
"""The package that producers call on Oracle; it names no version, but is recreated."""
_TRIES = {"postgres": 1, "mysql": 1, "sqlserver": 20, "oracle": 20}
"""Maximum attempts to change a table that is in use."""
ANNOUNCED: dict[str, tuple[str, ...]] = {
    "postgres": (),
    # A deadlock rolls back the caller's whole transaction.
    "mysql": (r"\b1213\b",),
    "sqlserver": (),
    "oracle": (),
}
"""By engine, documented errors that callers may get during a migration."""
Numbers = tuple[int, ...]


@pytest.fixture
def next_release(
    killable: KillableServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Return the release before a made-up one with a column, a helper and changed routines.

    The database is not migrated yet.
    """
    engine = killable.server.engine
    before = status(url).installed
    migrations = use_released(copied(tmp_path, engine), monkeypatch)
    change_sources(migrations)
    _change_some_routines(sources_of(migrations))
    migration = begin_next(migrations, "next", statement=COLUMN[engine])
    if engine == "oracle":
        release(migrations)
        _recreate(script_of(migration), _PRODUCER, files_after(migrations, before)[_PRODUCER])
    return before


def _recreate(script: Path, name: str, text: str) -> None:
    """Insert a file into a script before the check that all has compiled."""
    head, parts = split(read(script))
    position = [part.name for part in parts].index("compiled.sql")
    parts.insert(position, Section("file", name, text))
    script.write_text(joined(head, parts), encoding="utf-8")


def _change_some_routines(folder: Path) -> None:
    """Change the headers of some routines; Oracle's packages contain them all."""
    there = [name for name in sources(folder) if name.startswith(("internal/", "routines/"))]
    drawn = set(dice("migration").sample(there, min(times(10), len(there)))) | _BUSIEST
    for part in ("internal", "routines"):
        for path in sorted((folder / part).glob("*.sql")):
            text = path.read_text(encoding="utf-8")
            relative = path.relative_to(folder).as_posix()
            made = file_units(relative, text) if has_units(relative) else {relative: text}
            for name in drawn & made.keys():
                _, begin, purpose = made[name].partition("-- purpose ")
                line = f"{begin}{purpose.partition(chr(10))[0]}\n"
                assert text.count(line) >= 1, name
                text = text.replace(line, f"{line}--           Changed.\n")
            path.write_text(text, encoding="utf-8")


def work_during(
    killable: KillableServer,
    url: str,
    folder: Path,
    changes: Callable[[], None],
    messages: int = MESSAGES,
) -> None:
    """Let sessions work while `changes` runs; they may get documented retryable errors.

    Ten use one queue with groups and results, others use all other features.
    """
    with rowq.connect(url) as queue:
        queue.create_queue(
            "orders",
            backoff_base_seconds=0,
            max_attempts=10_000,
            archive_days=7,
            result_seconds=31_536_000,
        )
    run = Run(
        killable.server,
        url,
        "orders",
        Recorder(),
        groups=10,
        has_results=True,
        may_be_retried=True,
    )
    features = Features(run)

    def start() -> None:
        features.start()
        changes()

    history = perform(run, times(messages), folder, start)
    assert features.judge() == []
    print(features.summary(), f"failed calls: {len(run.retried)}", Counter(run.retried))
    assert count(history, "enqueue") >= messages
    announced = re.compile("|".join(ANNOUNCED[killable.server.engine]) or r"(?!)")
    assert [text for text in run.retried if not announced.search(text)] == []


def with_retries(killable: KillableServer, change: Callable[[], Numbers]) -> Numbers:
    """Make a change; retry while rowq is in use."""
    for left in reversed(range(_TRIES[killable.server.engine])):
        try:
            return change()
        except MigrationBusy as refusal:
            print(refusal)
            if not left:
                raise
    raise AssertionError


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_work_during_an_upgrade_and_rollback(
    killable: KillableServer, url: str, tmp_path: Path, next_release: int
) -> None:
    """From the first release to the made-up one and back."""
    if killable.server.product == "mysql":
        pytest.skip("MySQL's callers stop during a migration; to run it: MariaDB")
    newest = next_release + 1
    rollback(url, to=1)

    def change() -> None:
        for _ in range(times(1)):
            with_retries(killable, lambda: migrate(url).applied)
            assert status(url).installed == newest
            assert with_retries(killable, lambda: migrate(url).applied) == ()
            with_retries(killable, lambda: rollback(url, to=1).rolled_back)
            assert status(url).installed == 1
        with_retries(killable, lambda: migrate(url).applied)

    work_during(killable, url, tmp_path, change)
    assert status(url).installed == newest
    assert status(url).drift == ()


@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_repeated_migrate_under_load_disturbs_no_session(
    killable: KillableServer, url: str, tmp_path: Path
) -> None:
    def change() -> None:
        for _ in range(times(2)):
            assert with_retries(killable, lambda: migrate(url).applied) == ()

    work_during(killable, url, tmp_path, change, MESSAGES // 2)
