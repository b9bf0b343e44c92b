"""Striped queues with unreachable servers, without a database."""

import json
import os
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import rowq
from rowq.worker.consumer import Consumer

STRIPES = 3


class Stub:
    """A fake queue object that answers or not, and counts calls."""

    def __init__(self, *, is_backing_off: bool = False) -> None:
        self.is_backing_off = is_backing_off
        self.calls: Counter[str] = Counter()

    def enqueue_batch(self, _name: str, messages: list[Any]) -> list[Any]:
        self._note("enqueue_batch")
        return [
            SimpleNamespace(position=number, message_id=number, outcome="enqueued")
            for number, _ in enumerate(messages, 1)
        ]

    def dequeue_fast(self, *_: Any, **__: Any) -> list[Any]:
        self._note("dequeue_fast")
        return []

    def maintain(self, name: str, _batch_size: int = 1000) -> list[Any]:
        self._note("maintain")
        return [SimpleNamespace(queue_name=name, elected=True, promoted=0, reaped=0)]

    def queue_stats(self, *_: Any, **__: Any) -> list[Any]:
        self._note("queue_stats")
        return [SimpleNamespace(ready=0, leased=0, is_paused=False)]

    def _note(self, call: str) -> None:
        self.calls[call] += 1
        if self.is_backing_off:
            raise rowq.ConnectionLost("no connection")


@pytest.fixture
def stubs() -> dict[str, Any]:
    """Return queue objects of two servers, one of them unreachable."""
    return {"away": Stub(is_backing_off=True), "here": Stub()}


@pytest.fixture
def striped(stubs: dict[str, Any]) -> rowq.Striped:
    return rowq.Striped("orders", STRIPES, stubs, reconnect_seconds=0)


def key_of(striped: rowq.Striped, server: str) -> str:
    return next(
        str(number) for number in range(1000) if striped.stripe_of_key(str(number)).server == server
    )


def test_partly_enqueued_batch_raises_unknown(
    striped: rowq.Striped,
) -> None:
    keyed = rowq.NewMessage(data=3, dedup_key=key_of(striped, "away"))
    with pytest.raises(rowq.ConnectionLost, match="2 of 3 messages were enqueued") as lost:
        striped.enqueue_batch([1, 2, keyed])
    assert lost.value.is_unknown
    with pytest.raises(rowq.ConnectionLost) as refused:
        striped.enqueue_batch([keyed, 1, 2])
    assert not refused.value.is_unknown


def test_unreachable_server_is_polled_once_per_round(
    striped: rowq.Striped, stubs: dict[str, Any]
) -> None:
    with pytest.raises(rowq.ConnectionLost):
        striped.maintain()
    found = striped.queue_stats()
    assert Counter(one.stripe.server for one in found if one.error) == {"away": STRIPES}
    assert stubs["away"].calls == {"maintain": 1, "queue_stats": 1}
    assert stubs["here"].calls == {"maintain": STRIPES, "queue_stats": STRIPES}
    stubs["here"].is_backing_off = True
    with pytest.raises(rowq.ConnectionLost):
        striped.dequeue_fast()
    assert stubs["here"].calls["dequeue_fast"] == 1


def test_all_unreachable_servers_are_polled(striped: rowq.Striped) -> None:
    for server_health in striped._server_health.values():
        server_health.record_failure()
    assert {one.stripe.server for one in striped.enqueue_batch([1])} == {"here"}


@pytest.mark.skipif(
    not hasattr(os, "fork"), reason="this system has no fork; to run it: Linux or macOS"
)
def test_forked_producers_choose_their_own_stripe(stubs: dict[str, Any]) -> None:
    many = [rowq.Striped("orders", 500, stubs) for _ in range(20)]
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writes, json.dumps([one._own[0].number for one in many]).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads) as answer:
        assert json.load(answer) != [one._own[0].number for one in many]


def test_drain_waits_for_an_unreachable_server(
    stubs: dict[str, Any],
) -> None:
    urls = dict.fromkeys(stubs, "postgresql://nobody@127.0.0.1:1/none")
    context = rowq.Worker(urls, "orders", print, stripes=STRIPES, drain=True)._context
    consumer = Consumer(context, print, {}, 1)
    slots: Any = {
        server.name: SimpleNamespace(server=server, queue=stubs[str(server.name)])
        for server in context.servers
    }
    consumer._slots = slots
    server_health = slots["away"].server.server_health
    assert not consumer._is_drained()
    server_health._retry_at += 3600
    assert not consumer._is_drained()
    assert stubs["away"].calls == {"maintain": 1}
    stubs["away"].is_backing_off = False
    server_health.record_success()
    assert consumer._is_drained()
