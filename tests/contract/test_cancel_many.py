"""cancel_many."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from tests.helpers.calls import rolled_back
from tests.helpers.cancelling import cancel_all
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together

pytestmark = pytest.mark.requires("cancel")

HEADERS: list[tuple[Any, str | None]] = [
    ("blue", "blue"),
    ("Blue", None),
    ("blue ", None),
    ("", ""),
    ("\N{SNAKE} 'x' \" \\ \n", "\N{SNAKE} 'x' \" \\ \n"),
    (7, "7"),
    ("7", "7"),
    (-7, "-7"),
    (9007199254740993, "9007199254740993"),
    (True, "true"),
    (False, "false"),
    (None, None),
    (["blue"], None),
    ({"blue": 1}, None),
]
"""Header values and the text that matches each; None if no text does."""


def cancel(queue: CheckedQueue, **filters: Any) -> int:
    """Cancel by filters; return the number of cancelled messages."""
    return cancel_all(partial(queue.call_one, "cancel_many"), **filters)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("archive_days", [0, 1])
def test_cancel_many_removes_matching_messages_in_every_state(
    queue: CheckedQueue, archive_days: int
) -> None:
    queue.call("alter_queue", archive_days=archive_days)
    ids = queue.make_dead("dead", message_type="mail")
    ids += queue.enqueue("released", message_type="mail")
    queue.finish_one("release")
    ids += queue.enqueue("ready", message_type="mail", priority=3)
    ids += queue.enqueue("delayed", message_type="mail", delay_seconds=60)
    ids += queue.enqueue("group_waiting", "behind it", message_type="mail", group_key="g")
    ids += queue.enqueue("blocked", message_type="mail", predecessor_ids=ids[-1:])
    others = queue.enqueue("no type") + queue.enqueue("other", message_type="mails")
    assert cancel(queue, message_type="mail") == len(ids)
    state = "cancelled" if archive_days else None
    assert [queue.state_of(message_id) for message_id in ids] == [state] * len(ids)
    assert [row.message_id for row in queue.dequeue(10)] == others
    assert cancel(queue, message_type="mail") == 0


@pytest.mark.promise("P03", "P15")
def test_cancel_many_skips_leased_and_finished_messages(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    finished, leased, ready = queue.enqueue(*"abc", message_type="mail")
    queue.finish_one()
    queue.dequeue_one()
    assert cancel(queue, message_type="mail") == 1
    assert [queue.state_of(one) for one in (finished, leased, ready)] == [
        *("completed", "leased", "cancelled")
    ]


@pytest.mark.promise("P15")
def test_cancel_many_keeps_other_queues_messages(queue: CheckedQueue) -> None:
    other = queue.another()
    other.enqueue("a", message_type="mail")
    assert cancel(queue, message_type="mail") == 0
    assert other.counts() == (1, 0, 0, 0)


@pytest.mark.promise("P15")
def test_cancel_many_requires_every_filter_to_match(queue: CheckedQueue) -> None:
    queue.enqueue("a", message_type="mail")
    queue.enqueue("b", message_type="mail", group_key="g")
    [message_id] = queue.enqueue(
        "c", message_type="mail", group_key="g", headers={"tenant": "acme", "n": 1}
    )
    queue.enqueue("d", message_type="mail", group_key="G", headers={"tenant": "acme"})
    filters = {"message_type": "mail", "group_key": "g"}
    headers = {"header_name": "tenant", "header_value": "acme"}
    before = {"enqueued_before": datetime.now(UTC) - timedelta(days=1)}
    assert cancel(queue, **filters, **headers, **before) == 0
    assert cancel(queue, **filters, **headers) == 1
    assert queue.state_of(message_id) is None
    assert cancel(queue, **filters) == 1
    assert cancel(queue, message_type="mail ") == 0
    assert queue.counts()[0] == 2


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("value", "text"), HEADERS, ids=repr)
def test_cancel_many_matches_a_header_by_its_text(
    queue: CheckedQueue, value: Any, text: str | None
) -> None:
    queue.enqueue("none")
    queue.enqueue("other", headers={"other": value, "inner": {"tint": value}})
    [message_id] = queue.enqueue("it", headers={"tint": value, "z": "blue"})
    every = {"blue", "7", "null", "None", "", '["blue"]', *([text] if text is not None else [])}
    for tried in every - {text}:
        assert cancel(queue, header_name="tint", header_value=tried) == 0
    assert cancel(queue, header_name="tint", header_value=text) == 1 if text is not None else True
    assert (queue.state_of(message_id) is None) == (text is not None)


@pytest.mark.pitfall("oracle 36")
@pytest.mark.promise("P15")
@together(
    "name", ["b", "a.b", "a b", "$", "*", "a[0]", "'", "x" * 200, "%", "a-b", "1", "~", "last"]
)
def test_cancel_many_accepts_any_valid_header_name(queue: CheckedQueue, name: str) -> None:
    queue.enqueue("a", headers={name: "yes", "a": {"b": "yes", "0": "yes"}})
    queue.enqueue("b", headers={"z": "yes"})
    assert cancel(queue, header_name=name, header_value="yes") == 1


@pytest.mark.promise("P15")
def test_cancel_many_matches_only_messages_enqueued_before(queue: CheckedQueue) -> None:
    [old] = queue.enqueue("old")
    enqueued_at = queue.message(old).enqueued_at
    assert cancel(queue, enqueued_before=enqueued_at) == 0
    assert cancel(queue, enqueued_before=enqueued_at + timedelta(microseconds=1)) == 1


@pytest.mark.promise("P15")
def test_cancel_many_scans_at_most_max_messages(queue: CheckedQueue) -> None:
    ids = queue.enqueue(*"abcde", message_type="mail")
    row = queue.call_one("cancel_many", message_type="other", max_messages=2)
    assert row.cancelled == 0
    for after, expected in ((ids[1], (2, ids[3])), (ids[3], (1, None))):
        row = queue.call_one(
            "cancel_many", message_type="mail", max_messages=2, after_message_id=after
        )
        assert (row.cancelled, row.after_message_id) == expected
    assert cancel(queue, message_type="mail", max_messages=1) == 2
    assert queue.counts() == (0, 0, 0, 0)


@pytest.mark.promise("P12")
def test_cancel_many_releases_dedup_keys(queue: CheckedQueue) -> None:
    for key in "xyz":
        queue.enqueue("a", message_type="mail", dedup_key=key)
    assert cancel(queue, message_type="mail") == 3
    assert queue.held_keys() == 0


@pytest.mark.promise("P17")
def test_rolled_back_cancel_many_changes_nothing(queue: CheckedQueue) -> None:
    queue.enqueue("a", "b", message_type="mail")
    with rolled_back(queue.connection):
        assert cancel(queue, message_type="mail") == 2
    assert queue.take() == ["a", "b"]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({}, "filter"),
        ({"message_type": None}, "filter"),
        ({"header_name": "a"}, "header_value"),
        ({"header_value": "a"}, "header_name"),
        ({"header_name": "a", "message_type": "a"}, "header_value"),
        ({"header_name": "", "header_value": "a"}, "header_name"),
        ({"header_name": "x" * 201, "header_value": "a"}, "header_name"),
        ({"header_name": 'a"b', "header_value": "a"}, "header_name"),
        ({"header_name": "a\\b", "header_value": "a"}, "header_name"),
        ({"header_name": "a\n", "header_value": "a"}, "header_name"),
        ({"header_name": "-a", "header_value": "a"}, "header_name"),
        ({"header_name": "\N{SNAKE}", "header_value": "a"}, "header_name"),
        ({"message_type": "mail", "max_messages": 0}, "max_messages"),
        ({"message_type": "mail", "max_messages": 10001}, "max_messages"),
    ],
)
def test_cancel_many_refuses_invalid_filters(
    queue: CheckedQueue, arguments: dict[str, Any], word: str
) -> None:
    queue.enqueue("a", message_type="mail")
    assert word in queue.refused("RQ711", "cancel_many", **arguments)
    assert queue.counts() == (1, 0, 0, 0)
