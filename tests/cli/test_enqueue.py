"""rowq enqueue: sources of the body, and all options."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run

BODIES = [
    *('{"id": 1}', "no JSON", "ÄÖÜ 🐘 \\ ' \" $1 %s", " a \n b "),
    *("plain [text]", "[" + "9" * 5000 + "]", "true"),
]


@pytest.mark.parametrize("body", BODIES)
def test_body_argument_is_stored_unchanged(
    run: Run, queue: rowq.Queue, made: str, body: str
) -> None:
    sent = run("enqueue", made, "--json", "--", body).row
    (message,) = queue.dequeue_fast(made)
    assert (message.message_id, message.body) == (sent["message_id"], body)
    assert sent["outcome"] == "enqueued"


@pytest.mark.parametrize("dash", [(), ("-",)])
def test_standard_input_is_stored_unchanged(
    run: Run, queue: rowq.Queue, made: str, dash: tuple[str, ...]
) -> None:
    for body in ('{"id": 1}\n', "1\n2\n"):
        done = run("enqueue", made, *dash, given=body)
        assert (done.code, done.err) == (0, "")
        assert [message.body for message in queue.dequeue_fast(made, 9)] == [body]


def test_binary_file_is_stored_as_bytes(
    run: Run, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 100
    (tmp_path / "picture").write_bytes(content)
    assert run("enqueue", made, "--binary", tmp_path / "picture").code == 0
    assert run("enqueue", made, "--binary", "-", given=content).code == 0
    assert [message.data for message in queue.dequeue_fast(made, 2)] == [content, content]


def test_no_body_stores_null(run: Run, queue: rowq.Queue, made: str) -> None:
    assert run("enqueue", made, "--no-body").code == 0
    (message,) = queue.dequeue_fast(made)
    assert (message.body, message.body_binary) == (None, None)


def test_options_reach_message(run: Run, queue: rowq.Queue, made: str) -> None:
    sent = run(
        *("enqueue", made, "1", "--json", "--priority", 2, "--dedup-key", "key", "--type", "paid"),
        *("--header", "a=1", "--header", "b=x=y", "--max-attempts", 3, "--delay", 3600),
    ).row
    found = queue.get_message(made, sent["message_id"])
    assert found is not None
    assert (found.priority, found.dedup_key, found.message_type) == (2, "key", "paid")
    assert (found.headers, found.max_attempts) == ({"a": "1", "b": "x=y"}, 3)
    assert found.due_at is not None
    assert timedelta(minutes=59) < found.due_at - datetime.now(UTC) < timedelta(minutes=61)


@pytest.mark.requires("expiry")
def test_expire_sets_expires_at(run: Run, queue: rowq.Queue, made: str) -> None:
    sent = run("enqueue", made, "1", "--expire", 90, "--json").row
    found = queue.get_message(made, sent["message_id"])
    assert found is not None
    assert found.expires_at is not None
    assert timedelta(seconds=89) < found.expires_at - found.enqueued_at < timedelta(seconds=91)
    assert run("enqueue", made, "1", "--expire", 0).code == ExitCode.REFUSED


def test_show_prints_the_producer_name(run: Run, made: str) -> None:
    sent = run("enqueue", made, "1", "--producer-name", "shop", "--json").row
    assert "producer name  shop" in run("show", made, sent["message_id"]).out


@pytest.mark.requires("groups")
def test_group_blocks_message_and_show_prints_blocker(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    ids = [run("enqueue", made, text, "--group", "a", "--json").row["message_id"] for text in "123"]
    shown = run("show", made, ids[2]).out
    assert "state          blocked" in shown
    assert f"waits for      {ids[1]}" in shown
    assert "group key      a" in shown
    assert run("stats", made, "--json").row["blocked"] == 2
    assert "blocked" in run("stats", made).out
    (message,) = queue.dequeue_fast(made, 10)
    assert message.body == "1"


@pytest.mark.requires("predecessors")
def test_after_blocks_message_and_show_prints_predecessor(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    first, second = (run("enqueue", made, text, "--json").row["message_id"] for text in "12")
    after = ("--after", first, "--after", second, "--on-predecessor-dead", "fail")
    third = run("enqueue", made, "3", *after, "--json").row["message_id"]
    shown = run("show", made, third).out
    assert "state          blocked" in shown
    assert f"waits for      {second}" in shown
    for message in queue.dequeue_fast(made, 10):
        queue.fail_now(made, message.claim_id, [message.message_id])
    assert f"predecessor {second} is dead" in run("show", made, third).out


def test_run_at_accepts_time_with_and_without_offset(
    run: Run, queue: rowq.Queue, made: str
) -> None:
    next_year = datetime.now(UTC).year + 1
    for text in (f"{next_year}-01-31T18:00+01:00", f"{next_year}-01-31T18:00"):
        sent = run("enqueue", made, "1", "--run-at", text, "--json").row
        found = queue.get_message(made, sent["message_id"])
        assert found is not None
        assert found.due_at == datetime.fromisoformat(text).astimezone(UTC)


def test_duplicate_is_reported_and_not_added(run: Run, queue: rowq.Queue, made: str) -> None:
    first = run("enqueue", made, "1", "--dedup-key", "same").out
    second = run("enqueue", made, "2", "--dedup-key", "same").out
    (message,) = queue.peek(made)
    assert first == f"enqueued message {message.message_id}\n"
    assert second == f"duplicate of message {message.message_id}\n"
    assert queue.queue_stats(made)[0].ready == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("body", "--no-body"),
        ("body", "--binary", "y"),
        ("--binary", "y", "--no-body"),
        ("1", "--header", "no_equals_sign"),
        ("1", "--run-at", "tomorrow"),
    ],
)
def test_invalid_arguments_are_wrong_usage(run: Run, made: str, arguments: tuple[str, ...]) -> None:
    assert run("enqueue", made, *arguments).code == ExitCode.USAGE


@pytest.mark.parametrize("option", [("--priority", 10), ("--delay", -1), ("--max-attempts", -1)])
def test_enqueue_refuses_value_out_of_range(
    run: Run, queue: rowq.Queue, made: str, option: tuple[str, int]
) -> None:
    done = run("enqueue", made, "1", *option)
    assert done.code == ExitCode.REFUSED
    assert done.err.startswith("rowq: RQ711 ")
    assert queue.queue_stats(made)[0].ready == 0


def test_enqueue_refuses_input_that_is_not_utf8(run: Run, queue: rowq.Queue, made: str) -> None:
    done = run("enqueue", made, given=b"\xff\xfe")
    assert done.code == ExitCode.BAD_INPUT
    assert "--binary" in done.err
    assert queue.queue_stats(made)[0].ready == 0


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        ((), "standard input"),
        (("-",), "standard input"),
        (("--binary", "-"), "standard input"),
        (("--binary", "/dev/null"), "/dev/null"),
        (("",), "BODY"),
    ],
)
def test_enqueue_refuses_empty_body(
    run: Run, queue: rowq.Queue, made: str, arguments: tuple[str, ...], source: str
) -> None:
    done = run("enqueue", made, *arguments, given=b"")
    assert done.code == ExitCode.BAD_INPUT
    assert done.err == f"rowq: {source} is empty; use --no-body for a message without a body\n"
    assert queue.queue_stats(made)[0].ready == 0


@pytest.mark.parametrize("body", ["{bad json", " [1, 2", '{"a": NaN}', "{'id': 1}"])
@pytest.mark.parametrize("command", ["enqueue", "publish"])
def test_enqueue_refuses_invalid_json_without_text_option(
    run: Run, queue: rowq.Queue, made: str, command: str, body: str
) -> None:
    target = made if command == "enqueue" else f"topic.{made[-8:]}"
    if command == "publish":
        queue.bind_topic(made, target)
    for source, refused in {
        "BODY": run(command, target, "--", body),
        "standard input": run(command, target, given=body),
    }.items():
        assert refused.code == ExitCode.BAD_INPUT
        assert refused.err.startswith(f"rowq: {source} is not JSON: ")
        assert refused.err.endswith("; use --text to send it unchanged\n")
    assert queue.peek(made) == []
    assert run(command, target, "--text", "--", body).code == 0
    assert [message.body for message in queue.dequeue_fast(made, 9)] == [body]
