"""Rowq is upgraded, and taken back, while ten sessions work: nobody stops, nothing is lost."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from generate.release import release
from rowq.migrate import migrate, rollback, status
from rowq.migrate.errors import MigrationBusy
from rowq.migrate.frozen import Part, files_after, joined, script_of, split
from rowq.migrate.sources import read, sources_of
from tests.chaos.killable import KillableServer
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import count, perform
from tests.dice import dice, limit, times
from tests.helpers.releases import COLUMN, begin_next, copied, use_released

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("genuine"),
    pytest.mark.timeout(limit(300)),
]

MESSAGES = 3000
_BUSIEST = {f"routines/{name}.sql" for name in ("enqueue_batch", "dequeue_fast", "complete")}
_PRODUCER = "packages/rowq_produce_body.sql"
"""The package that producers call on Oracle: it names no version, and is made anew all the same."""
_TRIES = {"postgres": 1, "mysql": 1, "sqlserver": 20, "oracle": 20}
"""The number of times that the server may be asked to change a table that is in use."""
Numbers = tuple[int, ...]


@pytest.fixture
def next_release(
    killable: KillableServer, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Make up a release with a column more and every routine anew; return the one before it.

    The database keeps what is installed until somebody migrates.
    """
    engine = killable.server.engine
    before = status(url).installed
    migrations = use_released(copied(tmp_path, engine), monkeypatch)
    _change_some_routines(sources_of(migrations))
    migration = begin_next(migrations, "next", statement=COLUMN[engine])
    if engine == "oracle":
        release(migrations)
        _make_anew(script_of(migration), _PRODUCER, files_after(migrations, before)[_PRODUCER])
    return before


def _make_anew(script: Path, name: str, text: str) -> None:
    """Put a file into a script, before the one that looks whether all has compiled."""
    head, parts = split(read(script))
    place = [part.name for part in parts].index("compiled.sql")
    parts.insert(place, Part("file", name, text))
    script.write_text(joined(head, parts), encoding="utf-8")


def _change_some_routines(sources: Path) -> None:
    """Give some routines another version in their headers; Oracle's packages hold them all."""
    there = [
        path for room in ("internal", "routines") for path in sorted((sources / room).glob("*.sql"))
    ]
    drawn = dice("migration").sample(there, min(times(10), len(there)))
    for path in there:
        if path in drawn or path.relative_to(sources).as_posix() in _BUSIEST:
            head = re.compile(r"^(-- routine .*)(\n-- version .*)?$", re.MULTILINE)
            text = head.sub(r"\1\n-- version   99", path.read_text())
            path.write_text(text)


def work_during(
    killable: KillableServer,
    url: str,
    room: Path,
    changes: Callable[[], None],
    messages: int = MESSAGES,
) -> None:
    """Let ten sessions work while something is done to rowq; they may be told to try again."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0)
    run = Run(killable.server, url, "orders", Recorder(), may_be_asked_again=True)
    history = perform(run, times(messages), room, changes)
    print(Counter(run.asked_again))
    assert count(history, "enqueue") >= messages


def patiently(killable: KillableServer, change: Callable[[], Numbers]) -> Numbers:
    """Change something about rowq; who is told that it is in use may try again."""
    for left in reversed(range(_TRIES[killable.server.engine])):
        try:
            return change()
        except MigrationBusy as refusal:
            print(refusal)
            if not left:
                raise
    raise AssertionError


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_work_on_while_rowq_is_upgraded_and_taken_back(
    killable: KillableServer, url: str, tmp_path: Path, next_release: int
) -> None:
    newest = next_release + 1

    def change() -> None:
        for _ in range(times(1)):
            assert patiently(killable, lambda: migrate(url).applied) == (newest,)
            assert patiently(killable, lambda: migrate(url).applied) == ()
            back = patiently(killable, lambda: rollback(url, to=next_release).rolled_back)
            assert back == (newest,)
        assert patiently(killable, lambda: migrate(url).applied) == (newest,)

    work_during(killable, url, tmp_path, change)
    assert status(url).installed == newest
    assert status(url).drift == ()


@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_migrating_again_under_load_disturbs_nobody(
    killable: KillableServer, url: str, tmp_path: Path
) -> None:
    def change() -> None:
        for _ in range(times(2)):
            assert patiently(killable, lambda: migrate(url).applied) == ()

    work_during(killable, url, tmp_path, change, MESSAGES // 2)
