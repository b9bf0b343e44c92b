"""A worker of several queues."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.worker.polling import Polling, PollingTurn, Turn
from rowq.worker.stripes import QueueOrder, Stripe
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

URL = "postgresql://host/db"
NAMES = ("a", "b", "c")

Queues = dict[str, WorkerQueue]


def ignored(message: rowq.Message) -> None:
    """Do nothing, in any process."""


@pytest.fixture
def queues(make_queue: MakeQueue) -> Queues:
    """Return three queues by short names."""
    first = make_queue(lease_seconds=60, backoff_base_seconds=0)
    found = {name: WorkerQueue(first.url, first.client, f"{first.name}/{name}") for name in NAMES}
    for queue in found.values():
        queue.create_queue(lease_seconds=60, backoff_base_seconds=0)
    return found


def worker(queues: Queues, handler: Any, weights: tuple[int, ...] = (), **options: Any) -> Any:
    names = [queue.name for queue in queues.values()]
    given: Any = dict(zip(names, weights, strict=True)) if weights else names
    return rowq.Worker(queues["a"].url, given, handler, **{"batch_size": 1, **options})


class Seen:
    """A handler that keeps the short name of each message's queue."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, message: rowq.HeldMessage, *_: Any) -> None:
        self.names.append(message.stripe.queue_name[-1])

    @property
    def text(self) -> str:
        return "".join(self.names)


def fill(queues: Queues, count: int) -> None:
    for queue in queues.values():
        queue.fill(count)


@pytest.mark.promise("P04")
@pytest.mark.parametrize("transactional", [False, True])
def test_list_is_worked_in_its_order(queues: Queues, transactional: bool) -> None:
    fill(queues, 5)
    seen = Seen()
    stats = worker(queues, seen, drain=True, transactional=transactional).run()
    assert seen.text == "aaaaabbbbbccccc"
    assert (stats.processed, stats.stale) == (15, 0)


def test_earlier_queue_goes_before_the_next_claim(queues: Queues) -> None:
    queues["b"].fill(3)
    seen = Seen()

    def handle(message: rowq.HeldMessage) -> None:
        seen(message)
        if seen.text == "b":
            queues["a"].fill(2)

    worker(queues, handle, drain=True).run()
    assert seen.text == "baabb"


def test_weights_are_exact_over_100_claims(queues: Queues) -> None:
    fill(queues, 100)
    seen = Seen()

    def handle(message: rowq.HeldMessage) -> None:
        seen(message)
        if len(seen.names) == 100:
            working.stop()

    working = worker(queues, handle, (6, 3, 1))
    working.run()
    assert [seen.names.count(name) for name in NAMES] == [60, 30, 10]
    assert all(seen.text[at : at + 10].count("a") == 6 for at in range(0, 100, 10))


@pytest.mark.parametrize("weights", [(), (5, 3, 1)])
@pytest.mark.parametrize("is_paused", [False, True])
def test_empty_and_paused_queues_are_passed_over(
    queues: Queues, weights: tuple[int, ...], is_paused: bool
) -> None:
    if is_paused:
        queues["a"].fill(3)
        queues["a"].pause_queue()
    for name in "bc":
        queues[name].fill(12)
    seen = Seen()
    worker(queues, seen, weights, drain=True).run()
    assert (seen.names.count("b"), seen.names.count("c")) == (12, 12)
    if weights:
        assert seen.text[:12].count("b") == 9
    assert queues["a"].counts()[0] == (3 if is_paused else 0)


@pytest.mark.requires("limits")
@pytest.mark.promise("P29")
def test_limit_of_one_queue_delays_no_other(queues: Queues) -> None:
    queues["a"].alter_queue(rate_limit=1, rate_seconds=3600)
    fill(queues, 5)
    seen = Seen()
    with running(worker(queues, seen)):
        wait_until(lambda: len(seen.names) == 11, "the others are handled")
    assert seen.text == "abbbbbccccc"
    assert queues["a"].counts()[0] == 4


def test_each_queue_may_have_its_handler(queues: Queues) -> None:
    fill(queues, 2)
    seen: list[tuple[str, Any]] = []

    async def of_c(messages: list[rowq.HeldMessage]) -> None:
        await asyncio.sleep(0)
        seen.append(("c", [message.data for message in messages]))

    def keep(name: str) -> Callable[[list[rowq.HeldMessage]], None]:
        return lambda messages: seen.append((name, [message.data for message in messages]))

    handlers = {queue.name: of_c if name == "c" else keep(name) for name, queue in queues.items()}
    worker(queues, handlers, per="batch", batch_size=None, drain=True).run()
    assert seen == [("a", [0, 1]), ("b", [0, 1]), ("c", [0, 1])]


def test_concurrent_handler_works_on_several_queues(queues: Queues) -> None:
    fill(queues, 4)
    seen = Seen()

    async def handle(message: rowq.HeldMessage) -> None:
        await asyncio.sleep(0)
        seen(message)

    worker(queues, handle, concurrent=True, batch_size=4, drain=True).run()
    assert seen.text == "aaaabbbbcccc"


def test_drain_reaps_and_promotes_in_every_queue(queues: Queues) -> None:
    for queue in queues.values():
        queue.fill(1)
        queue.dequeue_fast(lease_seconds=1)
        queue.enqueue(1, delay_seconds=1)
    time.sleep(1.1)
    seen = Seen()
    worker(queues, seen, drain=True, maintain_seconds=0).run()
    assert sorted(seen.names) == ["a", "a", "b", "b", "c", "c"]


