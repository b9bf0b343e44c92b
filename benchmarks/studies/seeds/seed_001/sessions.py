"""The sessions of seed 001: they add messages to chains, or take and finish them."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.closing import Closing
from benchmarks.harness.session import RetryError, Row, Value
from benchmarks.harness.team import Gate
from benchmarks.studies.seeds.client import rowq_file
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.sections import read_sections

WORK_SECONDS = 0.001
_PRODUCER_PAUSE = 0.002
_IDLE_PAUSE = 0.002
_BODY_LENGTH = 200
_DAY_SECONDS = 86_400
_MOST = 1000


@dataclass(slots=True)
class Account:
    """The work that a session did.

    started, ended: when a message was handed to its handler and when the handler was done, by the
    monotonic clock, in the order of the messages in `handled`. predecessors: of the messages that
    this session added. retries: transactions tried again after a deadlock or a lock timeout.
    """

    handled: list[int] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    predecessors: dict[int, int] = field(default_factory=dict)
    retries: int = 0


class ChainSession(Closing):
    """A session of one form; its file's sections say how."""

    def __init__(self, dialect: Dialect, path: Path, url: str) -> None:
        self._sql = read_sections(path)
        self.session = dialect.open(url)
        if "session" in self._sql:
            self.session.run(self._sql["session"])

    def close(self) -> None:
        """Close the session."""
        self.session.close()

    def create(self) -> None:
        """Create the queue, where that is more than its tables."""

    def prepare(self, count: int, length: int, stuck: int = 0) -> dict[int, int]:
        """Add messages in chains of a length, and settle; return their predecessors, 0 for none.

        stuck: so many of them, the first ones, are one chain, whose head is due tomorrow.
        """
        for section in ("fill", "settle"):
            self._run_all(section, count=count, length=length, stuck=stuck)
        return {
            place: 0 if _is_head(place, length, stuck) else place - 1
            for place in range(1, count + 1)
        }

    def enqueue(self, predecessor: int) -> int:
        """Add a message after another one, or after none if that is 0; return its id."""
        if "hold" not in self._sql:
            return _number(self.session.run(self._sql["enqueue"], predecessor=predecessor))
        self.session.run("begin")
        held = self.session.run(self._sql["hold"], predecessor=predecessor)
        added = _number(self.session.run(self._sql["enqueue"], predecessor=predecessor))
        if held:
            self.session.run(self._sql["block"], predecessor=predecessor, id=added)
        else:
            self.session.run(self._sql["ready"], id=added)
        self.session.run("commit")
        return added

    def dequeue(self) -> int:
        """Begin a transaction and take a message; return its id, or 0 and no transaction."""
        self.session.run("begin")
        rows = self.session.run(self._sql["dequeue"])
        if not rows:
            self.session.run("rollback")
            return 0
        taken = _number(rows)
        if "read" in self._sql:
            self.session.run(self._sql["read"], id=taken)
        return taken

    def finish(self, taken: int) -> None:
        """Finish the message and commit."""
        self._run_all("finish", id=taken)
        self.session.run("commit")

    def maintain(self) -> None:
        """Do the form's housekeeping, if it has any."""

    def _run_all(self, section: str, **values: Value) -> None:
        for statement in self._sql[section].split(";\n"):
            self.session.run(statement, **values)


class RowqChainSession(ChainSession):
    """A session of rowq, whose claims need no open transaction; url: where it is installed."""

    def __init__(self, dialect: Dialect, url: str) -> None:
        super().__init__(dialect, rowq_file(dialect.name), url)
        self._claims: dict[int, int] = {}

    def create(self) -> None:
        """Create the queue."""
        self.session.run(self._sql["create"])

    def prepare(self, count: int, length: int, stuck: int = 0) -> dict[int, int]:
        """Add messages in chains of a length, and settle; see ChainSession."""
        step = max(1, _MOST // length) * length
        predecessors: dict[int, int] = {}
        for first, past in _pieces(count, stuck, step):
            added = self._fill(range(first, past), length, stuck)
            for place, number in zip(range(first, past), added, strict=True):
                is_head = _is_head(place, length, stuck)
                predecessors[number] = 0 if is_head else added[place - first - 1]
        if "settle" in self._sql:
            self.session.run(self._sql["settle"])
        return predecessors

    def enqueue(self, predecessor: int) -> int:
        """Add a message after another one, or after none if that is 0; return its id."""
        body = str(predecessor).ljust(_BODY_LENGTH, "x").encode()
        return _number(
            self.session.run(self._sql["enqueue_after"], body=body, predecessor=predecessor)
        )

    def dequeue(self) -> int:
        """Take a message; return its id, or 0."""
        rows = self.session.run(self._sql["dequeue"], batch=1)
        if not rows:
            return 0
        claim, taken = (int(value or 0) for value in rows[0][:2])
        self._claims[taken] = claim
        return taken

    def finish(self, taken: int) -> None:
        """Complete the message."""
        self.session.run(self._sql["complete"], claim=self._claims.pop(taken))

    def maintain(self) -> None:
        """Call maintain, as a worker does once a second."""
        self.session.run(self._sql["maintain"])

    def _fill(self, places: range, length: int, stuck: int) -> list[int]:
        """Add the messages of these places; return their ids."""
        messages: list[dict[str, Any]] = []
        for place in places:
            message: dict[str, Any] = {"body": str(place).ljust(_BODY_LENGTH, "x")}
            if not _is_head(place, length, stuck):
                message["predecessor_positions"] = [len(messages)]
            elif place <= stuck:
                message["delay_seconds"] = _DAY_SECONDS
            messages.append(message)
        rows = self.session.run(self._sql["fill_chains"], messages=json.dumps(messages))
        return [int(row[1] or 0) for row in sorted(rows, key=lambda row: int(row[0] or 0))]


def _is_head(place: int, length: int, stuck: int) -> bool:
    """Return whether the message of a place, from 1, is the first of its chain."""
    return place == 1 if place <= stuck else place % length == 1 or length == 1


def _pieces(count: int, stuck: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield the first place and the one past the last of each call that adds whole chains."""
    if stuck:
        yield 1, stuck + 1
    for first in range(stuck + 1, count + 1, step):
        yield first, min(first + step, count + 1)


OpenChain = Callable[[str], ChainSession]


def consume(open_chain: OpenChain, url: str, seconds: float, gate: Gate) -> Account:
    """Take messages one by one, work for a millisecond on each, and finish it."""
    account = Account()
    with open_chain(url) as chain:
        end = gate.wait() + seconds
        while time.monotonic() < end:
            try:
                if not (taken := chain.dequeue()):
                    time.sleep(_IDLE_PAUSE)
                    continue
                started = time.monotonic()
                time.sleep(WORK_SECONDS)
                ended = time.monotonic()
                chain.finish(taken)
            except RetryError:
                account.retries += 1
                chain.session.run("rollback")
                continue
            account.handled.append(taken)
            account.started.append(started)
            account.ended.append(ended)
    return account


def produce(open_chain: OpenChain, url: str, seconds: float, gate: Gate) -> Account:
    """Add messages to a chain of this session's own, one every two milliseconds at most."""
    account = Account()
    last = 0
    with open_chain(url) as chain:
        end = gate.wait() + seconds
        while time.monotonic() < end:
            try:
                added = chain.enqueue(last)
            except RetryError:
                account.retries += 1
                chain.session.run("rollback")
                continue
            account.predecessors[added] = last
            last = added
            time.sleep(_PRODUCER_PAUSE)
    return account


def _number(rows: list[Row]) -> int:
    return int(rows[0][0] or 0)
