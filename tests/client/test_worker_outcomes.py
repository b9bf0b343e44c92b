"""A handler's end decides on its message: it returns, raises, awaits, or does something odd."""

from __future__ import annotations

import asyncio
import functools
import logging
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection

each_mode = pytest.mark.parametrize("transactional", [False, True], ids=["plain", "transactional"])


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0, max_attempts=2)
    return queue


def fill(queue: rowq.Queue, queue_name: str, count: int) -> list[int]:
    sent = queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(count)])
    return [message.message_id for message in sent]


def states(queue: rowq.Queue, queue_name: str, ids: list[int]) -> list[str | None]:
    found = [queue.get_message(queue_name, message_id) for message_id in ids]
    return [details.state if details else None for details in found]


def errors(queue: rowq.Queue, queue_name: str) -> dict[int, str]:
    """Return the last error of each dead message."""
    return {dead.message_id: str(dead.last_error) for dead in queue.list_dead(queue_name)}


def drain(url: str, queue_name: str, handler: Any, **options: Any) -> rowq.WorkerStats:
    return rowq.Worker(url, queue_name, handler, drain=True, **options).run()


class Cancelled(BaseException):
    """An error that no `except Exception` catches, as gevent.Timeout and trio.Cancelled."""


class Permanent(rowq.Fail):
    """A decision whose __init__ does not call its base's."""

    def __init__(self, code: int) -> None:
        self.code = code


class Later(rowq.Retry):
    """An error as Permanent, but its delay is no number."""

    delay_seconds: Any = "soon"

    def __init__(self, code: int) -> None:
        self.code = code


class Unreadable(rowq.Fail):
    """A decision that cannot be stored as it is."""

    error: Any = ("a tuple with \0 and \ud800",)


class Broken(rowq.Fail):
    """A decision that cannot even be read."""

    def __init__(self) -> None:
        pass

    @property
    def error(self) -> str:  # type: ignore[override]
        raise RuntimeError("nobody can read me")


# The tests from here on are about what a handler returns or raises.


