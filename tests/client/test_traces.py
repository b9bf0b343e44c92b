"""OpenTelemetry traces of producers, queues and workers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from cProfile import Profile
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.semconv._incubating.attributes import messaging_attributes
from opentelemetry.trace import SpanKind, StatusCode

import rowq
from rowq import tracing
from rowq.contrib.opentelemetry import traces
from rowq.messages import UnreadableHeaders
from rowq.tools.command.execute import environment
from rowq.tools.trace_headers import carried, joined, trace_of
from tests.engines.base import Connection
from tests.helpers.topics import word
from tests.helpers.worker_queue import MakeQueue

__all__ = ["word"]

SENT_BY_HAND = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Recorded:
    """The recorded spans, and the application's tracer."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer: trace.Tracer = self.provider.get_tracer("test")

    def of(self, operation: str) -> list[ReadableSpan]:
        """Return the spans of an operation, such as process, by end."""
        spans = self.exporter.get_finished_spans()
        return [span for span in spans if span.name.split()[0] == operation]


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    made = Recorded()
    rowq.instrument(tracer_provider=made.provider)
    yield made
    rowq.uninstrument()


def ids(spans: list[ReadableSpan]) -> list[tuple[int, int]]:
    return [(span.context.trace_id, span.context.span_id) for span in spans]


def flags(traceparent: str) -> int:
    return int(traceparent[-2:], 16)


