"""The program's side of the protocol (see this package), for programs in Python."""

import json
import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_BUCKETS_PER_E = 50
_REPORT_SECONDS = 0.05
_OWN_LENGTH = len('{"t": 1700000000.123456, "n": 1000000, "pad": ""}')

Body = dict[str, Any]
Role = Callable[["Talk"], Mapping[str, Any]]


class Histogram:
    """Counts of durations in buckets 2 % wide."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.greatest = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        micros = seconds * 1e6
        self.greatest = max(self.greatest, micros)
        self.counts[math.floor(_BUCKETS_PER_E * math.log(max(micros, 1.0)))] += 1


def percentile(counts: Mapping[int, int], share: float) -> float:
    """Return a percentile in microseconds of a histogram that is not empty; share: 0 to 1."""
    left = share * sum(counts.values())
    for bucket in sorted(counts):
        left -= counts[bucket]
        if left <= 0:
            return math.exp((bucket + 0.5) / _BUCKETS_PER_E)
    return math.exp((max(counts) + 0.5) / _BUCKETS_PER_E)


class Talk:
    """The configuration and orders that the harness sends."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = json.loads(sys.stdin.readline())
        self.stopping = threading.Event()
        self.on_mark: Callable[[], object] = lambda: None
        self._on_stop: list[Callable[[], object]] = []
        self._go = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def url(self) -> str:
        """The database."""
        return str(self.config["url"])

    @property
    def queue(self) -> str:
        """The queue's name."""
        return str(self.config["queue"])

    @property
    def workers(self) -> int:
        """The number of handlers at a time in this process."""
        return int(self.config["workers"])

    @property
    def batch(self) -> int:
        """The number of messages per fetch."""
        return int(self.config["batch"])

    @property
    def keys(self) -> int:
        """The number of message groups, or 0."""
        return int(self.config["keys"])

    @property
    def delay(self) -> int:
        """Seconds before the messages are due."""
        return int(self.config["delay_seconds"])

    def ready(self) -> None:
        """Report that the program is ready, and wait for the order to go."""
        self.send({"ready": True})
        self._go.wait()

    def on_stop(self, act: Callable[[], object]) -> None:
        """Call a function, in another thread, on the order to stop."""
        self._on_stop.append(act)
        if self.stopping.is_set():
            act()

    def send(self, line: Mapping[str, Any]) -> None:
        """Send one object to the harness."""
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def _listen(self) -> None:
        for line in sys.stdin:
            order = json.loads(line)
            if "go" in order:
                self._go.set()
            if "mark" in order:
                self.on_mark()
            if "stop" in order:
                break
        self._go.set()
        self.stopping.set()
        for act in self._on_stop:
            act()


class Producing:
    """The role produce: yields the messages of each call when it is due, and times the calls."""

    def __init__(self, talk: Talk) -> None:
        config = talk.config
        self._talk = talk
        self._messages = int(config["messages"])
        self._rate = float(config["rate"])
        self._bulk = int(config["bulk"])
        self._first = int(config["first"])
        self._seconds = float(config["seconds"])
        self._keys = talk.keys
        self._bodies = [
            "x" * max(length - _OWN_LENGTH, 0)
            for length, count in config["bodies"]
            for _ in range(count)
        ]
        self._calls = Histogram()
        self._done = 0
        self._began = self._ended = 0.0

    def calls(self) -> Iterator[list[Body]]:
        """Yield the messages of each call when it is due; the caller makes the call."""
        self._began = self._ended = time.time()
        clock = time.monotonic()
        while self._done < self._messages and not self._talk.stopping.is_set():
            since = time.monotonic() - clock
            if self._rate:
                time.sleep(max(self._done / self._rate - since, 0))
            if since > self._seconds:
                return
            size = min(self._bulk, self._messages - self._done)
            now = time.time()
            started = time.perf_counter()
            yield [self._body(now, self._done + index) for index in range(size)]
            self._calls.add(time.perf_counter() - started)
            self._done += size
            self._ended = time.time()

    def result(self) -> dict[str, Any]:
        """Return the result of the role."""
        return {
            "messages": self._done,
            "began": self._began,
            "ended": self._ended,
            "call_us": self._calls.counts,
        }

    def _body(self, now: float, number: int) -> Body:
        pad = self._bodies[number % len(self._bodies)]
        number += self._first
        group = {"k": f"key {number % self._keys}"} if self._keys else {}
        return {"t": now, "n": number, "pad": pad} | group


class Tally:
    """The thread-safe handler of the role consume, and its counts."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._lock = threading.Lock()
        self._latency = Histogram()
        self._messages = 0
        self._sum = 0
        self._began: float | None = None
        self._ended: float | None = None
        self._starts: list[tuple[str, int, float]] = []
        talk.on_mark = self._forget_latencies
        threading.Thread(target=self._report, daemon=True).start()

    def handle(self, body: Mapping[str, Any]) -> None:
        """Handle a message: record its start."""
        now = time.time()
        with self._lock:
            self._messages += 1
            self._sum += body["n"]
            self._latency.add(now - body["t"])
            self._began = self._began or now
            self._ended = now
            if "k" in body:
                self._starts.append((body["k"], body["n"], now))

    def result(self) -> dict[str, Any]:
        """Return the result of the role."""
        return {
            "messages": self._messages,
            "sum": self._sum,
            "began": self._began,
            "ended": self._ended,
            "latency_us": self._latency.counts,
            "latency_max_us": self._latency.greatest,
        } | ({"starts": self._starts} if self._talk.keys else {})

    def _forget_latencies(self) -> None:
        with self._lock:
            self._latency = Histogram()

    def _report(self) -> None:
        reported = 0
        while not self._talk.stopping.wait(_REPORT_SECONDS):
            handled = self._messages
            if handled > reported:
                reported = handled
                self._talk.send({"handled": handled})


def run_role(roles: Mapping[str, Role]) -> None:
    """Run the role named on the command line, and send its result."""
    talk = Talk()
    talk.send(roles[sys.argv[1]](talk))


def run_threads(talk: Talk, turn: Callable[[], bool], pause: float = 0) -> None:
    """Call `turn` repeatedly in one thread per worker until the order to stop.

    turn: fetches, handles and acknowledges; returns whether there were messages.
    pause: seconds to wait if there were none. Raises the first error of a turn.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not talk.stopping.is_set():
                if not turn() and pause:
                    talk.stopping.wait(pause)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(talk.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
