"""Sessions that use topics, a schedule, limits and long waits beside the ten of a run.

Each kind has its own queues. `start` starts them, and `judge` returns the errors: a published
message that a bound queue did not deliver once, a missing or repeated tick, an exceeded limit, and
the findings of the checker of histories.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TypeVar

from rowq import Message, Queue
from tests.concurrency.actors import Actor, Producer, Run, TryAgain
from tests.concurrency.checker import check, check_limits
from tests.concurrency.consumers import Consumer
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import drain
from tests.dice import SEED
from tests.engines.base import Connection

TOPIC = "orders.paid"
BOUND = ("bills", "parcels")
TICKS = "ticks"
LIMITED = "limited"
MAX_LEASED = 3
LIMITED_MESSAGES = 300
STEP_SECONDS = 1
Result = TypeVar("Result")


class RetryingActor(Actor):
    """A session that retries calls refused by a retryable error."""

    def until_done(self, function: Callable[[], Result]) -> Result:
        """Make a call until it is not refused by a retryable error."""
        while True:
            with suppress(TryAgain):
                result: Result = self.call("again", function)
                return result
            self.run.stop.wait(0.01)


class Publisher(RetryingActor):
    """Publishes consecutive numbers."""

    published = 0

    def act(self) -> bool:
        number = self.published + 1
        rows = self.until_done(lambda: self.queue.publish(TOPIC, number))
        assert sorted(row.queue_name for row in rows) == sorted(BOUND)
        self.published = number
        self.run.stop.wait(0.01)
        return True


class Subscriber(RetryingActor):
    """Waits for messages of a queue, and completes them with a result."""

    def __init__(self, run: Run, name: str, seed: int, queue_name: str) -> None:
        super().__init__(run, name, seed)
        self.queue_name = queue_name
        self.got: list[Message] = []

    def act(self) -> bool:
        messages = self.until_done(
            lambda: self.queue.dequeue_wait(
                self.queue_name, 20, worker_name=self.name, wait_seconds=1
            )
        )
        self.take(messages)
        return True

    def take(self, messages: Sequence[Message]) -> None:
        """Complete delivered messages, and remember them."""
        if not messages:
            return
        claim_id = messages[0].claim_id
        results = [message.message_id for message in messages]
        ids = [message.message_id for message in messages]
        done = self.until_done(
            lambda: self.queue.complete(self.queue_name, claim_id, ids, results=results)
        )
        assert {outcome.outcome for outcome in done} == {"completed"}
        self.got += messages

    def take_remaining(self) -> None:
        """Take the remaining messages; no other session is running."""
        self.connect()
        while messages := self.queue.dequeue_fast(self.queue_name, 1000):
            self.take(messages)


class Maintainer(RetryingActor):
    """Maintains all queues, and reads them like a monitor."""

    def act(self) -> bool:
        self.until_done(self.queue.maintain)
        self.until_done(lambda: self.queue.queue_stats(None))
        self.until_done(lambda: self.queue.list_schedules(TICKS))
        self.run.stop.wait(0.1)
        return True


class Features:
    """The sessions, and the queues that they use."""

    def __init__(self, main: Run) -> None:
        self.run = Run(
            main.server,
            main.url,
            LIMITED,
            Recorder(),
            largest_batch=2,
            stop=main.stop,
            may_be_retried=True,
            retried=main.retried,
            errors=main.errors,
        )
        with self._queue() as queue:
            for name in BOUND:
                queue.create_queue(name, result_seconds=3600)
                queue.bind_topic(name, "orders.#")
            queue.create_queue(TICKS, result_seconds=3600, history_days=1)
            queue.create_schedule(TICKS, "often", interval_seconds=STEP_SECONDS, missed="all")
            queue.create_queue(
                LIMITED, max_leased=MAX_LEASED, backoff_base_seconds=0, max_attempts=10_000
            )
        self.publisher = Publisher(self.run, "publisher", SEED)
        self.subscribers = [
            Subscriber(self.run, f"subscriber of {name}", SEED, name) for name in (*BOUND, TICKS)
        ]
        self.actors: list[Actor] = [
            self.publisher,
            *self.subscribers,
            Maintainer(self.run, "maintainer", SEED),
            Producer(self.run, "producer at the limit", SEED, LIMITED_MESSAGES),
            *(Consumer(self.run, f"consumer {number} at the limit", SEED) for number in range(3)),
        ]

    def start(self) -> None:
        """Start the sessions; they work until the run stops."""
        for actor in self.actors:
            actor.thread.start()

    def judge(self) -> list[str]:
        """Take the remaining messages after all sessions have ended, and return the errors."""
        for actor in self.actors:
            actor.thread.join(60)
            assert not actor.thread.is_alive(), f"{actor.name} does not end"
        # A short run may have ended before the first tick.
        time.sleep(STEP_SECONDS)
        with self._queue() as queue:
            queue.maintain(TICKS)
        for subscriber in self.subscribers:
            subscriber.take_remaining()
        with self._queue() as queue:
            faults = [
                *self._faults_of_topics(queue),
                *self._faults_of_ticks(),
                *self._faults_at_the_limit(queue),
            ]
        for subscriber in self.subscribers:
            subscriber.connection.close()
        return faults

    def summary(self) -> str:
        """Return a summary to print."""
        got = {one.queue_name: len(one.got) for one in self.subscribers}
        return f"published {self.publisher.published}; delivered {got}"

    def _faults_of_topics(self, queue: Queue) -> Iterator[str]:
        assert self.publisher.published > len(BOUND)
        wanted = Counter(range(1, self.publisher.published + 1))
        for subscriber in self.subscribers[: len(BOUND)]:
            found = Counter(message.data for message in subscriber.got)
            if found != wanted:
                lost, twice = wanted - found, found - wanted
                yield f"{subscriber.queue_name}: lost {list(lost)}, repeated {list(twice)}"
            for message in subscriber.got:
                result = queue.get_result(subscriber.queue_name, message.message_id)
                if result is None or result.result != message.message_id:
                    yield f"{subscriber.queue_name}: message {message.message_id} has no result"

    def _faults_of_ticks(self) -> Iterator[str]:
        headers = [message.headers or {} for message in self.subscribers[-1].got]
        ticks = sorted(datetime.fromisoformat(one["tick"]) for one in headers)
        step = timedelta(seconds=STEP_SECONDS)
        if not ticks or ticks != [ticks[0] + step * number for number in range(len(ticks))]:
            yield f"the ticks are {ticks}"

    def _faults_at_the_limit(self, queue: Queue) -> Iterator[str]:
        history = self.run.recorder.history()
        yield from check_limits(history, max_leased=MAX_LEASED)
        queue.alter_queue(LIMITED, max_leased=0)
        with self._connection() as connection:
            drain(self.run, connection)
        yield from check(self.run.recorder.history())

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        connection = self.run.server.connect(self.run.url)
        yield connection
        connection.close()

    @contextmanager
    def _queue(self) -> Iterator[Queue]:
        with self._connection() as connection:
            yield Queue(connection)