@each_mode
@pytest.mark.parametrize(
    "odd", [Permanent(7), Unreadable(), Broken()], ids=lambda returned: type(returned).__name__
)
def test_a_subclass_of_fail_counts_whatever_its_init_does(
    database_url: str, queue: rowq.Queue, queue_name: str, odd: rowq.Fail, transactional: bool
) -> None:
    ids = fill(queue, queue_name, 3)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise odd

    stats = drain(database_url, queue_name, handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (2, 0, 1)
    assert states(queue, queue_name, ids) == [None, "dead", None]


def test_a_subclass_of_retry_counts_whatever_its_init_does(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 2)

    def handler(message: rowq.Message) -> None:
        if message.data == 1 and message.attempt == 1:
            raise Later(7)

    stats = drain(database_url, queue_name, handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 0)


@each_mode
@pytest.mark.parametrize(
    "raised",
    [asyncio.CancelledError, Cancelled, GeneratorExit, SystemExit],
    ids=lambda error: error.__name__,
)
def test_an_exception_that_is_none_costs_its_message_an_attempt_and_nothing_else(
    database_url: str,
    queue: rowq.Queue,
    queue_name: str,
    raised: type[BaseException],
    transactional: bool,
) -> None:
    ids = fill(queue, queue_name, 3)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise raised("left")

    stats = drain(database_url, queue_name, handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)
    assert states(queue, queue_name, ids) == [None, "dead", None]
    assert raised.__name__ in errors(queue, queue_name)[ids[1]]


@each_mode
def test_a_keyboard_interrupt_ends_the_worker_and_costs_one_message_an_attempt(
    database_url: str, queue: rowq.Queue, queue_name: str, transactional: bool
) -> None:
    ids = fill(queue, queue_name, 3)
    queue.alter_queue(queue_name, backoff_base_seconds=900)

    def handler(message: rowq.Message, *_: Any) -> None:
        if message.data == 1:
            raise KeyboardInterrupt

    with pytest.raises(rowq.WorkerFailed, match="KeyboardInterrupt"):
        drain(database_url, queue_name, handler, transactional=transactional)
    first = "ready" if transactional else None
    assert states(queue, queue_name, ids) == [first, "delayed", "ready"]
    assert [message.attempt for message in queue.peek(queue_name, 5)] == [0] * (1 + transactional)


@each_mode
def test_a_decision_that_is_returned_counts_as_if_it_were_raised(
    database_url: str, queue: rowq.Queue, queue_name: str, transactional: bool
) -> None:
    ids = fill(queue, queue_name, 3)

    def handler(message: rowq.Message, *_: Any) -> Any:
        return [None, rowq.Fail("no"), rowq.Retry(900, "not yet")][message.data]

    stats = drain(database_url, queue_name, handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (1, 1, 1)
    assert states(queue, queue_name, ids) == [None, "dead", "delayed"]
    assert errors(queue, queue_name) == {ids[1]: "no"}


def test_any_other_result_completes_the_message_and_is_warned_of_once(
    database_url: str, queue: rowq.Queue, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(queue, queue_name, 5)
    with caplog.at_level(logging.WARNING, "rowq.worker"):
        stats = drain(database_url, queue_name, lambda message: message.data, threads=2)
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
def test_a_result_that_shows_a_mistake_completes_nothing(
    database_url: str, queue: rowq.Queue, queue_name: str, result: Any, transactional: bool
) -> None:
    ids = fill(queue, queue_name, 1)

    def handler(_message: rowq.Message, *_: Any) -> Any:
        return result() if result in (generator, asynchronous_generator) else result

    stats = drain(database_url, queue_name, handler, transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (0, 1, 1)
    assert "the handler returned" in errors(queue, queue_name)[ids[0]]


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
    "an id that is no key": lambda ids: {(ids[0],): None},
}


@each_mode
@pytest.mark.parametrize("odd", ODD_BATCHES)
def test_a_batch_whose_result_names_no_outcomes_is_retried_as_a_whole(
    database_url: str, queue: rowq.Queue, queue_name: str, odd: str, transactional: bool
) -> None:
    fill(queue, queue_name, 3)
    calls: list[list[int]] = []

    def handler(messages: list[rowq.Message], *_: Any) -> Any:
        calls.append([message.attempt for message in messages])
        return ODD_BATCHES[odd]([message.message_id for message in messages])

    stats = drain(database_url, queue_name, handler, per="batch", transactional=transactional)
    assert (stats.processed, stats.retried, stats.failed) == (0, 3, 3)
    assert calls == [[1, 1, 1], [2, 2, 2]]
    assert all("the handler returned" in error for error in errors(queue, queue_name).values())


def test_a_batch_may_name_its_messages_with_none(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)

    def handler(messages: list[rowq.Message]) -> Any:
        return {message.message_id: None for message in messages}

    assert drain(database_url, queue_name, handler, per="batch").processed == 3


# The tests from here on are about handlers that are awaited.


@each_mode
@pytest.mark.parametrize("per", ["message", "batch"])
def test_an_asynchronous_handler_is_awaited_in_one_loop(
    database_url: str, queue: rowq.Queue, queue_name: str, per: Any, transactional: bool
) -> None:
    ids = fill(queue, queue_name, 4)
    loops: list[asyncio.AbstractEventLoop] = []

    async def handler(given: Any, *_: Any) -> Any:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        fails = [message for message in (given if per == "batch" else [given]) if message.data == 1]
        if per == "batch":
            return {message.message_id: rowq.Fail("no") for message in fails}
        return rowq.Fail("no") if fails else None

    stats = drain(
        database_url, queue_name, handler, per=per, transactional=transactional, batch_size=2
    )
    assert (stats.processed, stats.failed) == (3, 1)
    assert states(queue, queue_name, ids) == [None, "dead", None, None]
    assert len(set(loops)) == 1
    assert loops[0].is_closed()


async def named(calls: list[int], message: rowq.Message) -> None:
    await asyncio.sleep(0)
    calls.append(message.data)


class AsynchronousObject:
    """An object whose call is asynchronous."""

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
def test_every_form_of_an_asynchronous_handler_is_awaited(
    database_url: str, queue: rowq.Queue, queue_name: str, form: Any
) -> None:
    fill(queue, queue_name, 3)
    calls: list[int] = []
    assert drain(database_url, queue_name, form(calls)).processed == 3
    assert calls == [0, 1, 2]


def test_what_an_asynchronous_handler_leaves_running_is_cancelled_at_the_end(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 1)
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
    assert drain(database_url, queue_name, handler).processed == 1
    assert ends == ["cancelled"]


def test_a_handler_whose_own_task_is_cancelled_costs_one_message(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)

    async def handler(message: rowq.Message) -> None:
        task = asyncio.current_task()
        if message.data == 1 and task:
            task.cancel()
        await asyncio.sleep(0)

    stats = drain(database_url, queue_name, handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)


def test_an_asynchronous_handler_that_exits_costs_one_message_and_not_its_loop(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 3)

    async def handler(message: rowq.Message) -> None:
        await asyncio.sleep(0)
        if message.data == 1:
            raise SystemExit(1)

    stats = drain(database_url, queue_name, handler)
    assert (stats.processed, stats.retried, stats.failed) == (2, 1, 1)


# The tests from here on are about handlers that are refused.


class Generating:
    """An object whose call is a generator function."""

    def __call__(self, _message: rowq.Message) -> Iterator[int]:
        yield 1


@pytest.mark.parametrize(
    "handler",
    [generator, asynchronous_generator, Generating(), functools.partial(generator), 5, None],
    ids=["generator", "asynchronous generator", "object", "partial", "number", "none"],
)
def test_what_can_be_no_handler_is_refused_when_the_worker_is_made(handler: Any) -> None:
    with pytest.raises(rowq.InvalidArgument, match="handler"):
        rowq.Worker("postgresql://host/db", "q", handler)


def test_a_named_handler_that_is_a_generator_is_refused_when_it_is_found(
    database_url: str, queue: rowq.Queue, queue_name: str
) -> None:
    fill(queue, queue_name, 1)
    with pytest.raises(rowq.WorkerFailed, match="generator"):
        drain(database_url, queue_name, "tests.client.handlers:generate")
    assert queue.queue_stats(queue_name)[0].ready == 1


# The tests from here on are about Retry and Fail in other processes.


@pytest.mark.parametrize(
    "decision",
    [rowq.Retry(5, "later"), rowq.Retry(), rowq.Fail("no"), rowq.Fail(), Permanent(7), Later(3)],
    ids=repr,
)
def test_a_decision_can_be_pickled(decision: rowq.Retry | rowq.Fail) -> None:
    copy = pickle.loads(pickle.dumps(decision))  # noqa: S301 - our own bytes
    assert type(copy) is type(decision)
    assert (vars(copy), str(copy)) == (vars(decision), str(decision))
    assert copy.error == decision.error
