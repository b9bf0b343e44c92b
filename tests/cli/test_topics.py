"""The commands rowq topic ... and rowq publish."""

import pytest

import rowq
from rowq.tools.console.exit_codes import ExitCode
from tests.cli.conftest import Run
from tests.helpers.topics import word

__all__ = ["word"]

pytestmark = pytest.mark.requires("topics")


def test_topic_commands_bind_publish_and_unbind(
    run: Run, queue: rowq.Queue, made: str, word: str
) -> None:
    pattern = f"{word}.*"
    assert run("topic", "list", made).out == "no patterns\n"
    assert run("topic", "bind", made, pattern).out == f"{made}: {pattern} bound\n"
    assert run("topic", "bind", made, pattern, "--json").row["outcome"] == "exists"
    assert run("topic", "list", made, "--json").row == {
        "queue_name": made,
        "topic_pattern": pattern,
    }
    sent = run("publish", f"{word}.paid", '{"id": 1}', "--priority", 3, "--json").row
    (message,) = queue.dequeue_fast(made)
    assert (message.message_id, message.data) == (sent["message_id"], {"id": 1})
    assert message.message_type == f"{word}.paid"
    assert run("topic", "unbind", made, pattern).out == f"{made}: {pattern} unbound\n"
    assert run("topic", "unbind", made, pattern).out == f"{made}: {pattern} not bound\n"
    nowhere = run("publish", f"{word}.paid", "--no-body")
    assert (nowhere.code, nowhere.out) == (0, "no queue is bound to the topic\n")


def test_invalid_topic_is_refused(run: Run, made: str) -> None:
    assert run("publish", "a..b", "--no-body").code == ExitCode.REFUSED
    assert run("topic", "bind", made, "a.#.b").code == ExitCode.REFUSED
