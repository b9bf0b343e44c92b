"""Ten sessions work through a network that stalls, delays and drops connections."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import rowq
from tests.chaos.killable import KillableServer
from tests.client.proxy import Relay, relay
from tests.concurrency.actors import Run
from tests.concurrency.history import Recorder
from tests.concurrency.judged_run import count, perform
from tests.dice import dice, limit, times

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("genuine"),
    pytest.mark.timeout(limit(300)),
]

MESSAGES = 2500


class Weather(threading.Thread):
    """Disturbs the network until the run stops.

    done: how often it did each thing.
    """

    def __init__(self, network: Relay, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._network = network
        self._ended = stop
        self._seeded_random = dice("weather")
        self.done: dict[str, int] = {}

    def run(self) -> None:
        kinds: list[Callable[[], None]] = [self.cut, self.break_off, self.stall, self.delay]
        while not self._ended.wait(self._seeded_random.uniform(0.05, 0.4)):
            kind = self._seeded_random.choice(kinds)
            self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1
            kind()
        self._network.calm()

    def cut(self) -> None:
        """Close every connection."""
        self._network.cut()

    def break_off(self) -> None:
        """Close one connection in the middle of a reply."""
        self._network.cut_next_reply(self._seeded_random.randint(0, 2000))

    def stall(self) -> None:
        """Stall the network; then deliver the stalled data, or drop it."""
        self._network.stall()
        self._ended.wait(self._seeded_random.uniform(0.01, 0.3))
        if self._seeded_random.random() < 0.5:
            self._network.cut()
        self._network.go_on()

    def delay(self) -> None:
        """Slow everything down."""
        self._network.delay_seconds = self._seeded_random.choice([0, 0, 0.001, 0.01])


@pytest.mark.promise("P01", "P02", "P03", "P04", "P07", "P08")
def test_ten_sessions_lose_and_repeat_nothing_on_a_bad_network(
    killable: KillableServer, url: str, tmp_path: Path
) -> None:
    with rowq.connect(url) as queue:
        queue.create_queue("orders", backoff_base_seconds=0)
    with relay(url) as network:
        run = Run(killable.server, network.url, "orders", Recorder(), direct_url=url)
        weather = Weather(network, run.stop)
        history = perform(run, times(MESSAGES), tmp_path, weather.start)
    print(weather.done)
    assert count(history, "enqueue") >= MESSAGES
    assert any(not event.known for event in history)
