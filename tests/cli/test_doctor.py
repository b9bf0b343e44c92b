"""rowq doctor: its checks, its round trip, and that it detects errors."""

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import rowq
from rowq.contract import Routine
from rowq.engines import TOOLS, engine_for_url
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.doctor import Check, Status, examine
from rowq.tools.doctor.check import Setting
from tests.cli.conftest import Run, run_app
from tests.engines.base import Connection
from tests.helpers.calls import call

ALWAYS = {
    "connection",
    "server version",
    "clock",
    "installed",
    "as shipped",
    "rights",
    "round trip",
}

EXAMINE = importlib.import_module("rowq.tools.doctor.examine")
"""The package has the function of that name."""


def by_name(checks: list[dict[str, Any]]) -> dict[str, str]:
    """Return the status of each check."""
    return {check["check_name"]: check["status"] for check in checks}


def scratch_queues(queue: rowq.Queue) -> list[str]:
    """Return the queues that rowq doctor has left behind."""
    names = [stats.queue_name for stats in queue.queue_stats()]
    return [name for name in names if name.startswith("rowq doctor")]


def test_doctor_passes_correct_installation(run: Run, queue: rowq.Queue) -> None:
    done = run("doctor", "--json")
    found = by_name(done.rows)
    assert found.keys() >= ALWAYS
    assert {found[name] for name in ALWAYS} == {"ok"}, done.out
    health = {status for name, status in found.items() if name.startswith("health")}
    assert done.code == (ExitCode.INCOMPLETE if "failed" in found.values() else ExitCode.DONE)
    assert health
    assert scratch_queues(queue) == []
    lines = [line for line in run("doctor").out.splitlines() if line.strip()]
    assert lines[0].split() == ["check", "name", "status", "detail"]
    assert any(line.strip().startswith("server version") for line in lines)


def test_installing_account_can_read_every_setting(database_url: str) -> None:
    unknown = [check for check in examine(database_url) if check.status is Status.UNKNOWN]
    # On Oracle, v$parameter requires a grant by an administrator.
    allowed = {"commit_wait"} if engine_for_url(database_url).name == "oracle" else set[str]()
    assert {check.check_name for check in unknown} <= allowed


def test_doctor_reports_wrong_setting_with_advice(
    run: Run, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"{TOOLS}.{engine_for_url(database_url).name}.doctor.CHECKS"
    query = "select 'wrong' from (select 1 as one) t"
    if engine_for_url(database_url).name == "oracle":
        query = "select 'wrong' from dual"
    setting = Setting("planted", query, lambda value: value == "right", Status.FAILED, "fix it")
    unknown = Setting("hidden", "select nothing", lambda _: True, Status.FAILED, "")
    monkeypatch.setattr(module, with_settings(module, setting, unknown))
    done = run("doctor", "--json")
    rows = {row["check_name"]: row for row in done.rows}
    assert rows["planted"] == {
        "check_name": "planted",
        "status": "failed",
        "detail": "wrong: fix it",
    }
    assert rows["hidden"]["status"] == "unknown"
    assert done.code == ExitCode.INCOMPLETE


def with_settings(module: str, *settings: Setting) -> Any:
    """Return an engine's checks with other settings."""
    return replace(
        importlib.import_module(module.removesuffix(".CHECKS")).CHECKS, settings=settings
    )


def test_doctor_reports_missing_installation_and_stops(empty_database: str) -> None:
    done = run_app("doctor", "--json", url=empty_database)
    assert done.code == ExitCode.INCOMPLETE
    last = done.rows[-1]
    assert (last["check_name"], last["status"]) == ("installed", "failed")
    assert "rowq migrate" in last["detail"]


def test_doctor_reports_connection_failure(run_without_database: Run) -> None:
    done = run_without_database("doctor", url="postgresql://u:secret@127.0.0.1:1/x")
    assert done.code == ExitCode.NO_CONNECTION
    assert "secret" not in done.err


WRONGS: dict[str, Callable[[Any], Any]] = {
    "dequeue_fast": lambda _: [],
    "complete": lambda outcomes: [
        rowq.Outcome(outcome.message_id, "stale") for outcome in outcomes
    ],
}


@pytest.mark.parametrize("method", WRONGS)
def test_doctor_detects_wrong_result(
    database_url: str, queue: rowq.Queue, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    right = getattr(rowq.Queue, method)

    def wrong(self: rowq.Queue, *arguments: Any, **named: Any) -> Any:
        return WRONGS[method](right(self, *arguments, **named))

    monkeypatch.setattr(rowq.Queue, method, wrong)
    check = tried(database_url)
    assert check.status is Status.FAILED
    assert method.partition("_")[0] in check.detail or "got []" in check.detail
    assert scratch_queues(queue) == []


def test_doctor_reports_error_of_routine(
    database_url: str, queue: rowq.Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise rowq.InvalidArgument("planted")

    monkeypatch.setattr(rowq.Queue, "enqueue", fails)
    check = tried(database_url)
    assert check.status is Status.FAILED
    assert check.detail.startswith("InvalidArgument: ")
    assert "planted" in check.detail
    assert scratch_queues(queue) == []


def test_doctor_skips_round_trip_without_privilege(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EXAMINE, "may_call", lambda _, routine: routine.name != "drop_queue")
    assert tried(database_url) == Check(
        "round trip", Status.UNKNOWN, "this account cannot call drop_queue"
    )


def tried(url: str) -> Check:
    """Return the check of the round trip."""
    (check,) = (check for check in examine(url) if check.check_name == "round trip")
    return check


@pytest.mark.parametrize(
    ("roles", "status", "words"),
    [
        (set(), Status.FAILED, "no role of rowq is granted"),
        ({"producer"}, Status.WARNING, "has producer; cannot call after_failover, "),
        ({"admin"}, Status.OK, "can call all "),
    ],
)
def test_doctor_reports_rights_by_role(
    database_url: str, monkeypatch: pytest.MonkeyPatch, roles: set[str], status: Status, words: str
) -> None:
    def may_call(_connection: Connection, routine: Routine) -> bool:
        return bool(roles & set(routine.roles))

    monkeypatch.setattr(EXAMINE, "may_call", may_call)
    (found,) = (check for check in examine(database_url) if check.check_name == "rights")
    assert found.status is status
    assert found.detail.startswith(words)


@pytest.fixture
def untouched(connection: Connection, queue_name: str) -> Iterator[str]:
    """Return a queue that the test must not change."""
    call(connection, "create_queue", queue_name=queue_name)
    before = rowq.Queue(connection).queue_stats(queue_name)
    yield queue_name
    assert rowq.Queue(connection).queue_stats(queue_name) == before


def test_check_of_rights_changes_nothing(run: Run, queue: rowq.Queue, untouched: str) -> None:
    before = {stats.queue_name for stats in queue.queue_stats()}
    assert by_name(run("doctor", "--json").rows)["rights"] == "ok"
    assert {stats.queue_name for stats in queue.queue_stats()} == before
    assert untouched in before