def links(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def test_each_attempt_has_a_trace_linked_to_the_sender(
    make_queue: MakeQueue, recorded: Recorded
) -> None:
    queue = make_queue(backoff_base_seconds=0)
    sent = queue.enqueue({"id": 1}, headers={"tenant": "acme"})
    decisions = iter([ValueError("not yet"), rowq.Retry(0, "still not"), None])

    def handler(_: rowq.HeldMessage) -> None:
        if decision := next(decisions):
            raise decision

    queue.drain(handler, metrics_port=0)
    (send,), receives, handled = (recorded.of(one) for one in ("send", "receive", "process"))
    assert len(receives) == len(handled) == 3
    for kind, span in (
        (SpanKind.PRODUCER, send),
        *((SpanKind.CLIENT, span) for span in receives),
        *((SpanKind.CONSUMER, span) for span in handled),
    ):
        operation = span.name.split()[0]
        assert (span.name, span.kind) == (f"{operation} {queue.name}", kind)
        assert span.attributes
        assert span.attributes["messaging.system"] == "rowq"
        assert span.attributes["messaging.destination.name"] == queue.name
        assert span.attributes["messaging.operation.name"] == operation
        assert span.attributes["messaging.message.id"] == str(sent.message_id)
    for span in (*receives, *handled):
        assert links(span) == ids([send])
        assert span.parent is None
    assert [span.attributes["rowq.attempt"] for span in handled if span.attributes] == [1, 2, 3]
    assert [span.attributes["rowq.outcome"] for span in handled if span.attributes] == [
        *("retry_later", "retry_later", "complete"),
    ]
    raised, retried, completed = handled
    assert raised.attributes
    assert raised.attributes["error.type"] == "ValueError"
    assert [event.name for event in raised.events] == ["exception"]
    assert (raised.status.description, retried.status.description) == (
        *("ValueError: not yet", "still not"),
    )
    assert raised.status.status_code == retried.status.status_code == StatusCode.ERROR
    assert completed.status.status_code is StatusCode.UNSET
    assert not retried.events


def test_parent_trace_spans_death_and_reset(make_queue: MakeQueue, recorded: Recorded) -> None:
    rowq.instrument(parent=True, tracer_provider=recorded.provider)
    queue = make_queue(max_attempts=1)

    def handler(message: rowq.HeldMessage) -> None:
        assert baggage.get_baggage("tenant") == "acme"
        if message.attempt == 1 and not message.last_error and not decided:
            decided.append(message.message_id)
            raise rowq.Fail("not today")
        queue.client.enqueue(queue.name, "more", delay_seconds=60)

    decided: list[int] = []
    token = context.attach(baggage.set_baggage("tenant", "acme"))
    with recorded.tracer.start_as_current_span("request") as request:
        sent = queue.enqueue(1)
    context.detach(token)
    queue.drain(handler)
    assert decided == [sent.message_id]
    queue.reset()
    queue.drain(handler)
    first, second = recorded.of("send")
    failed, completed = recorded.of("process")
    assert first.parent == request.get_span_context()
    assert [span.parent and span.parent.span_id for span in (failed, completed, second)] == [
        *(first.context.span_id, first.context.span_id, completed.context.span_id),
    ]
    assert {span.context.trace_id for span in (first, second, failed, completed)} == {
        request.get_span_context().trace_id
    }


@pytest.mark.parametrize("per", ["batch", "message"])
def test_batch_is_linked_to_each_sender(
    make_queue: MakeQueue, recorded: Recorded, per: str
) -> None:
    queue = make_queue()
    queue.enqueue_batch([1, rowq.NewMessage(data=2, headers={"a": 1})])
    queue.enqueue(3)
    queue.drain(lambda _: None, per=per, batch_size=3)
    two, one = recorded.of("send")
    assert two.attributes
    assert two.attributes["messaging.batch.message_count"] == 2
    senders = ids([two, two, one])
    (receive,) = recorded.of("receive")
    assert links(receive) == senders
    handled = recorded.of("process")
    if per == "batch":
        assert [links(span) for span in handled] == [senders]
    else:
        assert [links(span) for span in handled] == [[sender] for sender in senders]


def test_concurrent_tasks_have_separate_spans(make_queue: MakeQueue, recorded: Recorded) -> None:
    queue = make_queue()
    sent = queue.fill(3)

    async def handler(message: rowq.HeldMessage) -> None:
        await asyncio.sleep(0.01 * (3 - message.data))
        with recorded.tracer.start_as_current_span(f"inner {message.message_id}"):
            await asyncio.sleep(0)

    queue.drain(handler, concurrent=True)
    outer = {
        int(str(span.attributes["messaging.message.id"])): span.context.span_id
        for span in recorded.of("process")
        if span.attributes
    }
    inner = {int(span.name.split()[1]): span.parent for span in recorded.of("inner")}
    assert outer.keys() == inner.keys() == set(sent)
    assert all(parent and parent.span_id == outer[id_] for id_, parent in inner.items())


def test_unsampled_trace_stays_unsampled(make_queue: MakeQueue, recorded: Recorded) -> None:
    rowq.instrument(parent=True, tracer_provider=recorded.provider)
    queue = make_queue()
    unsampled = TracerProvider(sampler=ParentBased(ALWAYS_OFF)).get_tracer("test")
    with unsampled.start_as_current_span("request"):
        queue.enqueue_batch([1])
    (message,) = queue.peek()
    assert flags(message.headers["traceparent"]) & 1 == 0
    queue.drain(lambda _: None)
    assert [span.name.split()[0] for span in recorded.exporter.get_finished_spans()] == ["receive"]


def test_callers_trace_header_wins(make_queue: MakeQueue, recorded: Recorded, word: str) -> None:
    queue = make_queue()
    own = {"traceparent": SENT_BY_HAND, "tracestate": "vendor=1"}
    queue.enqueue(1, headers=own)
    queue.enqueue_batch([rowq.NewMessage(data=2, headers=own), 3])
    queue.bind_topic(f"{word}.*")
    queue.client.publish(f"{word}.a", 4, headers=own)
    queue.client.publish_batch(
        [rowq.NewMessage(data=5, topic=f"{word}.a"), rowq.NewMessage(data=6, topic=f"{word}.b")]
    )
    given = [message.headers for message in queue.peek(max_messages=10)]
    assert [given[place] for place in (0, 1, 3)] == [own, own, own]
    single, batch, published, several = recorded.of("send")
    assert [headers["traceparent"][3:52] for headers in given if headers != own] == [
        f"{span.context.trace_id:032x}-{span.context.span_id:016x}"
        for span in (batch, several, several)
    ]
    by_hand = [(0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)]
    assert links(single) == links(batch) == links(published) == by_hand
    assert (published.name, several.name) == (f"send {word}.a", "send")


def test_refused_call_ends_its_span_with_the_error(
    connection: Connection, recorded: Recorded
) -> None:
    with pytest.raises(rowq.QueueNotFound):
        rowq.Queue(connection, savepoint=True).enqueue("no such queue", 1)
    (send,) = recorded.of("send")
    assert send.status.status_code is StatusCode.ERROR
    assert send.attributes
    assert send.attributes["error.type"] == "rowq.errors.QueueNotFound"
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_command_gets_the_trace_of_the_workers_span(recorded: Recorded) -> None:
    with recorded.tracer.start_as_current_span("process") as span:
        given = environment({"headers": {"traceparent": SENT_BY_HAND}}, Path("facts"))
    assert f"{span.get_span_context().span_id:016x}" in given[b"TRACEPARENT"].decode()


@pytest.mark.requires("async")
def test_async_queue_is_traced(
    database_url: str, make_queue: MakeQueue, recorded: Recorded
) -> None:
    async def life(name: str) -> None:
        async with rowq.connect_async(database_url) as queue:
            await queue.enqueue(name, 1)
            await queue.enqueue_batch(name, [2])
            assert len(await queue.dequeue_wait(name)) == 1
            assert len(await queue.dequeue_fast(name)) == 1
            assert await queue.dequeue_fast(name) == []

    asyncio.run(life(make_queue().name))
    assert [links(span) for span in recorded.of("receive")] == [
        [sender] for sender in ids(recorded.of("send"))
    ]


def test_call_costs_nothing_without_traces(make_queue: MakeQueue) -> None:
    """Python's profiler counts no call for traces in any module."""
    queue = make_queue()
    assert tracing.active is None
    with Profile() as profile:
        queue.client.enqueue(queue.name, 1)
        queue.client.enqueue_batch(queue.name, [2])
        queue.client.dequeue_fast(queue.name, 2)
    codes = [entry.code for entry in profile.getstats()]
    called = {code.co_filename for code in codes if isinstance(code, CodeType)}
    assert any(file.endswith("queue.py") for file in called)
    assert [file for file in called if "/tracing/" in file or "opentelemetry" in file] == []


def test_headers_without_trace_are_ignored() -> None:
    strange: list[Any] = [
        *(None, {}, [], "text", {"traceparent": 5}, {"traceparent": None, "baggage": ["a"]}),
        UnreadableHeaders("{", "why"),
    ]
    for headers in strange:
        assert carried(headers) == trace_of(headers) == {}
    assert joined("text", {"traceparent": SENT_BY_HAND}) == "text"
    assert trace_of({"traceparent": "$(reboot)", "tracestate": "a=1"}) == {}
    assert trace_of({"traceparent": SENT_BY_HAND, "tracestate": "a\nb"}) == {
        "traceparent": SENT_BY_HAND
    }


def test_names_match_the_semantic_conventions() -> None:
    known = {value for value in vars(messaging_attributes).values() if isinstance(value, str)}
    used = {value for value in vars(traces).values() if str(value).startswith("messaging.")}
    assert used <= known
