"""find_message."""

from typing import Any

import pytest

from tests.helpers.queues import CheckedQueue


def found(queue: CheckedQueue, key: str) -> list[int]:
    return [row.message_id for row in queue.call("find_message", dedup_key=key)]


@pytest.mark.promise("P20")
def test_find_message_returns_what_get_message_returns(queue: CheckedQueue) -> None:
    values = {"dedup_key": "order 7", "headers": {"a": [1]}, "message_type": "t", "priority": 3}
    values["producer_name"] = "shop"
    [message_id] = queue.enqueue("body", **values)
    row = queue.call_one("find_message", dedup_key="order 7")
    assert (row.message_id, row.body, row.dedup_key) == (message_id, "body", "order 7")
    assert row.producer_name == "shop"
    assert row == queue.message(message_id)


@pytest.mark.promise("P12")
@pytest.mark.parametrize("state", ["ready", "delayed", "blocked", "leased", "retrying"])
def test_find_message_finds_every_unfinished_state(queue: CheckedQueue, state: str) -> None:
    if state == "blocked":
        queue.enqueue("first", group_key="g")
    given: dict[str, dict[str, Any]] = {
        "delayed": {"delay_seconds": 1000},
        "blocked": {"group_key": "g"},
    }
    [message_id] = queue.enqueue("a", dedup_key="key", **given.get(state, {}))
    if state in {"leased", "retrying"}:
        claim_id = queue.dequeue_one(worker_name="w").claim_id
        if state == "retrying":
            queue.call("retry_later", claim_id=claim_id, delay_seconds=1000)
    row = queue.call_one("find_message", dedup_key="key")
    assert row.message_id == message_id
    assert row.state == ("delayed" if state == "retrying" else state)
    assert row.worker_name == ("w" if state == "leased" else None)


@pytest.mark.promise("P12")
@pytest.mark.parametrize("ending", ["complete", "fail_now"])
def test_find_message_ignores_ended_messages(queue: CheckedQueue, ending: str) -> None:
    queue.call("alter_queue", archive_days=1)
    queue.enqueue("old", dedup_key="key")
    queue.finish_one(ending)
    assert found(queue, "key") == []
    [newer] = queue.enqueue("newer", dedup_key="key")
    assert found(queue, "key") == [newer]


@pytest.mark.promise("P12", "P20")
def test_find_message_compares_keys_as_bytes(queue: CheckedQueue) -> None:
    keys = ["key", "Key", "key ", " key", "k\N{LATIN SMALL LETTER E WITH ACUTE}y", "k" * 200]
    keys += ["\N{ELEPHANT}" * 200, "ke\N{COMBINING ACUTE ACCENT}y", "%", "\\"]
    ids = {key: queue.enqueue("x", dedup_key=key)[0] for key in keys}
    assert len(set(ids.values())) == len(keys)
    for key, message_id in ids.items():
        assert found(queue, key) == [message_id]
    for key in ("KEY", "key  ", "k" * 199, "k" * 201, "\N{ELEPHANT}" * 201, "_", "x" * 70_000):
        assert found(queue, key) == []


@pytest.mark.promise("P12")
def test_find_message_searches_one_queue(queue: CheckedQueue) -> None:
    other = queue.another()
    [own] = queue.enqueue("own", dedup_key="key")
    assert found(other, "key") == []
    [theirs] = other.enqueue("theirs", dedup_key="key")
    assert (found(queue, "key"), found(other, "key")) == ([own], [theirs])


@pytest.mark.promise("P15")
def test_find_message_refuses_a_null_key(queue: CheckedQueue) -> None:
    assert "dedup_key" in queue.refused("RQ711", "find_message", dedup_key=None)
