"""Limits hold while a third of 36 sessions is killed repeatedly.

At most max_leased messages are leased, at most rate_limit deliveries begin within rate_seconds, and
all capacity is free again within one lease.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rowq import NewMessage, Queue
from tests.chaos.limits_program import LEASE_SECONDS
from tests.concurrency.checker import check_limits
from tests.concurrency.history import Event
from tests.dice import SEED, dice, limit, times
from tests.engines.base import Connection, wait_until

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.requires("limits"),
    pytest.mark.timeout(limit(180)),
]
PROGRAM = Path(__file__).with_name("limits_program.py")
PROCESSES, SESSIONS = 6, 6
MESSAGES = 10_000
MAINTENANCE_SECONDS = 0.3


@dataclass
class Client:
    """One process with some sessions, and the lines that it printed."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    killed_at: float = float("inf")

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):
                self.lines.append(json.loads(line))

    def kill(self) -> None:
        """Kill it and wait until it has ended."""
        assert self.process.poll() is None, "it ended early"
        self.killed_at = time.monotonic()
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def events(self) -> Iterator[Event]:
        """Yield the events of its leases, by the common clock."""
        for line in self.lines:
            match line:
                case {"action": "dequeue", "claim_id": claim, "held": held}:
                    ids = tuple((message, 1) for message in line["ids"])
                    yield Event(
                        line["start"], line["end"], "client", "dequeue", claim, ids,
                        lease_seconds=LEASE_SECONDS,
                    )  # fmt: skip
                    if held:
                        yield Event(self.killed_at, self.killed_at, "client", "killed", claim)
                case {"action": "ending", "claim_id": claim, "start": start}:
                    yield Event(start, start, "client", "ending", claim)

    def beginnings(self) -> Iterator[Event]:
        """Yield the deliveries known to be committed, by the server's clock."""
        committed = {line["claim_id"] for line in self.lines if line["action"] == "commit"}
        for line in self.lines:
            if line["action"] == "dequeue" and (not line["held"] or line["claim_id"] in committed):
                at, ids = line["began"], tuple((message, 1) for message in line["ids"])
                yield Event(
                    at, at, "client", "dequeue", line["claim_id"], ids,
                    lease_seconds=LEASE_SECONDS,
                )  # fmt: skip


class Attack:
    """The running and the killed processes."""

    def __init__(self, url: str, held: int) -> None:
        self._url = url
        self._held = held
        self._numbers = 0
        self.working: list[Client] = []
        self.killed: list[Client] = []

    def start(self) -> None:
        """Start processes until PROCESSES are running."""
        while len(self.working) < PROCESSES:
            self._numbers += 1
            words = [self._url, f"{SEED} {self._numbers}", str(SESSIONS), str(self._held)]
            command = [sys.executable, str(PROGRAM), *words]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.working.append(Client(process))
        wait_until(self._all_work, "every process works", seconds=60)

    def _all_work(self) -> bool:
        return all(client.lines for client in self.working)

    def kill(self, clients: list[Client]) -> None:
        """Kill these clients."""
        for client in clients:
            self.working.remove(client)
            self.killed.append(client)
            client.kill()

    def events(self) -> list[Event]:
        """Return the events of all leases."""
        return [event for client in self.killed for event in client.events()]

    def beginnings(self) -> list[Event]:
        """Return the beginnings of all deliveries."""
        return [event for client in self.killed for event in client.beginnings()]


@contextmanager
def attacking(url: str, held: int) -> Iterator[Attack]:
    """Run an attack, and kill all processes at the end."""
    attack = Attack(url, held)
    try:
        attack.start()
        yield attack
    finally:
        for client in attack.working:
            client.process.kill()


_ALONE = pytest.mark.slow("the other cases include this limit", ci=False)


@pytest.mark.promise("P28", "P29", "P09")
@pytest.mark.parametrize(
    ("limits", "held", "lower"),
    [
        pytest.param({"max_leased": 7}, 0, None, id="leased", marks=_ALONE),
        pytest.param({"max_leased": 7}, 1, None, id="leased-and-held", marks=_ALONE),
        pytest.param({"max_leased": 7}, 1, {"max_leased": 2}, id="leased-and-altered"),
        pytest.param({"rate_limit": 25, "rate_seconds": 0.5}, 0, None, id="rate", marks=_ALONE),
        pytest.param({"max_leased": 5, "rate_limit": 40, "rate_seconds": 1}, 1, None, id="both"),
    ],
)
def test_limits_hold_while_sessions_are_killed(
    url: str,
    connection: Connection,
    limits: dict[str, Any],
    held: int,
    lower: dict[str, Any] | None,
) -> None:
    """lower: settings that alternate with the limits several times per second."""
    queue = Queue(connection)
    queue.alter_queue("orders", max_attempts=10_000, **limits)
    for _ in range(0, MESSAGES, 5000):
        queue.enqueue_batch("orders", [NewMessage()] * 5000)
    chance, most, worst = dice("limits", str(limits)), limits.get("max_leased"), 0
    room = min(limits.get("max_leased", 1000), limits.get("rate_limit", 1000))
    with attacking(url, held) as attack:
        for _ in range(times(4)):
            end = time.monotonic() + 1
            while time.monotonic() < end:
                worst = max(worst, queue.queue_stats("orders")[0].leased)
                queue.maintain("orders")
                if lower:
                    queue.alter_queue("orders", **chance.choice([limits, lower]))
                time.sleep(0.01)
            attack.kill(chance.sample(attack.working, PROCESSES // 3))
            attack.start()
        attack.kill(list(attack.working))
    queue.alter_queue("orders", **limits)
    quiet_since = time.monotonic()
    assert most is None or worst <= most
    assert check_limits(attack.events(), max_leased=most) == []
    begun = attack.beginnings()
    assert len(begun) > room, "the sessions were at work"
    rate = {name: value for name, value in limits.items() if name.startswith("rate")}
    assert check_limits(begun, **rate) == []

    while queue.queue_stats("orders")[0].leased:
        time.sleep(MAINTENANCE_SECONDS)
        queue.maintain("orders")
    assert time.monotonic() - quiet_since < LEASE_SECONDS + 2
    time.sleep(limits.get("rate_seconds", 0))
    assert len(queue.dequeue_fast("orders", 100)) == room
