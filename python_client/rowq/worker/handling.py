"""Calls of the handler for a claim's messages, and the decisions that follow."""

import asyncio
import contextvars
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rowq import tracing
from rowq.errors import HandlerTimedOut, UnreadableBody
from rowq.queue import Queue
from rowq.tracing import Traces
from rowq.worker.claim import HeldMessage, LiveClaim
from rowq.worker.context import Context, log
from rowq.worker.handlers import (
    COMPLETED,
    RELEASED,
    Answer,
    Decision,
    GiveUp,
    Handler,
    OwnHandler,
    Release,
    decision_of,
    interrupted,
    retry,
    shown,
    unreadable_body,
)
from rowq.worker.meter import Meter
from rowq.worker.timeouts import Call, awaited


@dataclass(slots=True)
class HandlerResult:
    """The handler's decision for each message.

    failed: it raised, or returned a wrong result, so that its writes must be rolled back.
    timed_out: it was interrupted, possibly during a statement. is_transient: it raised a database
    error after which the transaction should be retried. The exception itself is not stored: its
    traceback would keep the messages alive.
    """

    decisions: Mapping[int, Decision]
    failed: bool = False
    is_transient: bool = False
    timed_out: bool = False


class HandlerCaller:
    """Calls of a handler from one thread, which has an event loop if needed."""

    def __init__(self, context: Context, handler: Handler) -> None:
        self._context = context
        self._handler = handler
        self._may_interrupt = not isinstance(handler, OwnHandler)
        self._is_batch = context.settings.per == "batch"
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Cancel the handler's remaining tasks, and close the event loop."""
        if self._runner is not None:
            self._runner.close()

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Call the handler with a message, or per batch with all; raises only KeyboardInterrupt."""
        timeouts = self._context.timeouts
        call = timeouts.begin(messages)
        try:
            try:
                returned = self._returned(messages, connection, call)
                if self._is_batch:
                    return _result_of_batch(_ids(messages), returned)
                return self._result(messages[0].message_id, returned)
            finally:
                timeouts.end(call)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # It may have timed out as it ended.
            timeouts.end(call)
            result = self._raised(_ids(messages), error)
            # Its last statement may still be running.
            return replace(result, timed_out=True) if call and call.has_interrupted else result

    def _returned(
        self, messages: Sequence[HeldMessage], connection: Sequence[Any], call: Call | None
    ) -> Any:
        """Return the handler's result, awaited if needed."""
        argument = list(messages) if self._is_batch else messages[0]
        if call and self._may_interrupt:
            call.allow()
        returned = self._handler(argument, *connection)
        if returned is None or not inspect.isawaitable(returned):
            return returned
        if call:
            call.forbid()
        self._runner = self._runner or asyncio.Runner()
        # Each message has its own context variables, as if it had its own thread.
        return self._runner.run(awaited(returned, call), context=contextvars.copy_context())

    def call_together(
        self, messages: Sequence[HeldMessage], record: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        """Call the handler for each message in its own task, and `record` each result.

        Raises KeyboardInterrupt, and exceptions of `record`; `close` cancels the remaining tasks.
        """
        self._runner = self._runner or asyncio.Runner()
        self._runner.run(self._together(messages, record))

    async def _together(
        self, messages: Sequence[HeldMessage], record: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        await asyncio.gather(*(self._call_task(message, record) for message in messages))

    async def _call_task(
        self, message: HeldMessage, record: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        call = self._context.timeouts.begin([message])
        try:
            returned = self._handler(message)
            if inspect.isawaitable(returned):
                returned = await awaited(returned, call)
            result = self._result(message.message_id, returned)
        except KeyboardInterrupt:
            await record(HandlerResult(interrupted([message]), failed=True))
            raise
        except BaseException as error:
            result = self._raised([message.message_id], error)
        finally:
            self._context.timeouts.end(call)
        await record(result)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        """Return the result of a handler that raised an exception."""
        if isinstance(error, GiveUp):
            self._context.fail(error)
            return HandlerResult(dict.fromkeys(ids, RELEASED), failed=True)
        if isinstance(error, HandlerTimedOut):
            self._context.timeouts.describe(error)
            return replace(result_of_error(ids, error), timed_out=True)
        is_transient = isinstance(error, Exception) and self._context.engine.is_rolled_back(error)
        return result_of_error(ids, error, is_transient=is_transient)

    def _result(self, message_id: int, returned: Any) -> HandlerResult:
        return result_of(message_id, returned, self._context.warn_of_result)


class MeasuredCaller(HandlerCaller):
    """Calls with metrics: duration and exceptions."""

    def __init__(self, context: Context, handler: Handler, meter: Meter) -> None:
        super().__init__(context, handler)
        self._meter = meter

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Call the handler with a message, or per batch with all; raises only KeyboardInterrupt."""
        began_at = time.perf_counter()
        try:
            return super().call(messages, *connection)
        finally:
            self._meter.record_handled(time.perf_counter() - began_at)

    async def _call_task(
        self, message: HeldMessage, record: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        began_at = time.perf_counter()

        async def timed(result: HandlerResult) -> None:
            self._meter.record_handled(time.perf_counter() - began_at)
            await record(result)

        await super()._call_task(message, timed)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        if not isinstance(error, Answer | Release):
            self._meter.count("handler_error")
        return super()._raised(ids, error)


def result_of(
    message_id: int, returned: Any, warn: Callable[[object], None] = lambda _: None
) -> HandlerResult:
    """Return the result of a handler of one message; `warn` of a value without a meaning."""
    if returned is None:
        return HandlerResult({message_id: COMPLETED})
    if isinstance(returned, Answer):
        return result_of_error([message_id], returned)
    if _is_mistaken(returned):
        return _mistaken([message_id], returned)
    warn(returned)
    return HandlerResult({message_id: COMPLETED})


def result_of_error(
    ids: list[int], error: BaseException, *, is_transient: bool = False
) -> HandlerResult:
    """Return the result of an exception, and log it unless it is a decision."""
    decisions = dict.fromkeys(ids, decision_of(error))
    if isinstance(error, Answer | Release):
        return HandlerResult(decisions, failed=True)
    if isinstance(error, UnreadableBody) and error.message_id in decisions:
        decisions[error.message_id] = unreadable_body(error)
    log.warning("message %d: the handler raised", ids[0], exc_info=error)
    return HandlerResult(decisions, failed=True, is_transient=is_transient)


def _result_of_batch(ids: list[int], returned: Any) -> HandlerResult:
    """Return the result of a batch handler: of None or {message_id: answer or None}."""
    if returned is None:
        return HandlerResult(dict.fromkeys(ids, COMPLETED))
    if not isinstance(returned, Mapping):
        return _mistaken(ids, returned)
    found = dict(returned)
    unknown = found.keys() - set(ids)
    if unknown or not all(isinstance(value, Answer | None) for value in found.values()):
        return _mistaken(ids, returned)
    answers = {message_id: found.get(message_id) for message_id in ids}
    return HandlerResult(
        {
            message_id: COMPLETED if answer is None else decision_of(answer)
            for message_id, answer in answers.items()
        }
    )


def _ids(messages: Sequence[HeldMessage]) -> list[int]:
    return [message.message_id for message in messages]


def _is_mistaken(returned: Any) -> bool:
    """Whether the returned value shows a mistake: an exception, its class, or a generator."""
    is_class = inspect.isclass(returned) and issubclass(returned, BaseException)
    is_generator = inspect.isgenerator(returned) or inspect.isasyncgen(returned)
    return is_class or is_generator or isinstance(returned, BaseException)


def _mistaken(ids: list[int], returned: Any) -> HandlerResult:
    """Return a retry for all messages, with an error that shows the returned value."""
    if inspect.isgenerator(returned):
        returned.close()
    error = (
        f"the handler returned {shown(returned):.300}; expected None, Retry(...),"
        " Snooze(...) or Fail(...), or per batch a mapping of message ids to these"
    )
    log.warning("message %d: %s", ids[0], error)
    return HandlerResult(dict.fromkeys(ids, retry(error)), failed=True)


class PlainWork:
    """Processing of a claim without a transaction: handle a message, then complete it."""

    def __init__(self, context: Context, caller: HandlerCaller, queue: Queue) -> None:
        self._context = context
        self._caller = caller
        self._queue = queue

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages until done, stopping, or the claim is lost.

        The last decisions, and messages without one, are left to `consumer.py`.
        """
        if self._context.settings.per == "batch":
            if claim.messages and not self._context.stopping.is_set():
                self._handle(claim, claim.messages)
            return
        if self._context.settings.concurrent:
            self._handle_together(claim)
            return
        for message in claim.messages:
            if self._context.stopping.is_set() or not claim.is_held(self._queue):
                return
            if claim.begin(message):
                self._handle_unless_cancelled(claim, message)
            if claim.flush_due:
                claim.flush(self._queue)

    def _handle_unless_cancelled(self, claim: LiveClaim, message: HeldMessage) -> None:
        if message.cancelled:
            claim.decide({message.message_id: RELEASED})
        else:
            self._handle(claim, [message])

    def _handle_together(self, claim: LiveClaim) -> None:
        is_aborted = False

        async def record(result: HandlerResult) -> None:
            # A handler that is cancelled because the worker fails has no decision.
            if is_aborted:
                return
            claim.decide(result.decisions)
            if claim.flush_due:
                # The call may take long, and must not block the other handlers.
                await asyncio.to_thread(claim.flush, self._queue)

        if self._context.stopping.is_set():
            return
        try:
            self._caller.call_together(claim.messages, record)
        except BaseException:
            is_aborted = True
            raise

    def _handle(self, claim: LiveClaim, messages: Sequence[HeldMessage]) -> None:
        try:
            result = self._caller.call(messages)
        except KeyboardInterrupt:
            claim.decide(interrupted(messages))
            raise
        claim.decide(result.decisions)


class TracedCaller(HandlerCaller):
    """Calls with traces.

    The span has the handler's decision, which has no effect if the lease was lost or the
    transaction failed.
    """

    def __init__(self, context: Context, handler: Handler, traces: Traces) -> None:
        super().__init__(context, handler)
        self._traces = traces

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Call the handler with a message, or per batch with all; raises only KeyboardInterrupt."""
        with self._traces.processing(messages[0].stripe.queue_name, messages) as span:
            result = super().call(messages, *connection)
            self._record(span, result)
        return result

    async def _call_task(
        self, message: HeldMessage, record: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        results: list[HandlerResult] = []

        async def keep(result: HandlerResult) -> None:
            results.append(result)

        try:
            with self._traces.processing(message.stripe.queue_name, [message]) as span:
                await super()._call_task(message, keep)
                self._record(span, results[0])
        finally:
            for result in results:
                await record(result)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        if not isinstance(error, Answer | Release):
            self._traces.record_raised(error)
        return super()._raised(ids, error)

    def _record(self, span: Any, result: HandlerResult) -> None:
        decided = result.decisions.values()
        self._traces.record_decisions(span, [(one.routine, one.error) for one in decided])


class MeasuredTracedCaller(TracedCaller, MeasuredCaller):
    """Calls with traces and metrics."""

    def __init__(self, context: Context, handler: Handler, traces: Traces, meter: Meter) -> None:
        MeasuredCaller.__init__(self, context, handler, meter)
        self._traces = traces


def caller_for(context: Context, handler: Handler) -> HandlerCaller:
    """Return the caller of `handler` for one thread."""
    traces, meter = tracing.active, context.meter
    if traces and meter:
        return MeasuredTracedCaller(context, handler, traces, meter)
    if traces:
        return TracedCaller(context, handler, traces)
    return MeasuredCaller(context, handler, meter) if meter else HandlerCaller(context, handler)
