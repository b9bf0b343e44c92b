"""rowq show tells the attempts of a message, and a queue is told how long to keep them."""

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run


@pytest.fixture
def ended(queue: rowq.Queue, made: str) -> int:
    """Return a message that w1 gave back; the queue keeps history from now on."""
    queue.alter_queue(made, history_days=2)
    message_id = queue.enqueue(made, 1).message_id
    (message,) = queue.dequeue_fast(made, worker_name="w1")
    queue.retry_later(made, message.claim_id, delay_seconds=0, error="no\nvan")
    return message_id


def test_show_tells_the_attempts(run: Run, queue: rowq.Queue, made: str, ended: int) -> None:
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
    told = run("show", made, ended, "--json")
    assert (told.code, told.row["message_id"]) == (ExitCode.INCOMPLETE, ended)
    assert [attempt["outcome"] for attempt in told.row["history"]] == ["retrying", "completed"]


def test_what_nobody_had_shows_none(run: Run, queue: rowq.Queue, made: str) -> None:
    message_id = queue.enqueue(made, 1).message_id
    assert run("show", made, message_id, "--json").row["history"] == []
    assert "leased at" not in run("show", made, message_id).out
    assert run("show", made, 0).out == "not found\n"
    assert run("show", made, 0, "--json").out == ""


def test_a_queue_is_told_how_long_to_keep_them(run: Run, queue: rowq.Queue, made: str) -> None:
    assert run("queue", "alter", made, "--history-days", 30).code == 0
    assert queue.queue_stats(made)[0].history_days == 30
    assert run("queue", "show", made, "--json").row["history_days"] == 30
    assert run("queue", "create", f"{made}2", "--history-days", 1).code == 0
    assert queue.queue_stats(f"{made}2")[0].history_days == 1
    assert run("queue", "alter", made, "--history-days", -1).code == ExitCode.REFUSED
