"""Commands that read and finish messages: dequeue, peek, show, complete, dead, reset, cancel..."""

import base64
import json

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.engines.base import Connection
from tests.helpers.hard_headers import HARD, put_headers


@pytest.fixture
def three(queue: rowq.Queue, made: str) -> list[int]:
    """Enqueue three messages and return their ids."""
    sent = queue.enqueue_batch(made, [rowq.NewMessage(data={"n": n}) for n in range(3)])
    return [message.message_id for message in sent]


def state(queue: rowq.Queue, queue_name: str, message_id: int) -> str | None:
    """Return the state of a message, None if it is gone."""
    found = queue.get_message(queue_name, message_id)
    return found.state if found else None


def test_dequeue_prints_json_lines_and_leases(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    done = run("dequeue", made, "--batch-size", 2, "--worker-name", "me", "--lease-seconds", 600)
    assert [row["message_id"] for row in done.rows] == three[:2]
    assert [json.loads(row["body"]) for row in done.rows] == [{"n": 0}, {"n": 1}]
    found = queue.get_message(made, three[0])
    assert found is not None
    assert (found.state, found.worker_name) == ("leased", "me")
    assert done.rows[0]["lease_until"] == found.lease_until.isoformat()  # type: ignore[union-attr]


def test_dequeue_prints_nothing_if_queue_is_empty(run: Run, queue: rowq.Queue, made: str) -> None:
    for options in ((), ("--wait-seconds", 0.1)):
        done = run("dequeue", made, *options)
        assert (done.code, done.out) == (0, "")
    sent = queue.enqueue(made, 1)
    assert run("dequeue", made, "--wait-seconds", 5).row["message_id"] == sent.message_id


def test_binary_body_is_printed_in_base64(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue(made, b"\0\xff")
    row = run("peek", made).row
    assert (row["body"], base64.b64decode(row["body_binary"])) == (None, b"\0\xff")


def test_peek_does_not_lease(run: Run, queue: rowq.Queue, made: str, three: list[int]) -> None:
    assert [row["message_id"] for row in run("peek", made, "--max-messages", 9).rows] == three
    assert state(queue, made, three[0]) == "ready"
    queue.enqueue_batch(made, list(range(8)))
    assert len(run("peek", made).rows) == 10


def test_show_prints_message(run: Run, made: str, three: list[int]) -> None:
    assert run("show", made, three[0], "--json").row["state"] == "ready"
    assert '{"n":0}' in run("show", made, three[0]).out
    assert run("show", made, 999_999_999).code == ExitCode.INCOMPLETE


def test_explain_prints_a_sentence_per_reason(run: Run, made: str, three: list[int]) -> None:
    assert run("explain", made, three[1], "--json").rows[0]["reason"] == "behind"
    lines = run("explain", made, three[1]).out.splitlines()
    assert lines[0] == "1 ready message is before it."
    assert len(lines) == 2
    run("dequeue", made, "--worker-name", "me")
    told = "A worker holds it until the worker finishes it or its lease expires (claim "
    for command in ("explain", "show"):
        assert told in run(command, made, three[0]).out
    assert run("show", made, three[0], "--json").row["reasons"][0]["reason"] == "leased"
    assert run("explain", made, 999_999_999).code == ExitCode.INCOMPLETE


def test_complete_finishes_named_or_all_messages(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    claim_id = run("dequeue", made, "--batch-size", 3).rows[0]["claim_id"]
    assert run("complete", made, claim_id, three[0], "--json").rows == [
        {"message_id": three[0], "outcome": "completed"}
    ]
    assert state(queue, made, three[1]) == "leased"
    assert run("complete", made, claim_id).code == 0
    assert [state(queue, made, message_id) for message_id in three] == [None, None, None]


def test_stale_message_sets_exit_status_4(run: Run, made: str, three: list[int]) -> None:
    claim_id = run("dequeue", made).row["claim_id"]
    done = run("complete", made, claim_id, three[0], three[1], "--json")
    assert done.code == ExitCode.INCOMPLETE
    assert [row["outcome"] for row in done.rows] == ["completed", "stale"]


@pytest.mark.parametrize("command", ["complete", "retry", "fail", "release", "extend"])
def test_lost_claim_sets_exit_status_4(run: Run, made: str, three: list[int], command: str) -> None:
    claim_id = run("dequeue", made).row["claim_id"]
    run("release", made, claim_id)
    done = run(command, made, claim_id)
    assert done.code == ExitCode.INCOMPLETE
    assert done.err.startswith("rowq: RQ721 stale_claim")
    if command != "extend":
        named = run(command, made, claim_id, three[0], "--json")
        assert (named.code, named.row["outcome"]) == (ExitCode.INCOMPLETE, "stale")


def test_retry_sets_delay_and_error(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    claim_id = run("dequeue", made).row["claim_id"]
    done = run("retry", made, claim_id, "--delay-seconds", 3600, "--error", "later", "--json")
    assert done.row["outcome"] == "retrying"
    found = queue.get_message(made, three[0])
    assert found is not None
    assert (found.state, found.last_error) == ("delayed", "later")


def test_release_and_extend_change_claim(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    row = run("dequeue", made).row
    longer = run("extend", made, row["claim_id"], "--lease-seconds", 900, "--json").row
    assert longer["lease_until"] > row["lease_until"]
    assert run("release", made, row["claim_id"]).code == 0
    found = queue.get_message(made, three[0])
    assert found is not None
    assert (found.state, found.attempt) == ("ready", 0)


def test_dead_messages_are_listed_reset_and_cancelled(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    claim_id = run("dequeue", made, "--batch-size", 3).rows[0]["claim_id"]
    assert run("fail", made, claim_id, "--error", "broken").code == 0
    listed = run("dead", "list", made, "--json").rows
    assert [(row["message_id"], row["last_error"]) for row in listed] == [
        (message_id, "broken") for message_id in three
    ]
    assert "broken" in run("dead", "list", made, "--limit", 1).out
    assert len(run("dead", "list", made, "--after", three[0], "--json").rows) == 2

    newest = run("dead", "list", made, "--newest", "--limit", 2, "--json").rows
    assert [row["message_id"] for row in newest] == three[:0:-1]
    assert run("dead", "list", made, "--before", three[1], "--json").row["message_id"] == three[0]
    assert run("dead", "list", made, "--type", "mail").out == "no dead messages\n"

    assert run("reset", made, three[2]).code == 0
    assert run("reset", made, "--oldest", 1, "--json").row["message_id"] == three[0]
    assert run("cancel", made, three[1], "--json").row["outcome"] == "cancelled"
    assert [state(queue, made, message_id) for message_id in three] == ["ready", None, "ready"]


def test_lists_show_exception_line_of_traceback(run: Run, queue: rowq.Queue, made: str) -> None:
    frames = "".join(f'  File "worker.py", line {n}, in work\n    go_on()\n' for n in range(30))
    error = f"Traceback (most recent call last):\n{frames}shop.NoStock: none of 17\n"
    queue.alter_queue(made, max_attempts=2)
    queue.enqueue(made, {})
    (message,) = queue.dequeue_fast(made)
    queue.retry_later(made, message.claim_id, delay_seconds=100, error=error)
    assert run("delayed", made).out.rstrip().endswith("shop.NoStock: none of 17")
    queue.enqueue(made, {})
    (message,) = queue.dequeue_fast(made)
    queue.fail_now(made, message.claim_id, error=error)
    shown = run("dead", "list", made).out
    assert shown.rstrip().endswith("shop.NoStock: none of 17")
    assert "worker.py" not in shown
    assert run("dead", "list", made, "--json").row["last_error"] == error


def test_discard_deletes_by_id_number_or_all(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    for sent in ("mail", "mail", "other"):
        queue.enqueue(made, 1, message_type=sent)
    queue.fail_now(made, queue.dequeue_fast(made, 10)[0].claim_id)
    assert run("dead", "discard", made, three[1], "--json").row == {"removed": 1}
    assert run("dead", "discard", made, three[1]).out == "removed 0 messages\n"
    assert run("dead", "discard", made, "--oldest", 1).out == "removed 1 messages\n"
    assert state(queue, made, three[0]) is None
    assert run("dead", "discard", made, "--all", "--type", "mail").out == "removed 2 messages\n"
    assert run("dead", "discard", made, "--all").out == "removed 2 messages\n"
    assert run("claims", made).out == "no claims\n"


def test_delayed_lists_messages_and_show_finds_key(run: Run, queue: rowq.Queue, made: str) -> None:
    assert run("delayed", made).out == "no delayed messages\n"
    ids = [
        queue.enqueue(made, 1, delay_seconds=900 + n, dedup_key=f"k{n}").message_id
        for n in range(3)
    ]
    first, *_ = run("delayed", made, "--limit", 2, "--json").rows
    assert first["message_id"] == ids[0]
    rest = run("delayed", made, "--after", ids[0], "--after-due", first["due_at"], "--json").rows
    assert [row["message_id"] for row in rest] == ids[1:]
    assert str(ids[0]) in run("delayed", made).out
    assert run("delayed", made, "--after", ids[0]).code == ExitCode.REFUSED

    assert run("show", made, "--key", "k1", "--json").row["message_id"] == ids[1]
    unknown = run("show", made, "--key", "k9")
    assert (unknown.code, unknown.out) == (ExitCode.INCOMPLETE, "not found\n")
    assert run("show", made).code == ExitCode.USAGE
    assert run("show", made, ids[0], "--key", "k1").code == ExitCode.USAGE


def test_claims_lists_workers(run: Run, queue: rowq.Queue, made: str, three: list[int]) -> None:
    claims = [queue.dequeue_fast(made, 1, worker_name=f"w{one}")[0].claim_id for one in three]
    listed = run("claims", made, "--json").rows
    assert [(row["claim_id"], row["message_count"]) for row in listed] == [
        (claim_id, 1) for claim_id in claims
    ]
    assert f"w{three[0]}" in run("claims", made, "--limit", 1).out
    assert len(run("claims", made, "--after", claims[0], "--json").rows) == 2
    queue.release(made, claims[0])


@pytest.mark.requires("cancel")
def test_alter_changes_a_waiting_message(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    done = run(
        "alter", made, three[0], "--body", "[2]", "--delay", 60, "--priority", 3, "--type", "t",
        "--header", "a=b", "--json",
    )  # fmt: skip
    found = queue.get_message(made, three[0])
    assert found is not None
    assert (done.code, done.row["outcome"]) == (0, "altered")
    assert done.row["due_at"] == found.due_at.isoformat()  # type: ignore[union-attr]
    assert (found.body, found.priority, found.message_type) == ("[2]", 3, "t")
    assert found.headers == {"a": "b"}
    assert run("alter", made, three[0], "--now").code == 0
    assert queue.dequeue_fast(made, 9)[-1].message_id in three


@pytest.mark.requires("cancel")
def test_alter_reports_failures(run: Run, made: str, three: list[int]) -> None:
    assert run("alter", made, three[0]).code == ExitCode.REFUSED
    assert run("alter", made, three[0], "--now", "--delay", 1).code == ExitCode.USAGE
    assert run("alter", made, three[0], "--body", "{").code != 0
    run("dequeue", made)
    done = run("alter", made, three[0], "--priority", 1, "--json")
    assert (done.code, done.row["outcome"]) == (ExitCode.INCOMPLETE, "leased")


def test_cancel_and_reset_report_failures(run: Run, made: str, three: list[int]) -> None:
    run("dequeue", made)
    done = run("cancel", made, three[0], three[1], "--json")
    assert done.code == ExitCode.INCOMPLETE
    assert {row["message_id"]: row["outcome"] for row in done.rows} == {
        three[0]: "leased",
        three[1]: "cancelled",
    }
    assert run("reset", made, three[2]).code == ExitCode.INCOMPLETE


@pytest.mark.requires("cancel")
@pytest.mark.promise("P34")
def test_cancel_requests_cancellation_of_leased_message(
    run: Run, queue: rowq.Queue, made: str, three: list[int]
) -> None:
    claim = queue.dequeue_fast(made, 2)[0].claim_id
    assert run("cancel", made, three[0]).code == ExitCode.INCOMPLETE
    assert run("cancel", made, three[0], "--include-leased", "--json").row["outcome"] == "requested"
    assert run("extend", made, claim, "--json").row["cancel_ids"] == [three[0]]
    done = run("release", made, claim, three[0], "--json")
    assert (done.code, done.row["outcome"]) == (0, "cancelled")


@pytest.mark.requires("cancel")
@pytest.mark.usefixtures("three")
def test_cancel_many_and_reset_filter_messages(run: Run, queue: rowq.Queue, made: str) -> None:
    for message_type in ("mail", "mail", "other"):
        queue.enqueue(made, 1, message_type=message_type, headers={"tint": "blue"}, group_key="g")
    assert run("cancel-many", made).code == ExitCode.REFUSED
    done = run("cancel-many", made, "--type", "mail", "--header", "tint=blue", "--group-key", "g")
    assert done.out == "cancelled 2 messages\n"
    done = run("cancel-many", made, "--before", "2000-01-01", "--json")
    assert done.row["cancelled"] == 0
    assert run("cancel-many", made, "--header", "tint").code == ExitCode.USAGE
    queue.fail_now(made, queue.dequeue_fast(made)[0].claim_id)
    assert run("reset", made, "--oldest", 9, "--type", "mail").code == 0
    assert queue.queue_stats(made)[0].dead == 1
    assert run("reset", made, "--oldest", 9, "--died-before", "2000-01-01").code == 0
    assert run("reset", made, "--oldest", 9, "--died-before", "2100-01-01").code == 0
    assert queue.queue_stats(made)[0].dead == 0


def test_reset_and_discard_refuse_wrong_arguments(run: Run, made: str) -> None:
    both: list[tuple[object, ...]] = [(), (1, "--type", "mail")]
    for wrong in (*both, (1, "--oldest", 1)):
        assert run("reset", made, *wrong).code == ExitCode.USAGE
    for wrong in (*both, (1, "--all"), ("--all", "--oldest", 1)):
        assert run("dead", "discard", made, *wrong).code == ExitCode.USAGE


def test_table_escapes_control_characters(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue(made, 1, message_type="[red]\x1b[2J\nnext")
    (message,) = queue.dequeue_fast(made)
    queue.fail_now(made, message.claim_id, error="a\tb\x07")
    shown = run("dead", "list", made).out
    assert "[red]\\x1b[2J\\nnext" in shown
    assert "a\\tb\\x07" in shown


@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
def test_unreadable_headers_are_printed_as_text(
    run: Run, connection: Connection, made: str, three: list[int], hard: str
) -> None:
    put_headers(connection, three[1], hard)
    for command, option in (("peek", "--max-messages"), ("dequeue", "--batch-size")):
        rows = run(command, made, option, 9).rows
        assert [row["message_id"] for row in rows] == three
        assert str(rows[1]["headers"]).replace(" ", "") == hard.replace(" ", "")
    shown = run("show", made, three[1], "--json").row
    assert str(shown["headers"]).replace(" ", "") == hard.replace(" ", "")
    assert hard[:6] in run("show", made, three[1]).out


def test_show_prints_last_error_at_end(run: Run, queue: rowq.Queue, made: str) -> None:
    queue.enqueue(made, 1)
    (message,) = queue.dequeue_fast(made)
    trace = "Traceback:\n  line 7\nValueError: \x1b[31mno"
    queue.fail_now(made, message.claim_id, error=trace)
    shown = run("show", made, message.message_id).out
    assert shown.endswith("last error\nTraceback:\n  line 7\nValueError: \\x1b[31mno\n")
    assert shown.count("last error") == 1
    other = queue.enqueue(made, 2)
    lines = run("show", made, other.message_id).out.splitlines()
    assert ["last", "error", "-"] in [line.split() for line in lines]
