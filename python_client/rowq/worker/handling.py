"""Gives a claim's messages to the handler, and reads what it decides about each of them."""

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
    Decision,
    Fail,
    GiveUp,
    Handler,
    OwnHandler,
    Release,
    Retry,
    decision_of,
    interrupted,
    retry,
    shown,
    unreadable_body,
)
from rowq.worker.meter import Meter
from rowq.worker.timeouts import Call, awaited


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """What a handler has decided about each message it was given.

    failed: whether it raised, or returned what counts as that; what it wrote is not to be kept.
    timed_out: whether it was broken off, perhaps in the middle of a statement.
    is_transient: whether it raised an error of the database's that asks for the transaction to be
    tried again. The exception itself is not kept: it would keep the messages, by its traceback.
    """

    decisions: Mapping[int, Decision]
    failed: bool = False
    is_transient: bool = False
    timed_out: bool = False


class HandlerCaller:
    """Calls a handler from one thread.

    What it has to await is awaited in an event loop of that thread, made when it is first needed.
    """

    def __init__(self, context: Context, handler: Handler) -> None:
        self._context = context
        self._handler = handler
        self._may_interrupt = not isinstance(handler, OwnHandler)
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Cancel what the handler has left running in the loop, and close that."""
        if self._runner is not None:
            self._runner.close()

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Give the handler a message, or per batch all of them; raises only KeyboardInterrupt."""
        ids = [message.message_id for message in messages]
        timeouts = self._context.timeouts
        call = timeouts.begin(messages)
        try:
            try:
                returned = self._returned(messages, connection, call)
                if self._context.settings.per == "batch":
                    return _result_of_batch(ids, returned)
                return self._result(ids[0], returned)
            finally:
                timeouts.end(call)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Its time may have been up as it ended.
            timeouts.end(call)
            result = self._raised(ids, error)
            # Whatever it raised then, what it waited for may be under way still.
            return replace(result, timed_out=True) if call and call.has_interrupted else result

    def _returned(
        self, messages: Sequence[HeldMessage], connection: Sequence[Any], call: Call | None
    ) -> Any:
        """Return what the handler returns, or what comes of it when it is awaited."""
        given = list(messages) if self._context.settings.per == "batch" else messages[0]
        if call and self._may_interrupt:
            call.allow()
        returned = self._handler(given, *connection)
        if not inspect.isawaitable(returned):
            return returned
        if call:
            call.forbid()
        self._runner = self._runner or asyncio.Runner()
        # Each message has context variables of its own, as if each had a thread of its own.
        return self._runner.run(awaited(returned, call), context=contextvars.copy_context())

    def call_together(
        self, messages: Sequence[HeldMessage], note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        """Give the handler each message in a task of its own, and `note` what it decides.

        Raises KeyboardInterrupt, and what `note` raises; tasks that then still run are left to
        `close`.
        """
        self._runner = self._runner or asyncio.Runner()
        self._runner.run(self._together(messages, note))

    async def _together(
        self, messages: Sequence[HeldMessage], note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        await asyncio.gather(*(self._noted(message, note) for message in messages))

    async def _noted(
        self, message: HeldMessage, note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        call = self._context.timeouts.begin([message])
        try:
            returned = self._handler(message)
            if inspect.isawaitable(returned):
                returned = await awaited(returned, call)
            result = self._result(message.message_id, returned)
        except KeyboardInterrupt:
            await note(HandlerResult(interrupted([message]), failed=True))
            raise
        except BaseException as error:
            result = self._raised([message.message_id], error)
        finally:
            self._context.timeouts.end(call)
        await note(result)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        """Return what an exception means that a handler of these messages has raised."""
        if isinstance(error, GiveUp):
            self._context.fail(error)
            return HandlerResult(dict.fromkeys(ids, RELEASED), failed=True)
        if isinstance(error, HandlerTimedOut):
            self._context.timeouts.say(error)
            return replace(result_of_error(ids, error), timed_out=True)
        is_transient = isinstance(error, Exception) and self._context.engine.is_undone(error)
        return result_of_error(ids, error, is_transient=is_transient)

    def _result(self, message_id: int, returned: Any) -> HandlerResult:
        return result_of(message_id, returned, self._context.warn_of_result)


class MeasuredCaller(HandlerCaller):
    """Measures for metrics how long the handler takes, and counts what it raises."""

    def __init__(self, context: Context, handler: Handler, meter: Meter) -> None:
        super().__init__(context, handler)
        self._meter = meter

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Give the handler a message, or per batch all of them; raises only KeyboardInterrupt."""
        began_at = time.perf_counter()
        try:
            return super().call(messages, *connection)
        finally:
            self._meter.note_handled(time.perf_counter() - began_at)

    async def _noted(
        self, message: HeldMessage, note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        began_at = time.perf_counter()

        async def timed(result: HandlerResult) -> None:
            self._meter.note_handled(time.perf_counter() - began_at)
            await note(result)

        await super()._noted(message, timed)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        if not isinstance(error, Retry | Fail | Release):
            self._meter.count("handler_error")
        return super()._raised(ids, error)


def result_of(
    message_id: int, returned: Any, warn: Callable[[object], None] = lambda _: None
) -> HandlerResult:
    """Return what a handler of one message returned; `warn` is told of what means nothing."""
    if returned is None:
        return HandlerResult({message_id: COMPLETED})
    if isinstance(returned, Retry | Fail):
        return result_of_error([message_id], returned)
    if _is_mistaken(returned):
        return _mistaken([message_id], returned)
    warn(returned)
    return HandlerResult({message_id: COMPLETED})


def result_of_error(
    ids: list[int], error: BaseException, *, is_transient: bool = False
) -> HandlerResult:
    """Return what an exception means for messages, and log it unless it is a decision."""
    decisions = dict.fromkeys(ids, decision_of(error))
    if isinstance(error, Retry | Fail | Release):
        return HandlerResult(decisions, failed=True)
    if isinstance(error, UnreadableBody) and error.message_id in decisions:
        decisions[error.message_id] = unreadable_body(error)
    log.warning("message %d: the handler raised", ids[0], exc_info=error)
    return HandlerResult(decisions, failed=True, is_transient=is_transient)


def _result_of_batch(ids: list[int], returned: Any) -> HandlerResult:
    """Return what a batch handler returned, which is None or {message_id: None, Retry or Fail}."""
    if returned is None:
        return HandlerResult(dict.fromkeys(ids, COMPLETED))
    if not isinstance(returned, Mapping):
        return _mistaken(ids, returned)
    given = dict(returned)
    strangers = given.keys() - set(ids)
    nonsense = [value for value in given.values() if not isinstance(value, Retry | Fail | None)]
    if strangers or nonsense:
        return _mistaken(ids, returned)
    answers = {message_id: given.get(message_id) for message_id in ids}
    return HandlerResult(
        {
            message_id: COMPLETED if answer is None else decision_of(answer)
            for message_id, answer in answers.items()
        }
    )


def _is_mistaken(returned: Any) -> bool:
    """Whether what was returned shows that the handler did not do, or say, what it meant to."""
    is_class = inspect.isclass(returned) and issubclass(returned, BaseException)
    is_generator = inspect.isgenerator(returned) or inspect.isasyncgen(returned)
    return is_class or is_generator or isinstance(returned, BaseException)


def _mistaken(ids: list[int], returned: Any) -> HandlerResult:
    """Return another attempt for all, with an error that shows what was returned."""
    if inspect.isgenerator(returned):
        returned.close()
    error = (
        f"the handler returned {shown(returned):.300}; it may return None, Retry(...) or Fail(...),"
        " and per batch a mapping of its messages' ids to these"
    )
    log.warning("message %d: %s", ids[0], error)
    return HandlerResult(dict.fromkeys(ids, retry(error)), failed=True)


class PlainWork:
    """Works on a claim without a transaction: a message is handled, then completed."""

    def __init__(self, context: Context, caller: HandlerCaller, queue: Queue) -> None:
        self._context = context
        self._caller = caller
        self._queue = queue

    def do(self, claim: LiveClaim) -> None:
        """Handle the claim's messages until done, told to stop, or the claim is lost.

        What was decided last, and what was not decided about, is left to `consumer.py`.
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
            if claim.begin([message]):
                self._handle_unless_cancelled(claim, message)
            if claim.flush_due:
                claim.flush(self._queue)

    def _handle_unless_cancelled(self, claim: LiveClaim, message: HeldMessage) -> None:
        if message.cancelled:
            claim.decide({message.message_id: RELEASED})
        else:
            self._handle(claim, [message])

    def _handle_together(self, claim: LiveClaim) -> None:
        is_broken_off = False

        async def note(result: HandlerResult) -> None:
            # A handler that is cancelled as the worker gives up has decided nothing.
            if is_broken_off:
                return
            claim.decide(result.decisions)
            if claim.flush_due:
                # The database may be away, and the other handlers go on meanwhile.
                await asyncio.to_thread(claim.flush, self._queue)

        if self._context.stopping.is_set():
            return
        try:
            self._caller.call_together(claim.messages, note)
        except BaseException:
            is_broken_off = True
            raise

    def _handle(self, claim: LiveClaim, messages: Sequence[HeldMessage]) -> None:
        try:
            result = self._caller.call(messages)
        except KeyboardInterrupt:
            claim.decide(interrupted(messages))
            raise
        claim.decide(result.decisions)


class TracedCaller(HandlerCaller):
    """Traces each call of the handler.

    The span says what the handler has decided: where its message was taken from the worker, or its
    transaction failed, that has no effect.
    """

    def __init__(self, context: Context, handler: Handler, traces: Traces) -> None:
        super().__init__(context, handler)
        self._traces = traces

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> HandlerResult:
        """Give the handler a message, or per batch all of them; raises only KeyboardInterrupt."""
        with self._traces.processing(messages[0].stripe.queue_name, messages) as span:
            result = super().call(messages, *connection)
            self._note(span, result)
        return result

    async def _noted(
        self, message: HeldMessage, note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        results: list[HandlerResult] = []

        async def keep(result: HandlerResult) -> None:
            results.append(result)

        try:
            with self._traces.processing(message.stripe.queue_name, [message]) as span:
                await super()._noted(message, keep)
                self._note(span, results[0])
        finally:
            for result in results:
                await note(result)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        if not isinstance(error, Retry | Fail | Release):
            self._traces.note_raised(error)
        return super()._raised(ids, error)

    def _note(self, span: Any, result: HandlerResult) -> None:
        decided = result.decisions.values()
        self._traces.note_decisions(span, [(one.routine, one.error) for one in decided])


class MeasuredTracedCaller(TracedCaller, MeasuredCaller):
    """Traces each call of the handler, and measures it for metrics."""

    def __init__(self, context: Context, handler: Handler, traces: Traces, meter: Meter) -> None:
        MeasuredCaller.__init__(self, context, handler, meter)
        self._traces = traces


def caller_for(context: Context, handler: Handler) -> HandlerCaller:
    """Return what calls `handler` from one thread of the worker of `context`."""
    traces, meter = tracing.active, context.meter
    if traces and meter:
        return MeasuredTracedCaller(context, handler, traces, meter)
    if traces:
        return TracedCaller(context, handler, traces)
    return MeasuredCaller(context, handler, meter) if meter else HandlerCaller(context, handler)
