"""Rowq is upgraded, and taken back, while ten sessions work: nobody stops, nothing is lost."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from rowq.migrate import migrate, rollback, status
from rowq.migrate.errors import MigrationBusy
from rowq.migrate.frozen import newest_copies
from rowq.resources import migrations_directory
from tests.chaos.mortal import Mortal
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.stage import count, perform
from tests.dice import dice, limit, times

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("genuine"),
    pytest.mark.timeout(limit(300)),
]

MESSAGES = 3000
_BUSIEST = {f"routines/{name}.sql" for name in ("enqueue_batch", "dequeue_fast", "complete")}
_PACKAGES = {"packages/rowq_body.sql", "packages/rowq_produce_body.sql", "compiled.sql"}
"""What Oracle has instead, and what looks whether it compiled."""
_TRIES = {"postgres": 1, "mysql": 1, "sqlserver": 20, "oracle": 20}
"""So often may the server be asked for a change to a table that is in use."""
_STANDARD = (
    "alter table rowq.queue add column if not exists note text;",
    "alter table rowq.queue drop column if exists note;",
)
_ON_ORACLE = """
declare
    v_columns number;
begin
    select count(*) into v_columns
    from user_tab_columns c
    where c.table_name = 'ROWQ_QUEUE'
      and c.column_name = 'NOTE';
    if v_columns = {there} then
        execute immediate 'alter table rowq_queue {change}';
    end if;
end;
/
"""
_COLUMN = {
    "postgres": _STANDARD,
    "mysql": _STANDARD,
    "sqlserver": (
        "if col_length(N'rowq.queue', N'note') is null"
        " alter table rowq.queue add note nvarchar(100) null;",
        "if col_length(N'rowq.queue', N'note') is not null"
        " alter table rowq.queue drop column note;",
    ),
    "oracle": (
        _ON_ORACLE.format(there=0, change="add (note varchar2(100 char))"),
        _ON_ORACLE.format(there=1, change="drop (note)"),
    ),
}
"""For each engine, how to add a column that no routine knows, and how to take it away again."""
_MIGRATION = '''
"""A release after the newest one, made up by a test."""

from rowq.migrate.steps import frozen, statement

__depends__ = {{"{before}"}}
__rowq_version__ = "99.0.0"

statement(
    {apply!r},
    {rollback!r},
)
frozen(__file__)
'''

Numbers = tuple[int, ...]


@pytest.fixture
def next_release(mortal: Mortal, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Make up a release with a column more and every routine anew; return the one before it.

    The database keeps what is installed until somebody migrates.
    """
    engine = mortal.server.engine
    before = status(url).installed
    copy = tmp_path / "migrations"
    shutil.copytree(migrations_directory(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("rowq.migrate.engines.migrations_directory", lambda: copy)
    folder = copy / engine / f"{before + 1:04d}"
    names = _changed_copies(copy / engine, before, folder)
    (folder / "order.txt").write_text("".join(f"{name}\n" for name in names))
    (newest,) = (copy / engine).glob(f"*-{before:04d}-*.py")
    prefix = newest.stem.partition("-")[0]
    apply, undo = _COLUMN[engine]
    text = _MIGRATION.format(before=newest.stem, apply=apply, rollback=undo)
    (copy / engine / f"{prefix}-{before + 1:04d}-next.py").write_text(text.lstrip())
    return before


def _changed_copies(releases: Path, before: int, folder: Path) -> list[str]:
    """Copy some routines as they are after a release, each with another version in its header."""
    copies = newest_copies(releases, before)
    there = [name for name in copies if name.startswith(("internal/", "routines/"))]
    drawn = dice("migration").sample(there, min(times(10), len(there)))
    names = [name for name in there if name in drawn or name in _BUSIEST]
    names += [name for name in copies if name in _PACKAGES]
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = copies[name].read_text()
        target.write_text(re.sub(r"(?m)^-- version .*$", "-- version   99", text))
    return names


def work_during(
    mortal: Mortal, url: str, room: Path, changes: Callable[[], None], messages: int = MESSAGES
) -> None:
    """Let ten sessions work while something is done to rowq; they may be told to try again."""
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0)
    run = Run(mortal.server, url, "orders", Recorder(), may_be_asked_again=True)
    history = perform(run, times(messages), room, changes)
    print(Counter(run.asked_again))
    assert count(history, "enqueue") >= messages


def patiently(mortal: Mortal, change: Callable[[], Numbers]) -> Numbers:
    """Change something about rowq; who is told that it is in use may try again."""
    for left in reversed(range(_TRIES[mortal.server.engine])):
        try:
            return change()
        except MigrationBusy as refusal:
            print(refusal)
            if not left:
                raise
    raise AssertionError


@pytest.mark.slow
@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_work_on_while_rowq_is_upgraded_and_taken_back(
    mortal: Mortal, url: str, tmp_path: Path, next_release: int
) -> None:
    newest = next_release + 1

    def change() -> None:
        for _ in range(times(1)):
            assert patiently(mortal, lambda: migrate(url).applied) == (newest,)
            assert patiently(mortal, lambda: migrate(url).applied) == ()
            back = patiently(mortal, lambda: rollback(url, to=next_release).rolled_back)
            assert back == (newest,)
        assert patiently(mortal, lambda: migrate(url).applied) == (newest,)

    work_during(mortal, url, tmp_path, change)
    assert status(url).installed == newest
    assert status(url).drift == ()


@pytest.mark.slow
@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_migrating_again_under_load_disturbs_nobody(
    mortal: Mortal, url: str, tmp_path: Path
) -> None:
    def change() -> None:
        for _ in range(times(2)):
            assert patiently(mortal, lambda: migrate(url).applied) == ()

    work_during(mortal, url, tmp_path, change, MESSAGES // 2)
