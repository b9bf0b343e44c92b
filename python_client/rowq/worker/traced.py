"""Calls of handlers that are traced."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from opentelemetry.trace import Span, StatusCode, get_current_span

from rowq.contrib.opentelemetry import names
from rowq.contrib.opentelemetry.traces import Traces, note_error
from rowq.worker.claim import HeldMessage
from rowq.worker.context import Context
from rowq.worker.handlers import Fail, Handler, Release, Retry, Verdict
from rowq.worker.handling import HandlerCaller, HandlerResult, MeasuredCaller
from rowq.worker.meter import Meter

_FAILURES = {"retry_later", "fail_now"}


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
        with self._traces.processing(messages[0].part.queue_name, messages) as span:
            result = super().call(messages, *connection)
            _note_verdicts(span, result.verdicts)
        return result

    async def _noted(
        self, message: HeldMessage, note: Callable[[HandlerResult], Awaitable[None]]
    ) -> None:
        results: list[HandlerResult] = []

        async def keep(result: HandlerResult) -> None:
            results.append(result)

        try:
            with self._traces.processing(message.part.queue_name, [message]) as span:
                await super()._noted(message, keep)
                _note_verdicts(span, results[0].verdicts)
        finally:
            for result in results:
                await note(result)

    def _raised(self, ids: list[int], error: BaseException) -> HandlerResult:
        if not isinstance(error, Retry | Fail | Release):
            note_error(get_current_span(), error)
        return super()._raised(ids, error)


class MeasuredTracedCaller(TracedCaller, MeasuredCaller):
    """Traces each call of the handler, and measures it for metrics."""

    def __init__(self, context: Context, handler: Handler, traces: Traces, meter: Meter) -> None:
        """Call `handler` for the worker of `context`, traced by `traces`, and tell `meter`."""
        MeasuredCaller.__init__(self, context, handler, meter)
        self._traces = traces


def traced_caller(context: Context, handler: Handler, traces: Traces) -> TracedCaller:
    """Return what calls `handler` from one thread of the worker of `context`."""
    if context.meter:
        return MeasuredTracedCaller(context, handler, traces, context.meter)
    return TracedCaller(context, handler, traces)


def _note_verdicts(span: Span, verdicts: Mapping[int, Verdict]) -> None:
    """Note what was decided about a call's messages; each decision once, for a batch of many."""
    decided = sorted({verdict.routine for verdict in verdicts.values()})
    span.set_attribute(names.OUTCOME, ", ".join(decided))
    if not _FAILURES.isdisjoint(decided):
        errors = (verdict.error for verdict in verdicts.values() if verdict.error)
        # Of a traceback the last line says what was raised.
        lines = next(errors, "").splitlines()
        span.set_status(StatusCode.ERROR, lines[-1] if lines else None)
