"""Run an application's handler on the messages of a queue, without a worker or waiting."""

import asyncio
import importlib
import inspect
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from rowq.contrib.testing.memory import MemorySession
from rowq.errors import WrongTransactionState
from rowq.messages import Message
from rowq.queue import Queue
from rowq.session import BorrowedSession
from rowq.worker.claim import HeldMessage, LiveLease, report_outcomes
from rowq.worker.handlers import Handler, check_handler, find_handler, retry
from rowq.worker.handling import HandlerResult, result_of, result_of_error
from rowq.worker.meter import WorkerStats
from rowq.worker.stripes import Stripe

_LEASE_SECONDS = 3600
_WORKER_NAME = "rowq.testing.drain"


def drain(queue: Queue, queue_name: str, handler: Handler | str, rounds: int = 100) -> WorkerStats:
    """Handle the messages of a queue one by one, delayed ones at once; return the counts.

    It treats each message like a rowq.Worker: the handler's return value or exception completes,
    returns or fails it. An AssertionError, and a BaseException that is not an Exception, goes to
    the test. A round makes delayed messages and retries due, and handles as many messages as were
    ready at its start; newer ones belong to the next round. drain ends after an empty round, or
    after `rounds`.

    Args:
        queue: rowq_queue, a rowq.Queue on your connection, or a MemoryQueue.
        queue_name: the queue.
        handler: as a Worker's without `transactional`; a coroutine function is run to its end.
        rounds: maximum number of rounds; 1 handles what is ready or delayed now.

    On PostgreSQL a database error on the test's own connection rolls back the handler's writes, and
    the test's transaction continues. A transaction that has already failed is refused:
    WrongTransactionState.

    No routine makes delayed messages due, so drain changes rowq's tables: on PostgreSQL, MariaDB
    and MySQL, as a role that may change them. Raises NotImplementedError for delayed messages on
    another engine.
    """
    function = find_handler(handler)
    check_handler(function)
    total = WorkerStats()
    with closing(_Drain(queue, queue_name, function)) as draining:
        for _ in range(rounds):
            done = draining.round()
            if done is None:
                break
            total = total.plus(done)
    return total


class _Drain:
    def __init__(self, queue: Queue, queue_name: str, handler: Handler) -> None:
        self._queue = queue
        self._name = queue_name
        self._handler = handler
        self._runner: asyncio.Runner | None = None
        testing = _testing_of(queue)
        self._savepoint_guard = getattr(testing, "SavepointGuard", None)
        if self._savepoint_guard and testing.is_aborted(queue._session.connection()):
            raise WrongTransactionState(
                "the transaction is aborted; roll back to a savepoint before drain"
            )

    def close(self) -> None:
        if self._runner is not None:
            self._runner.close()

    def round(self) -> WorkerStats | None:
        """Handle the ready messages; return the counts, None if there were none."""
        self._queue.maintain(self._name)
        if self._queue.queue_stats(self._name)[0].delayed:
            make_due(self._queue, self._name)
            while self._queue.promote(self._name).promoted:
                pass
        done: WorkerStats | None = None
        for _ in range(self._queue.queue_stats(self._name)[0].ready):
            messages = self._queue.dequeue_fast(
                self._name, worker_name=_WORKER_NAME, lease_seconds=_LEASE_SECONDS
            )
            if not messages:
                break
            done = (done or WorkerStats()).plus(self._handle(messages))
        return done

    def _handle(self, messages: Sequence[Message]) -> WorkerStats:
        (message,) = messages
        asked_at, stopping = time.monotonic(), threading.Event()
        stripe = Stripe(0, None, self._name)
        lease = LiveLease(message.claim_id, _LEASE_SECONDS, asked_at, stopping, stripe)
        result = self._guarded(HeldMessage.of(_row(message), lease))
        stats = WorkerStats()
        for _, outcomes in report_outcomes(
            self._queue, self._name, message.claim_id, result.decisions, lease.results
        ):
            stats = stats.plus(outcomes)
        return stats

    def _guarded(self, message: HeldMessage) -> HandlerResult:
        """Call the handler; after a database error the test's transaction stays usable."""
        guard = (
            self._savepoint_guard(self._queue._session.connection())
            if self._savepoint_guard
            else None
        )
        try:
            result = self._call(message)
        finally:
            is_rolled_back = guard is not None and guard.end()
        if is_rolled_back and not result.failed:
            # It has caught the error, but its writes are rolled back.
            error = "the handler continued after a database error"
            return HandlerResult({message.message_id: retry(error)}, failed=True)
        return result

    def _call(self, message: HeldMessage) -> HandlerResult:
        try:
            returned = self._handler(message)
            if inspect.isawaitable(returned):
                self._runner = self._runner or asyncio.Runner()
                returned = self._runner.run(_of(returned))
        except AssertionError:
            # The test's own assertion must not become another attempt.
            raise
        except Exception as error:
            return result_of_error([message.message_id], error)
        return result_of(message.message_id, returned)


def make_due(queue: Queue, queue_name: str) -> None:
    """Make all delayed messages of a queue due, in their order."""
    session = queue._session
    if isinstance(session, MemorySession):
        session.make_due(queue_name)
        return
    engine, testing = session.engine, _testing_of(queue)
    if testing is None:
        raise NotImplementedError(
            f"drain cannot make delayed messages due on {engine.name}; use a MemoryQueue"
        )
    connection = session.connection()
    is_borrowed = isinstance(session, BorrowedSession)
    around = engine.savepoint(connection) if is_borrowed else engine.transaction(connection)
    try:
        with around, closing(connection.cursor()) as cursor:
            cursor.execute(testing.MAKE_DUE, (queue_name,))
    except Exception as error:
        error.add_note("drain changes rowq's tables; connect as their owner or as a superuser")
        raise


def _testing_of(queue: Queue) -> Any:
    """Return the engine's module for tests, or None."""
    session = queue._session
    if isinstance(session, MemorySession):
        return None
    try:
        return importlib.import_module(f"rowq.contrib.testing.{session.engine.name}")
    except ModuleNotFoundError:
        return None


def _row(message: Message) -> tuple[Any, ...]:
    return tuple(getattr(message, name) for name in Message.__slots__)


async def _of(returned: Any) -> Any:
    return await returned
