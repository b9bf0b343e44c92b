"""Options and settings by name: defaults, unknown names, signatures."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import rowq
import rowq.contrib.django
from rowq.contrib.testing import MemoryQueue
from rowq.options import MessageOptions, QueueSettings, with_defaults

WRONG: dict[str, Callable[[MemoryQueue], Any]] = {
    # mypy would refuse these calls.
    "create_queue": lambda queue: queue.create_queue("q", priority=1),  # type: ignore[call-arg]
    "alter_queue": lambda queue: queue.alter_queue("q", queue_nam="p"),  # type: ignore[call-arg]
    "enqueue": lambda queue: queue.enqueue("q", {}, body="text"),  # type: ignore[call-arg]
    "publish": lambda queue: queue.publish(
        "t",
        {},
        predecessor_ids=[1],  # type: ignore[call-arg]
    ),
}


@pytest.fixture
def queue() -> MemoryQueue:
    queue = MemoryQueue()
    queue.create_queue("q", lease_seconds=60)
    return queue


@pytest.mark.parametrize("method", WRONG)
def test_unknown_option_raises_type_error_with_the_names(queue: MemoryQueue, method: str) -> None:
    with pytest.raises(TypeError) as caught:
        WRONG[method](queue)
    text = str(caught.value)
    assert text.startswith(f"{method}() got an unexpected keyword argument '")
    known = "lease_seconds, max_attempts" if "queue" in method.split("_") else "message_type, head"
    assert f", expected one of {known}" in text


def test_unknown_option_enqueues_nothing(queue: MemoryQueue) -> None:
    with pytest.raises(TypeError, match="'delay'"):
        asyncio.run(queue.as_async().enqueue("q", {}, delay=3))  # type: ignore[call-arg]
    striped = rowq.Striped("s", 2, queue)
    striped.create_queue()
    with pytest.raises(TypeError, match="'delay'"):
        striped.enqueue({}, delay=3)  # type: ignore[call-arg]
    assert [stats.ready for stats in queue.queue_stats()] == [0, 0, 0]


def test_omitted_options_have_contract_defaults(queue: MemoryQueue) -> None:
    queue.enqueue("q", 1)
    queue.enqueue("q", 2, message_type="t", priority=7)
    assert [message.priority for message in queue.peek("q", max_messages=2)] == [5, 7]
    assert set(with_defaults(QueueSettings, {}, "create_queue").values()) == {None}
    assert with_defaults(MessageOptions, {"priority": 1}, "enqueue")["priority"] == 1


@pytest.mark.parametrize(
    "function",
    [
        rowq.Queue.enqueue,
        rowq.AsyncQueue.enqueue,
        rowq.Striped.enqueue,
        rowq.contrib.django.enqueue,
    ],
)
def test_signature_shows_each_option_with_its_type(function: Callable[..., Any]) -> None:
    shown = inspect.signature(function).parameters
    assert (
        list(MessageOptions.__annotations__) == list(shown)[-len(MessageOptions.__annotations__) :]
    )
    assert str(shown["priority"]) == "priority: int = 5"
    assert str(shown["expire_seconds"]) == "expire_seconds: float | None = None"
