"""One of a striped queue's two servers is killed; clients continue on the other."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

import rowq
from rowq.tools.migrate import migrate
from tests.chaos.killable import WAYS, KillableServer
from tests.concurrency.checker import check
from tests.concurrency.history import Recorder
from tests.dice import limit, times
from tests.engines.base import wait_until
from tests.helpers.workers import running

pytestmark = [pytest.mark.chaos, pytest.mark.requires("restart")]

STRIPES = 2
LEASE_SECONDS = 5
RECONNECT_SECONDS = LEASE_SECONDS
"""Seconds that a consumer tries to complete on an unreachable server.

During that time it does not dequeue from the other server; after that the claim has expired anyway.
"""
MESSAGES = times(300)
"""Minimum number of messages per producer."""
PRODUCERS, CONSUMERS = 3, 3
A_CONNECTION = 25
"""Messages per connection of a producer, which uses one stripe."""


@dataclass
class Striped:
    """A striped queue on two servers, of which `mortal` is named "a"."""

    urls: dict[str, str]
    mortal: KillableServer

    def connect(self) -> rowq.Striped:
        """Return one more client."""
        return rowq.connect_striped(
            "orders", STRIPES, self.urls, reconnect_seconds=RECONNECT_SECONDS
        )


@pytest.fixture
def striped(killable: KillableServer, url: str) -> Iterator[Striped]:
    """Return a striped queue on this server and a second one."""
    product = killable.name.rstrip("0123456789.")
    with ExitStack() as stack:
        other = stack.enter_context(WAYS[product](killable.name.removeprefix(product)))
        second = other.server.fresh_database()
        migrate(second)
        found = Striped({"a": second, "b": url}, other)
        with found.connect() as orders:
            orders.create_queue(backoff_base_seconds=0)
        yield found


@dataclass
class Story:
    """The history of several clients; ids include the stripe's number."""

    recorder: Recorder = field(default_factory=Recorder)
    may_end: threading.Event = field(default_factory=threading.Event)
    is_over: threading.Event = field(default_factory=threading.Event)
    placed: Counter[str | None] = field(default_factory=Counter)
    completed: Counter[str | None] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)

    def number(self, stripe: rowq.Stripe, own: int) -> int:
        """Return a message id or claim id that is unique among stripes."""
        return own * 2 * STRIPES + stripe.number

    def produce(self, name: str, striped: Striped) -> None:
        """Enqueue MESSAGES, and more until the story may end."""
        count = 0
        while count < MESSAGES or not self.may_end.is_set():
            with striped.connect() as orders:
                for _ in range(A_CONNECTION):
                    count += 1
                    self._put(name, orders, count)

    def _put(self, name: str, orders: rowq.Striped, data: int) -> None:
        start = self.recorder.clock()
        try:
            sent = orders.enqueue(data)
        except rowq.ConnectionLost as lost:
            if not lost.is_unknown:
                raise
            self.recorder.record(start, name, "enqueue", known=False)
            return
        self.placed[sent.stripe.server] += 1
        there = [(self.number(sent.stripe, sent.message_id), 5)]
        self.recorder.record(start, name, "enqueue", results=there)

    def consume(self, name: str, striped: Striped) -> None:
        """Take and complete messages until the story ends."""
        with striped.connect() as orders:
            while not self.is_over.is_set():
                self._take(name, orders)

    def _take(self, name: str, orders: rowq.Striped) -> None:
        start = self.recorder.clock()
        claims: dict[rowq.StripeClaim, list[rowq.StripedMessage]] = {}
        for message in orders.dequeue_wait(10, lease_seconds=LEASE_SECONDS, wait_seconds=0.5):
            claims.setdefault(message.claim, []).append(message)
        for claim, members in claims.items():
            self.recorder.record(
                start,
                name,
                "dequeue",
                self.number(claim.stripe, claim.claim_id),
                [(self.number(claim.stripe, one.message_id), one.attempt) for one in members],
                lease_seconds=LEASE_SECONDS,
            )
        for claim, members in claims.items():
            self._complete(name, orders, claim, [one.message_id for one in members])

    def _complete(
        self, name: str, orders: rowq.Striped, claim: rowq.StripeClaim, ids: list[int]
    ) -> None:
        start = self.recorder.clock()
        try:
            outcomes = dict.fromkeys(ids, "stale")
            outcomes |= {one.message_id: one.outcome for one in orders.complete(claim, ids)}
        except (rowq.StaleClaim, rowq.ConnectionLost):
            pass
        done = [one for one, outcome in outcomes.items() if outcome == "completed"]
        self.completed[claim.stripe.server] += len(done)
        # A call that was retried after a lost answer finds nothing left to complete.
        for known, some in ((True, done), (False, [one for one in ids if one not in done])):
            if some:
                self.recorder.record(
                    start,
                    name,
                    "complete",
                    self.number(claim.stripe, claim.claim_id),
                    [(self.number(claim.stripe, one), "completed") for one in some],
                    known=known,
                )

    def record_death(self) -> None:
        """Record that each consumer may have lost a dequeue's answer."""
        for _ in range(CONSUMERS):
            self.recorder.record(self.recorder.clock(), "unknown", "dequeue", known=False)


