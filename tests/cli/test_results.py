"""rowq result."""

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run

pytestmark = pytest.mark.requires("results")


@pytest.fixture
def kept(queue: rowq.Queue, made: str) -> int:
    """Return a message of the queue, which keeps results."""
    queue.alter_queue(made, result_seconds=60)
    return queue.enqueue(made, 1).message_id


def test_result_prints_result_of_completed_message(
    run: Run, queue: rowq.Queue, made: str, kept: int
) -> None:
    assert run("result", made, kept, "--json").row["state"] == "ready"
    (message,) = queue.dequeue_fast(made)
    queue.extend_lease(made, message.claim_id, progress="half")
    assert "half" in run("show", made, kept).out
    queue.complete(made, message.claim_id, results=[{"sum": 1}])
    found = run("result", made, kept, "--wait-seconds", 5, "--json")
    assert (found.code, found.row["state"], found.row["result"]) == (0, "completed", {"sum": 1})
    assert "completed" in run("result", made, kept).out


def test_result_sets_exit_status_4_if_not_completed(
    run: Run, queue: rowq.Queue, made: str, kept: int
) -> None:
    waiting = run("result", made, kept, "--wait-seconds", 0.1)
    assert (waiting.code, "ready" in waiting.out) == (ExitCode.INCOMPLETE, True)
    queue.cancel(made, [kept])
    cancelled = run("result", made, kept)
    assert (cancelled.code, "cancelled" in cancelled.out) == (ExitCode.INCOMPLETE, True)
    unknown = run("result", made, 0)
    assert (unknown.code, unknown.out) == (ExitCode.INCOMPLETE, "not found\n")
    assert run("result", made, 0, "--json").out == ""