def test_lease_is_extended_in_every_queue(queues: Queues) -> None:
    fill(queues, 1)
    handled: list[bool] = []

    def handle(message: rowq.HeldMessage) -> None:
        time.sleep(1.5)
        handled.append(message.lost)

    stats = worker(queues, handle, threads=3, lease_seconds=1, drain=True).run()
    assert handled == [False] * 3
    assert stats.processed == 3


def test_handler_may_fill_another_queue(queues: Queues) -> None:
    queues["c"].fill(1)
    seen = Seen()
    url = queues["a"].url

    def handle(message: rowq.HeldMessage) -> None:
        seen(message)
        if len(seen.names) < 9:
            with rowq.connect(url) as client:
                client.enqueue(queues[NAMES[len(seen.names) % 3]].name, 0)

    worker(queues, handle, threads=2, drain=True).run()
    assert seen.text == "cbcabcabc"


@pytest.mark.slow("starts processes")
def test_processes_share_several_queues(queues: Queues) -> None:
    fill(queues, 20)
    name = f"{ignored.__module__}:{ignored.__name__}"
    handlers = {queue.name: name for queue in queues.values()}
    stats = worker(queues, handlers, (3, 2, 1), processes=2, drain=True).run()
    assert stats.processed == 60
    assert all(queue.counts() == (0, 0, 0, 0) for queue in queues.values())


def test_worker_is_reported_to_every_queue(queues: Queues) -> None:
    with running(worker(queues, print, worker_name="many")):
        wait_until(lambda: all(queue.list_workers() for queue in queues.values()), "it is reported")


def test_dropped_queue_ends_the_worker(queues: Queues) -> None:
    working = worker(queues, print)
    failures: list[Exception] = []

    def run() -> None:
        try:
            working.run()
        except rowq.WorkerFailed as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(working._context.polling.was_idle, "it is idle")

    def is_dropped() -> bool:
        # The worker may be in a call.
        with suppress(rowq.QueueBusy):
            queues["b"].drop_queue()
            return True
        return False

    wait_until(is_dropped, "the queue is dropped")
    thread.join(60)
    assert "RQ701" in str(failures[0])


def test_one_name_in_a_list_is_one_queue(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    queue = queues["b"]
    queue.fill(3)
    engine, called = engine_for_url(queue.url), []
    call = engine.call

    def recorded(connection: Any, routine: str, arguments: Any) -> Any:
        if threading.current_thread().name == "rowq-consumer":
            called.append(routine)
        return call(connection, routine, arguments)

    monkeypatch.setattr(engine, "call", recorded)
    rowq.Worker(queue.url, [queue.name], ignored, batch_size=1, drain=True).run()
    assert called.count("complete_and_dequeue") == 3


def test_notified_poll_asks_the_named_queues_only() -> None:
    shared = Polling(3600, 3600)
    turn = PollingTurn(shared)

    def asked() -> set[str] | None:
        assert turn.wait() is Turn.POLL
        return turn.queue_names

    shared.notify(["a"])
    shared.notify(["b"])
    assert asked() == {"a", "b"}
    shared.notify(["a"])
    shared.hurry()
    shared.notify(["b"])
    assert asked() is None
    shared.hurry()
    assert asked() is None


def test_weighted_queue_saves_no_turns_while_empty() -> None:
    a, b = queues = [Stripe(number, None, name) for number, name in enumerate("ab")]
    order = QueueOrder(queues, [3, 1])
    for _ in range(50):
        order.record(b, is_full=False)
    taken = []
    for _ in range(8):
        taken.append(order.next()[0])
        order.record(taken[-1], is_full=False)
    assert taken.count(a) == 6


@pytest.mark.parametrize(
    ("queue_name", "options", "text"),
    [
        ([], {}, "queue_name must name at least one queue"),
        (["a", ""], {}, "queue_name must be 1 to 100 characters"),
        (["a", 1], {}, "queue_name must be 1 to 100 characters"),
        (None, {}, "queue_name must be 1 to 100 characters"),
        (["a", "b", "a"], {}, "queue_name must not name a queue twice"),
        ({"a": 0, "b": 1}, {}, "weights must be integers between 1 and 1000"),
        ({"a": 1.5}, {}, "weights must be integers between 1 and 1000"),
        (["a", "b"], {"stripes": 2}, "several queues require one server URL, and no stripes"),
        (["a", "b"], {"url": {"x": URL, "y": URL}}, "several queues require one server URL"),
        (["a", "b"], {"handler": {"a": ignored}}, "handlers by queue must have the names"),
        ("a", {"handler": {"b": ignored}}, "handlers by queue must have the names"),
        ("a", {"handler": {"a": ignored}, "stripes": 2}, "handlers by queue must have the names"),
        (["a", "b"], {"handler": {"a": ignored, "b": 1}}, "handler must be callable"),
    ],
)
def test_wrong_queues_are_refused(queue_name: Any, options: dict[str, Any], text: str) -> None:
    url, handler = options.pop("url", URL), options.pop("handler", ignored)
    with pytest.raises(rowq.InvalidArgument, match=text):
        rowq.Worker(url, queue_name, handler, **options)
