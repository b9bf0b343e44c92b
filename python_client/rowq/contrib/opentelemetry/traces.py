"""The spans of rowq.

    send Q       PRODUCER  enqueue, enqueue_batch, publish or publish_batch; its context is sent in
                           each message's headers
    receive Q    CLIENT    a dequeue that found messages, linked to the spans that sent them
    process Q    CONSUMER  a handler call of a worker, linked to the span that sent the message

A call that is not sampled is not recorded, and its messages carry that decision.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    TracerProvider,
    get_current_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rowq.engines.base import Row
from rowq.tools.trace_headers import TRACEPARENT, carried, joined

_DESTINATIONS = {
    "enqueue": "queue_name",
    "enqueue_batch": "queue_name",
    "publish": "topic",
    "publish_batch": None,
}
"""Routines that send, and the argument with the destination."""
_FAILURES = {"retry_later", "fail_now"}
_TRACE = TraceContextTextMapPropagator()
_BAGGAGE = W3CBaggagePropagator()

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the semantic conventions."""

SYSTEM = "messaging.system"
DESTINATION = "messaging.destination.name"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
MESSAGE_ID = "messaging.message.id"
MESSAGE_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"

ROWQ = "rowq"
"""The value of SYSTEM."""
SEND, RECEIVE, PROCESS = "send", "receive", "process"
"""The values of OPERATION and OPERATION_TYPE, and the first words of span names."""

# Not in the conventions.
ATTEMPT = "rowq.attempt"
CLAIM_ID = "rowq.claim_id"
OUTCOME = "rowq.outcome"


class HasHeaders(Protocol):
    """A dequeued message."""

    @property
    def message_id(self) -> int:
        """The message's id."""

    @property
    def claim_id(self) -> int:
        """The claim that holds it."""

    @property
    def attempt(self) -> int:
        """The number of the delivery, from 1."""

    @property
    def headers(self) -> Any:
        """The producer's headers."""


class Sending:
    """A call, which is traced if it sends: its arguments, and its answer."""

    def __init__(self, arguments: Mapping[str, Any], span: Span | None = None) -> None:
        self.arguments = arguments
        self._span = span

    def record(self, rows: Sequence[Row]) -> None:
        """Record the answer: the last two columns are message id and outcome."""
        if self._span is not None and len(rows) == 1:
            *_, message_id, outcome = rows[0]
            self._span.set_attribute(MESSAGE_ID, str(message_id))
            self._span.set_attribute(OUTCOME, outcome)


