"""Outcomes of handlers: returned values, exceptions, awaitables."""

import asyncio
import functools
import logging
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import rowq
from tests.helpers.worker_queue import MakeQueue, WorkerQueue

each_mode = pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=60, backoff_base_seconds=0, max_attempts=2)


def states(queue: WorkerQueue, ids: list[int]) -> list[str | None]:
    found = [queue.get_message(message_id) for message_id in ids]
    return [details.state if details else None for details in found]


def errors(queue: WorkerQueue) -> dict[int, str]:
    """Return the last error of each dead message."""
    return {dead.message_id: str(dead.last_error) for dead in queue.list_dead()}


class Cancelled(BaseException):
    """A BaseException, such as gevent.Timeout and trio.Cancelled."""


class Permanent(rowq.Fail):
    """A decision whose __init__ does not call its base class."""

    def __init__(self, code: int) -> None:
        self.code = code


class Later(rowq.Retry):
    """A decision with an invalid delay."""

    delay_seconds: Any = "soon"

    def __init__(self, code: int) -> None:
        self.code = code


class Unreadable(rowq.Fail):
    """A decision with an error that is not a str."""

    error: Any = ("a tuple with \0 and \ud800",)


class Broken(rowq.Fail):
    """A decision whose attributes raise."""

    def __init__(self) -> None:
        pass

    @property
    def error(self) -> str:  # type: ignore[override]
        raise RuntimeError("unreadable")


@each_mode
@pytest.mark.parametrize(
    "odd", [Permanent(7), Unreadable(), Broken()], ids=lambda returned: type(returned).__name__
)
def test_subclass_of_fail_counts_with_any_init(
    queue: WorkerQueue, odd: rowq.Fail, transactional: bool
) -> None:
    ids = queue.fill(3)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise odd

    stats = queue.drain(handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (2, 0, 1)
    assert states(queue, ids) == [None, "dead", None]


def test_subclass_of_retry_counts_with_any_init(queue: WorkerQueue) -> None:
    queue.fill(2)

    def handler(message: rowq.Message) -> None:
        if message.data == 1 and message.attempt == 1:
            raise Later(7)

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 0)


@each_mode
@pytest.mark.parametrize(
    "raised",
    [asyncio.CancelledError, Cancelled, GeneratorExit, SystemExit],
    ids=lambda error: error.__name__,
)
def test_base_exception_costs_only_its_message(
    queue: WorkerQueue, raised: type[BaseException], transactional: bool
) -> None:
    ids = queue.fill(3)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise raised("left")

    stats = queue.drain(handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)
    assert states(queue, ids) == [None, "dead", None]
    assert raised.__name__ in errors(queue)[ids[1]]


@each_mode
def test_keyboard_interrupt_ends_the_worker(queue: WorkerQueue, transactional: bool) -> None:
    ids = queue.fill(3)
    queue.alter_queue(backoff_base_seconds=900)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise KeyboardInterrupt

    with pytest.raises(rowq.WorkerFailed, match="KeyboardInterrupt"):
        queue.drain(handler, transactional=transactional)
    first = "ready" if transactional else None
    assert states(queue, ids) == [first, "delayed", "ready"]
    assert [message.attempt for message in queue.peek(max_messages=5)] == [0] * (1 + transactional)


