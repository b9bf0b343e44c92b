"""rowq show prints the attempts of a message."""

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run


@pytest.fixture
def ended(queue: rowq.Queue, made: str) -> int:
    """Return a message that w1 has retried; the queue keeps history."""
    queue.alter_queue(made, history_days=2)
    message_id = queue.enqueue(made, 1).message_id
    (message,) = queue.dequeue_fast(made, worker_name="w1")
    queue.retry_later(made, message.claim_id, delay_seconds=0, error="no\nvan")
    return message_id


def test_show_prints_attempts(run: Run, queue: rowq.Queue, made: str, ended: int) -> None:
    queue.promote(made)
    (message,) = queue.dequeue_fast(made, worker_name="w2")
    first, second = run("show", made, ended, "--json").row["history"]
    assert (first["worker_name"], first["outcome"], first["error"]) == ("w1", "retrying", "no\nvan")
    assert (second["worker_name"], second["outcome"], second["ended_at"]) == ("w2", None, None)
    shown = run("show", made, ended).out
    assert shown.endswith("last error\nno\nvan\n")
    assert shown.index("leased at") < shown.index("retrying") < shown.rindex("w2")
    queue.complete(made, message.claim_id)
    gone = run("show", made, ended)
    assert gone.code == ExitCode.INCOMPLETE
    assert gone.out.startswith("not found\n")
    assert gone.out.index("retrying") < gone.out.index("completed")
    gone = run("show", made, ended, "--json")
    assert (gone.code, gone.row["message_id"]) == (ExitCode.INCOMPLETE, ended)
    assert [attempt["outcome"] for attempt in gone.row["history"]] == ["retrying", "completed"]


def test_show_prints_no_attempts_before_first_lease(run: Run, queue: rowq.Queue, made: str) -> None:
    message_id = queue.enqueue(made, 1).message_id
    assert run("show", made, message_id, "--json").row["history"] == []
    assert "leased at" not in run("show", made, message_id).out
    assert run("show", made, 0).out == "not found\n"
    assert run("show", made, 0, "--json").out == ""