@contextmanager
def acting(story: Story, striped: Striped, act: str, count: int) -> Iterator[None]:
    """Run `count` clients that produce or consume, in a thread each."""

    def run(name: str) -> None:
        try:
            getattr(story, act)(name, striped)
        except BaseException as error:
            story.failures.append(error)
            story.is_over.set()
            story.may_end.set()

    threads = [
        threading.Thread(target=run, args=(f"{act} {number}",), daemon=True)
        for number in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        story.may_end.set()
        for thread in threads:
            thread.join(limit(120))


@pytest.mark.timeout(limit(600))
@pytest.mark.promise("P01", "P02", "P03", "P04", "P08")
def test_nothing_is_lost_or_repeated_if_one_server_is_away(
    striped: Striped,
) -> None:
    story = Story()

    def continues(server: str, counter: Counter[str | None], by: int) -> None:
        before = counter[server]
        what = f"{by} more on {server}"
        wait_until(
            lambda: bool(story.failures) or counter[server] >= before + by, what, seconds=limit(120)
        )
        assert not story.failures

    with striped.connect() as judge:
        with acting(story, striped, "consume", CONSUMERS):
            with acting(story, striped, "produce", PRODUCERS):
                continues("a", story.completed, MESSAGES // 10)
                striped.mortal.kill()
                story.record_death()
                for counter in (story.placed, story.completed):
                    continues("b", counter, MESSAGES // 2)
                striped.mortal.restart()
                for counter in (story.placed, story.completed):
                    continues("a", counter, MESSAGES // 10)
            wait_until(lambda: is_done(judge), "all is done", seconds=limit(180))
            story.is_over.set()
        assert not story.failures
        for _ in range(3):
            start = story.recorder.clock()
            judge.maintain()
            story.recorder.record(start, "judge", "maintain")
        start = story.recorder.clock()
        assert judge.undrained() == []
        story.recorder.record(start, "judge", "census")
    assert check(story.recorder.history()) == []


def is_done(judge: rowq.Striped) -> bool:
    """Call maintain, and return whether all stripes are drained."""
    judge.maintain()
    return judge.undrained() == []


@pytest.mark.timeout(limit(600))
@pytest.mark.promise("P02")
@pytest.mark.parametrize("transactional", [False, True])
def test_worker_continues_on_the_other_server_and_reconnects(
    striped: Striped, transactional: bool
) -> None:
    done: Counter[tuple[int, int]] = Counter()
    lock = threading.Lock()

    def handle(message: rowq.HeldMessage, *_: object) -> None:
        with lock:
            done[message.stripe.number, message.message_id] += 1

    def on(server: str) -> int:
        with lock:
            return sum(stripe % 2 == ("a", "b").index(server) for stripe, _ in done)

    sent: set[tuple[int, int]] = set()

    def send(orders: rowq.Striped, count: int) -> None:
        for number in range(count):
            placed = orders.enqueue(number, stripe=orders.stripes[number % len(orders.stripes)])
            sent.add((placed.stripe.number, placed.message_id))

    worker = rowq.Worker(
        striped.urls,
        "orders",
        handle,
        stripes=STRIPES,
        threads=2,
        lease_seconds=LEASE_SECONDS,
        transactional=transactional,
    )
    with striped.connect() as orders, running(worker):
        send(orders, 40)
        wait_until(lambda: on("a") >= 20, "the worker serves both", seconds=limit(60))
        striped.mortal.kill()
        before = on("b")
        for number in range(40):
            placed = orders.enqueue(number)
            assert placed.stripe.server == "b"
            sent.add((placed.stripe.number, placed.message_id))
        wait_until(lambda: on("b") >= before + 40, "it continues", seconds=limit(60))
        critical = [one for one in orders.health() if one.check.check_name == "server_answers"]
        assert [(one.server, one.check.status) for one in critical] == [("a", "critical")]
        away = [stripe for stripe in orders.queue_stats() if stripe.error]
        assert {stripe.stripe.server for stripe in away} == {"a"}
        striped.mortal.restart()
        send(orders, 40)
        wait_until(lambda: done.keys() >= sent, "it has reconnected", seconds=limit(120))
        wait_until(lambda: orders.undrained() == [], "all outcomes are reported", seconds=limit(60))


@pytest.mark.timeout(limit(300))
@pytest.mark.promise("P12", "P21")
def test_message_with_a_dedup_key_waits_for_its_server(striped: Striped) -> None:
    with striped.connect() as orders:
        key = next(
            str(number) for number in range(100) if orders.stripe_of_key(str(number)).server == "a"
        )
        first = orders.enqueue(0, dedup_key=key)
        striped.mortal.kill()
        again: list[rowq.StripedEnqueued] = []
        waiting = threading.Thread(target=lambda: again.append(orders.enqueue(1, dedup_key=key)))
        waiting.start()
        time.sleep(0.2)
        striped.mortal.restart()
        waiting.join(limit(60))
        assert [(one.stripe, one.message_id, one.outcome) for one in again] == [
            (first.stripe, first.message_id, "duplicate")
        ]
