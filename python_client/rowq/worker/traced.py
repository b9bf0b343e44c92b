"""Calls of handlers that are traced, and which kind of call a worker makes."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rowq import tracing
from rowq.tracing import Traces
from rowq.worker.claim import HeldMessage
from rowq.worker.context import Context
from rowq.worker.handlers import Fail, Handler, Release, Retry
from rowq.worker.handling import HandlerCaller, HandlerResult, MeasuredCaller
from rowq.worker.meter import Meter


class TracedCaller(HandlerCaller):
    """Traces each call of the handler.

    The span says what the handler has decided: where its message was taken from the worker, or its
    transaction failed, that has no effect.
    """

    def __init__(self, context: Context, handler: Handler, traces: Traces) -> None:
        """Call `handler` for the worker of `context`, traced by `traces`."""
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
        """Call `handler` for the worker of `context`, traced by `traces`, and tell `meter`."""
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
