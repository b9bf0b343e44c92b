"""A test that fails on SQL Server shows the deadlocks of its time; no server is needed here."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.engines import plugin
from tests.engines.sqlserver.deadlocks import GRAPHS, graphs_since

BEGAN_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def report_of(outcome: str, server: object) -> Any:
    """Return what the hook makes of a test's report."""
    item: Any = SimpleNamespace(funcargs={"server": server}, path=Path(__file__))
    call: Any = SimpleNamespace(start=BEGAN_AT.timestamp())
    report: Any = SimpleNamespace(failed=outcome == "failed", sections=[])
    made = plugin.pytest_runtest_makereport(item, call)
    next(made)
    with pytest.raises(StopIteration) as stopped:
        made.send(report)
    return stopped.value.value


def test_a_failed_test_shows_the_graphs_since_it_began() -> None:
    asked: list[datetime] = []

    def deadlocks_since(moment: datetime) -> list[str]:
        asked.append(moment)
        return ["<deadlock/>"]

    server = SimpleNamespace(name="sqlserver2022", deadlocks_since=deadlocks_since)
    assert report_of("failed", server).sections == [("deadlock on sqlserver2022", "<deadlock/>")]
    assert asked == [BEGAN_AT]


def test_a_passed_test_asks_for_nothing() -> None:
    assert report_of("passed", SimpleNamespace(name="x", deadlocks_since=None)).sections == []


def test_a_server_that_cannot_answer_hides_no_failure() -> None:
    def deadlocks_since(moment: datetime) -> list[str]:
        raise ConnectionError(moment)

    server = SimpleNamespace(name="x", deadlocks_since=deadlocks_since)
    assert report_of("failed", server).sections == []


def test_graphs_come_with_their_time() -> None:
    rows = [("2026-01-02 03:04:06.000", "<deadlock/>")]
    asked: list[Any] = []

    def execute(query: str, moment: datetime) -> Any:
        asked.append((query, moment))
        return SimpleNamespace(fetchall=lambda: rows)

    connection = SimpleNamespace(execute=execute)
    assert graphs_since(connection, BEGAN_AT) == ["2026-01-02 03:04:06.000\n<deadlock/>"]
    assert asked == [(GRAPHS, BEGAN_AT)]
