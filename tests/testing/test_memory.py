"""The same calls on an engine's queue and on one in memory return the same."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

import rowq
from rowq import NewMessage
from rowq.contrib.testing import MemoryQueue
from tests.helpers.cancelling import cancel_all

FAR = datetime(2030, 1, 1, tzinfo=UTC)

REFUSED: dict[str, Callable[[rowq.Queue, str], object]] = {
    "no queue": lambda queue, name: queue.enqueue(f"{name}x", 1),
    "priority": lambda queue, name: queue.enqueue(name, 1, priority=10),
    "delay": lambda queue, name: queue.enqueue(name, 1, delay_seconds=-1),
    "two times": lambda queue, name: queue.enqueue(name, 1, delay_seconds=1, run_at=FAR),
    "key": lambda queue, name: queue.enqueue(name, 1, dedup_key=""),
    "type": lambda queue, name: queue.enqueue(name, 1, message_type="x" * 201),
    "length": lambda queue, name: queue.enqueue(name, text="x" * 101),
    "predecessor": lambda queue, name: queue.enqueue(name, 1, predecessor_ids=[1 << 40]),
    "dead": lambda queue, name: queue.enqueue(name, 1, on_predecessor_dead="unknown"),
    "expiry": lambda queue, name: queue.enqueue(name, 1, expire_seconds=0),
    "headers": lambda queue, name: queue.enqueue(name, 1, headers=[1]),  # type: ignore[arg-type]
    "one of a batch": lambda queue, name: queue.enqueue_batch(name, [1, NewMessage(priority=-1)]),
    "position": lambda queue, name: queue.enqueue_batch(
        name, [NewMessage(data=1, predecessor_positions=[1])]
    ),
    "topic": lambda queue, _: queue.publish("a..b", 1),
    "pattern": lambda queue, name: queue.bind_topic(name, "a.#.b"),
    "batch size": lambda queue, name: queue.dequeue_fast(name, 1001),
    "lease": lambda queue, name: queue.dequeue_fast(name, lease_seconds=0),
    "next batch size": lambda queue, name: queue.complete_and_dequeue(name, 1, batch_size=1001),
    "no results": lambda queue, name: queue.complete_and_dequeue(name, 1, [1], results=[1]),
    "claim": lambda queue, name: queue.complete(name, 1 << 40),
    "results": lambda queue, name: queue.complete(name, 1 << 40, [1], results=[1]),
    "setting": lambda queue, name: queue.alter_queue(name, backoff_factor=0.5),
    "filters": lambda queue, name: queue.cancel_many(name),
    "no change": lambda queue, name: queue.alter_message(name, 1),
    "change": lambda queue, name: queue.alter_message(name, 1, priority=10),
    "new expiry": lambda queue, name: queue.alter_message(name, 1, expire_seconds=0.0001),
    "message": lambda queue, name: queue.get_message(name, None),  # type: ignore[arg-type]
    "not empty": lambda queue, name: queue.drop_queue(name),
}


def test_memory_queue_refuses_the_same(
    rowq_queue: rowq.Queue, memory: MemoryQueue, queue_name: str
) -> None:
    for queue in (rowq_queue, memory):
        queue.create_queue(queue_name, max_body_length=100)
        queue.enqueue(queue_name, 0)
    for what, call in REFUSED.items():
        with pytest.raises(rowq.Refused) as expected:
            call(rowq_queue, queue_name)
        with pytest.raises(rowq.Refused) as found:
            call(memory, queue_name)
        assert type(found.value) is type(expected.value), what
        assert memory.queue_stats(queue_name)[0].ready == 1, what


def changes(queue: rowq.Queue, name: str) -> Iterator[Any]:
    """Change a message in several ways, and yield the answers and the message."""
    sent = queue.enqueue(name, "old", headers={"a": 1}, message_type="late").message_id
    ways: list[dict[str, Any]] = [
        {"data": {"new": 1}, "priority": 2},
        {"data": b"\x01", "headers": {"b": 2}, "max_attempts": 4},
        {"text": "plain", "run_at": FAR, "expire_seconds": 1000},
        {"message_type": "later", "expire_seconds": 0},
        {"delay_seconds": 0},
        {"message_type": "late", "run_at": FAR},
    ]
    for way in ways:
        yield queue.alter_message(name, sent, **way)
        yield queue.get_message(name, sent)
    yield queue.alter_message(name, 1 << 40, text="x")


def life(queue: rowq.Queue, name: str) -> Iterator[Any]:
    """Make calls of every kind, and yield their answers."""
    yield queue.create_queue(name, max_attempts=2, backoff_jitter=0, result_seconds=600)
    yield queue.create_queue(name)
    yield queue.bind_topic(name, f"{name}.*.#")
    yield queue.list_topics(name)
    yield queue.enqueue(name, {"id": 1}, headers={"tenant": "a", "n": 1}, dedup_key="one")
    yield queue.enqueue(name, None, dedup_key="one", run_at=FAR)
    yield queue.enqueue(name, b"\x00", run_at=FAR, message_type="late")
    yield queue.publish(f"{name}.paid.late", [1], headers={"tenant": "b"})
    yield queue.publish(name, [1])
    grouped = queue.publish_batch([NewMessage(topic=f"{name}.x", text="x", group_key="g")] * 2)
    chained = queue.enqueue_batch(
        name, [NewMessage(data=1, priority=0), NewMessage(data=2, predecessor_positions=[1])]
    )
    for sent in (grouped, chained):
        yield sent
        yield from (queue.explain_message(name, one.message_id) for one in sent)
    yield queue.queue_stats(name)
    yield from (queue.explain_message(name, one.message_id) for one in queue.list_delayed(name))
    yield queue.peek(name, max_messages=10)
    yield queue.explain_message(name, 1 << 40)
    yield queue.list_delayed(name)
    messages = queue.dequeue_fast(name, 2, worker_name="anna")
    yield messages
    claim, (first, second) = messages[0].claim_id, messages
    yield [
        dataclasses.replace(one, lease_left_seconds=0, lease_until=None)  # type: ignore[arg-type]
        for one in queue.list_claims(name)
    ]
    yield queue.extend_lease(name, claim, progress="half").cancel_ids
    yield queue.get_message(name, first.message_id)
    yield queue.explain_message(name, first.message_id)
    yield queue.complete(name, claim, [first.message_id], results=[{"a": 1}])
    yield queue.get_result(name, first.message_id)
    retried = queue.retry_later(name, claim, delay_seconds=0, error="no")
    yield [outcome.outcome for outcome in retried]
    (again,) = queue.dequeue_fast(name)
    yield again
    yield queue.cancel(name, [again.message_id, 1 << 40], include_leased=True)
    yield queue.fail_now(name, again.claim_id, error="never")
    yield queue.get_result(name, second.message_id)
    (third,) = queue.dequeue_fast(name)
    yield queue.fail_now(name, third.claim_id, [third.message_id, again.message_id], error="never")
    yield queue.list_dead(name)
    yield from (queue.explain_message(name, one.message_id) for one in (first, third))
    yield queue.get_result(name, third.message_id)
    yield queue.reset(name, [third.message_id, again.message_id])
    (fourth,) = queue.dequeue_fast(name)
    ids = [fourth.message_id, third.message_id]
    yield queue.complete_and_dequeue(name, fourth.claim_id, ids, results=["done", 0])
    yield queue.get_result(name, fourth.message_id)
    yield queue.complete_and_dequeue(name, fourth.claim_id)
    yield queue.complete_and_dequeue(name, fourth.claim_id, ids)
    yield queue.find_message(name, "one")
    yield from changes(queue, name)
    yield cancel_all(partial(queue.cancel_many, name), header_name="tenant", header_value="b")
    yield cancel_all(partial(queue.cancel_many, name), message_type="late")
    # The first call may drop a day of the archive that other queues have left.
    queue.maintain(name)
    yield queue.maintain(name)
    yield queue.pause_queue(name)
    yield queue.dequeue_fast(name)
    yield queue.resume_queue(name)
    yield queue.purge_queue(name)
    yield queue.unbind_topic(name, f"{name}.*.#")
    yield queue.drop_queue(name, force=True)


def test_memory_queue_returns_the_same(
    rowq_queue: rowq.Queue, memory: MemoryQueue, queue_name: str
) -> None:
    # In the database, ids start at other numbers, and the clock advances.
    expected, found = ([*map(Plain(), life(queue, queue_name))] for queue in (rowq_queue, memory))
    for number, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert other == one, f"answer {number}"


class Plain:
    """Turns answers into plain values: ids in order of appearance, times removed."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, int], int] = {}

    def __call__(self, answer: Any) -> Any:
        if isinstance(answer, list):
            return [self(one) for one in answer]
        if not dataclasses.is_dataclass(answer):
            return answer
        return {
            field.name: self._value(field.name, getattr(answer, field.name))
            for field in dataclasses.fields(answer)
        }

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, datetime):
            return "a time"
        if name == "messages":
            return self(value)
        if name == "stale_ids":
            return [self._value("message_id", one) for one in value]
        if name.endswith("_seconds") and name.startswith("oldest"):
            return value is None
        if name in {"message_id", "claim_id", "waits_for", "blocking_id"} and value is not None:
            kind = name.removesuffix("_id")
            return self._ids.setdefault((kind, value), len(self._ids))
        return value