@each_mode
def test_returned_decision_counts_as_raised(queue: WorkerQueue, transactional: bool) -> None:
    ids = queue.fill(3)

    def handler(message: rowq.Message, *_: Any) -> Any:
        return [None, rowq.Fail("no"), rowq.Retry(900, "not yet")][message.data]

    stats = queue.drain(handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (1, 1, 1)
    assert states(queue, ids) == [None, "dead", "delayed"]
    assert errors(queue) == {ids[1]: "no"}


@each_mode
@pytest.mark.parametrize("how", ["raised", "returned", "in a batch"])
def test_snooze_delays_without_spending_the_attempt(
    queue: WorkerQueue, how: str, transactional: bool
) -> None:
    queue.alter_queue(max_attempts=1)
    ids = queue.fill(3)

    def handler(given: Any, *_: Any) -> Any:
        if how == "in a batch":
            return {message.message_id: rowq.Snooze(900) for message in given if message.data}
        if how == "raised" and given.data:
            raise rowq.Snooze(900)
        return rowq.Snooze(900) if given.data else None

    per: Any = "batch" if how == "in a batch" else "message"
    stats = queue.drain(handler, transactional=transactional, per=per)
    assert (stats.processed, stats.snoozed, stats.released) == (1, 2, 0)
    assert states(queue, ids) == [None, "delayed", "delayed"]
    assert {message.attempt for message in queue.list_delayed()} == {0}


@pytest.mark.parametrize(
    ("seconds", "state", "attempt"),
    [(-5, "ready", 0), (1e12, "delayed", 0), ("soon", "delayed", 1), (None, "delayed", 1)],
)
def test_snooze_accepts_any_delay(
    queue: WorkerQueue, seconds: Any, state: str, attempt: int
) -> None:
    """A delay outside the range is clamped; what is not a number costs an attempt."""
    queue.alter_queue(backoff_base_seconds=900)
    (message_id,) = queue.fill(1)
    first = iter([rowq.Snooze(seconds)])

    def handler(_: rowq.Message) -> Any:
        answer = next(first, None)
        if answer is None:
            raise rowq.Retry(900)
        return answer

    stats = queue.drain(handler)
    if state == "ready":
        assert (stats.released, stats.retried) == (1, 1)
        return
    found = queue.get_message(message_id)
    assert found is not None
    assert (found.state, found.attempt) == (state, attempt)


@each_mode
@pytest.mark.parametrize("per", ["message", "batch"])
def test_unreadable_body_makes_only_its_message_dead(
    queue: WorkerQueue, transactional: bool, per: str
) -> None:
    queue.alter_queue(max_attempts=3, backoff_base_seconds=0)
    texts = ["1", "9" * 5000, "2", "[" * 100_000]
    messages = [rowq.NewMessage(text=text) for text in texts]
    ids = [sent.message_id for sent in queue.enqueue_batch(messages)]

    def handler(given: Any, *_: Any) -> None:
        for message in given if per == "batch" else [given]:
            assert message.data in {1, 2}

    stats = queue.drain(handler, transactional=transactional, per=per)
    assert (stats.processed, stats.failed) == (2, 2)
    assert states(queue, ids) == [None, "dead", None, "dead"]
    found = errors(queue)
    assert found[ids[1]].startswith(f"the body of message {ids[1]} cannot be read: Exceeds")
    assert found[ids[3]] == f"the body of message {ids[3]} cannot be read: it is nested too deeply"


def test_other_result_completes_with_one_warning(
    queue: WorkerQueue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.fill(5)
    with caplog.at_level(logging.WARNING, "rowq.worker"):
        stats = queue.drain(lambda message: message.data, threads=2)
    assert stats.processed == 5
    assert len([record for record in caplog.records if "returned" in record.getMessage()]) == 1


def generator() -> Iterator[int]:
    yield 1


async def asynchronous_generator() -> AsyncIterator[int]:
    yield 1


@each_mode
@pytest.mark.parametrize(
    "result",
    [rowq.Fail, ValueError("x"), generator, asynchronous_generator],
    ids=["class", "exception", "generator", "asynchronous generator"],
)
def test_mistaken_result_completes_nothing(
    queue: WorkerQueue, result: Any, transactional: bool
) -> None:
    ids = queue.fill(1)

    def handler(_message: rowq.Message, *_: Any) -> Any:
        return result() if result in (generator, asynchronous_generator) else result

    stats = queue.drain(handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (0, 1, 1)
    assert "the handler returned" in errors(queue)[ids[0]]


ODD_BATCHES: dict[str, Callable[[list[int]], Any]] = {
    "a class": lambda ids: {ids[0]: rowq.Fail},
    "a text": lambda ids: {ids[0]: "boom"},
    "an exception": lambda ids: {ids[0]: ValueError("x")},
    "ids as texts": lambda ids: {str(ids[0]): rowq.Fail()},
    "an id of another batch": lambda ids: {ids[0] - 1: rowq.Fail()},
    "pairs": lambda ids: [(ids[0], rowq.Fail())],
    "a set": lambda ids: {ids[0]},
    "a generator": lambda ids: (message_id for message_id in ids),
    "true": lambda _ids: True,
    "a list of nothing": lambda _ids: [],
    "an invalid id": lambda ids: {(ids[0],): None},
}


@each_mode
@pytest.mark.parametrize("odd", ODD_BATCHES)
def test_batch_with_invalid_result_is_retried(
    queue: WorkerQueue, odd: str, transactional: bool
) -> None:
    queue.fill(3)
    calls: list[list[int]] = []

    def handler(messages: list[rowq.Message], *_: Any) -> Any:
        calls.append([message.attempt for message in messages])
        return ODD_BATCHES[odd]([message.message_id for message in messages])

    stats = queue.drain(handler, per="batch", transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (0, 3, 3)
    assert calls == [[1, 1, 1], [2, 2, 2]]
    assert all("the handler returned" in error for error in errors(queue).values())


def test_batch_result_may_contain_none(queue: WorkerQueue) -> None:
    queue.fill(3)

    def handler(messages: list[rowq.Message]) -> Any:
        return {message.message_id: None for message in messages}

    assert queue.drain(handler, per="batch").processed == 3


@each_mode
@pytest.mark.parametrize("per", ["message", "batch"])
def test_async_handler_runs_in_one_loop(queue: WorkerQueue, per: Any, transactional: bool) -> None:
    ids = queue.fill(4)
    loops: list[asyncio.AbstractEventLoop] = []

    async def handler(given: Any, *_: Any) -> Any:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        fails = [message for message in (given if per == "batch" else [given]) if message.data == 1]
        if per == "batch":
            return {message.message_id: rowq.Fail("no") for message in fails}
        return rowq.Fail("no") if fails else None

    stats = queue.drain(handler, per=per, transactional=transactional, batch_size=2)
    assert (stats.processed, stats.failed) == (3, 1)
    assert states(queue, ids) == [None, "dead", None, None]
    assert len(set(loops)) == 1
    assert loops[0].is_closed()


async def named(calls: list[int], message: rowq.Message) -> None:
    await asyncio.sleep(0)
    calls.append(message.data)


class AsynchronousObject:
    """A callable object with an asynchronous __call__."""

    def __init__(self, calls: list[int]) -> None:
        self._calls = calls

    async def __call__(self, message: rowq.Message) -> None:
        await named(self._calls, message)


def decorated(calls: list[int]) -> Callable[[rowq.Message], Any]:
    @functools.wraps(named)
    def wrapper(message: rowq.Message) -> Any:
        return named(calls, message)

    return wrapper


def in_a_task(calls: list[int]) -> Callable[[rowq.Message], Any]:
    async def in_task(message: rowq.Message) -> None:
        await asyncio.create_task(named(calls, message))

    return in_task


@pytest.mark.parametrize(
    "form",
    [
        lambda calls: functools.partial(named, calls),
        AsynchronousObject,
        decorated,
        lambda calls: lambda message: named(calls, message),
        in_a_task,
    ],
    ids=["partial", "object", "decorated", "lambda", "task"],
)
def test_every_form_of_async_handler_is_awaited(queue: WorkerQueue, form: Any) -> None:
    queue.fill(3)
    calls: list[int] = []
    assert queue.drain(form(calls)).processed == 3
    assert calls == [0, 1, 2]


def test_remaining_tasks_are_cancelled_at_the_end(
    queue: WorkerQueue,
) -> None:
    queue.fill(1)
    ends: list[str] = []

    async def stray() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    async def handler(_message: rowq.Message) -> None:
        tasks.add(asyncio.create_task(stray()))
        await asyncio.sleep(0)

    tasks: set[asyncio.Task[None]] = set()
    assert queue.drain(handler).processed == 1
    assert ends == ["cancelled"]


def test_cancelled_task_costs_one_message(queue: WorkerQueue) -> None:
    queue.fill(3)

    async def handler(message: rowq.Message) -> None:
        task = asyncio.current_task()
        if message.data == 1 and task:
            task.cancel()
        await asyncio.sleep(0)

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)


def test_system_exit_in_async_handler_keeps_its_loop(
    queue: WorkerQueue,
) -> None:
    queue.fill(3)

    async def handler(message: rowq.Message) -> None:
        await asyncio.sleep(0)
        if message.data == 1:
            raise SystemExit(1)

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)


class Generating:
    """A callable object with a generator __call__."""

    def __call__(self, _message: rowq.Message) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    "handler",
    [generator, asynchronous_generator, Generating(), functools.partial(generator), 5, None],
    ids=["generator", "asynchronous generator", "object", "partial", "number", "none"],
)
def test_invalid_handler_is_refused(handler: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match="handler"):
        rowq.Worker("postgresql://host/db", "q", handler)


def test_named_generator_is_refused(
    queue: WorkerQueue,
) -> None:
    queue.fill(1)
    with pytest.raises(rowq.WorkerFailed, match="generator"):
        queue.drain("tests.client.handlers:generate")
    assert queue.queue_stats()[0].ready == 1


@pytest.mark.parametrize(
    "decision",
    [
        *(rowq.Retry(5, "later"), rowq.Retry(), rowq.Fail("no"), rowq.Fail()),
        *(rowq.Snooze(5), Permanent(7), Later(3)),
    ],
    ids=repr,
)
def test_decision_can_be_pickled(decision: rowq.Retry | rowq.Snooze | rowq.Fail) -> None:
    copy = pickle.loads(pickle.dumps(decision))  # noqa: S301 - our own bytes
    assert type(copy) is type(decision)
    assert (vars(copy), str(copy)) == (vars(decision), str(decision))
    assert copy.error == decision.error