class Traces:
    """Spans of the queue objects and workers of this process."""

    def __init__(self, provider: TracerProvider | None, *, parent: bool) -> None:
        """Use this provider, or the application's; `parent` as in rowq.instrument."""
        self._tracer = trace.get_tracer("rowq", None, provider, SCHEMA_URL)
        self._parent = parent

    @contextmanager
    def calling(self, routine: str, arguments: Mapping[str, Any]) -> Iterator[Sending]:
        """Yield the arguments for a routine, and trace the block if the routine sends."""
        if routine not in _DESTINATIONS:
            yield Sending(arguments)
            return
        entries: list[dict[str, Any]] | None = arguments.get("messages")
        destination = _destination(routine, arguments)
        attributes = _attributes(SEND, destination)
        if entries is not None:
            attributes[MESSAGE_COUNT] = len(entries)
        messages = [arguments] if entries is None else entries
        with self._span(
            SEND,
            destination,
            SpanKind.PRODUCER,
            attributes=attributes,
            links=[link for one in messages if (link := _link(one.get("headers")))],
        ) as span:
            context = self.carrier()
            if entries is None:
                headers = joined(arguments["headers"], context)
                yield Sending({**arguments, "headers": headers}, span)
            else:
                sent = [_with_context(entry, context) for entry in entries]
                yield Sending({**arguments, "messages": sent}, span)

    def record_received(
        self, queue_name: str, messages: Sequence[HasHeaders], called_at: float
    ) -> None:
        """Trace a dequeue that found messages; it began at `called_at`, by time.monotonic().

        The span starts afterwards, so the driver's spans are not its children.
        """
        if not messages:
            return
        now = time.time_ns()
        span = self._tracer.start_span(
            f"{RECEIVE} {queue_name}",
            kind=SpanKind.CLIENT,
            attributes={
                **_attributes(RECEIVE, queue_name),
                **_facts_of(messages),
                MESSAGE_COUNT: len(messages),
            },
            links=_links(messages),
            start_time=now - int((time.monotonic() - called_at) * 1e9),
        )
        span.end(now)

    @contextmanager
    def processing(self, queue_name: str, messages: Sequence[HasHeaders]) -> Iterator[Span]:
        """Trace a handler call with one message, or with a batch."""
        attributes = {**_attributes(PROCESS, queue_name), **_facts_of(messages)}
        if len(messages) == 1:
            attributes[ATTEMPT] = messages[0].attempt
        else:
            attributes[MESSAGE_COUNT] = len(messages)
        with self._span(
            PROCESS,
            queue_name,
            SpanKind.CONSUMER,
            attributes=attributes,
            links=_links(messages),
            context=self._context_of(messages),
        ) as span:
            yield span

    def record_decisions(self, span: Span, decisions: Iterable[tuple[str, str | None]]) -> None:
        """Record the decisions of a handler call, each once.

        decisions: for each message the routine and the error.
        """
        decided = list(decisions)
        routines = sorted({routine for routine, _ in decided})
        span.set_attribute(OUTCOME, ", ".join(routines))
        if not _FAILURES.isdisjoint(routines):
            # The last line of a traceback is the exception.
            lines = next((error for _, error in decided if error), "").splitlines()
            span.set_status(StatusCode.ERROR, lines[-1] if lines else None)

    def record_raised(self, error: BaseException) -> None:
        """Record an exception of a handler on the current span."""
        record_error(get_current_span(), error)

    def carrier(self) -> dict[str, str]:
        """Return the W3C headers for a message that is sent now; empty if nothing is traced."""
        context: dict[str, str] = {}
        for propagator in (_TRACE, _BAGGAGE):
            propagator.inject(context)
        return context

    def _context_of(self, messages: Sequence[HasHeaders]) -> Context:
        """Return the context of a handler: the message's baggage, and with `parent` its trace.

        The context of a batch is empty.
        """
        if len(messages) != 1:
            return Context()
        found = carried(messages[0].headers)
        context = _BAGGAGE.extract(found, Context())
        return _TRACE.extract(found, context) if self._parent else context

    @contextmanager
    def _span(
        self,
        operation: str,
        destination: str | None,
        kind: SpanKind,
        *,
        attributes: Mapping[str, Any],
        links: Sequence[Link],
        context: Context | None = None,
    ) -> Iterator[Span]:
        """Make a span and its baggage current during a block."""
        name = operation if destination is None else f"{operation} {destination}"
        span = self._tracer.start_span(name, context, kind=kind, attributes=attributes, links=links)
        token = attach(trace.set_span_in_context(span, context))
        try:
            yield span
        except BaseException as error:
            record_error(span, error)
            raise
        finally:
            detach(token)
            span.end()


def record_error(span: Span, error: BaseException) -> None:
    """Record on a span the exception that ended it."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    span.set_attribute(ERROR_TYPE, f"{module}{kind.__qualname__}")
    span.set_status(StatusCode.ERROR, kind.__name__)
    # An exception whose text raises another one must not end the worker.
    with suppress(Exception):
        span.record_exception(error)
        span.set_status(StatusCode.ERROR, f"{kind.__name__}: {error}")


def _with_context(entry: dict[str, Any], context: Mapping[str, str]) -> dict[str, Any]:
    """Return a message of a batch with a context in its headers."""
    headers = joined(entry.get("headers"), context)
    return entry if headers is None else {**entry, "headers": headers}


def _destination(routine: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the queue or topic of a call, or None for several topics."""
    argument = _DESTINATIONS[routine]
    if argument is not None:
        return str(arguments[argument])
    topics = {str(entry["topic"]) for entry in arguments["messages"] if "topic" in entry}
    return topics.pop() if len(topics) == 1 else None


def _attributes(operation: str, destination: str | None) -> dict[str, Any]:
    """Return the attributes of every span."""
    named = {} if destination is None else {DESTINATION: destination}
    return {
        SYSTEM: ROWQ,
        OPERATION: operation,
        OPERATION_TYPE: operation,
        **named,
    }


def _facts_of(messages: Sequence[HasHeaders]) -> dict[str, Any]:
    """Return the claim id, and the id of a single message."""
    facts: dict[str, Any] = {CLAIM_ID: messages[0].claim_id}
    if len(messages) == 1:
        facts[MESSAGE_ID] = str(messages[0].message_id)
    return facts


def _links(messages: Sequence[HasHeaders]) -> list[Link]:
    """Return a link to the span that sent each message, if its headers have one."""
    found = [_link(message.headers, {MESSAGE_ID: str(message.message_id)}) for message in messages]
    return [link for link in found if link]


def _link(headers: Any, attributes: Mapping[str, str] | None = None) -> Link | None:
    """Return a link to the span in headers, or None."""
    found = carried(headers)
    if TRACEPARENT not in found:
        return None
    context = _TRACE.extract(found, Context())
    sender = trace.get_current_span(context).get_span_context()
    return Link(sender, attributes) if sender.is_valid else None