@pytest.mark.parametrize(
    "call",
    [
        lambda queue: queue.health(),
        lambda queue: queue.create_queue("limited", max_leased=1),
        lambda queue: queue.create_schedule("orders", "nightly", 1, cron="@daily"),
    ],
)
def test_memory_queue_names_missing_features(
    memory: MemoryQueue, call: Callable[[MemoryQueue], object]
) -> None:
    with pytest.raises(NotImplementedError, match="a MemoryQueue has no"):
        call(memory)


def test_async_memory_queue_has_the_same_messages(memory: MemoryQueue) -> None:
    async def place() -> list[rowq.Message]:
        async with memory.as_async() as queue:
            await queue.create_queue("orders")
            await queue.enqueue("orders", {"id": 1})
            return await queue.dequeue_wait("orders", wait_seconds=10)

    (message,) = asyncio.run(place())
    assert memory.complete("orders", message.claim_id)[0].outcome == "completed"


def test_pass_seconds_advances_the_clock(memory: MemoryQueue) -> None:
    memory.create_queue("orders", lease_seconds=30)
    memory.enqueue("orders", 1, expire_seconds=100)
    (message,) = memory.dequeue_wait("orders", wait_seconds=20)
    memory.pass_seconds(30)
    assert memory.maintain("orders")[0].reaped == 1
    with pytest.raises(rowq.StaleClaim):
        memory.complete("orders", message.claim_id)
    memory.pass_seconds(70)
    assert memory.maintain("orders")[0].expired == 1
