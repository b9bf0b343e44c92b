"""The sessions of seed 001: they add messages to chains, or take and finish them."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.closing import Closing
from benchmarks.harness.session import RetryError, Row, Value
from benchmarks.harness.team import Gate
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.sections import read_sections

WORK_SECONDS = 0.001
_PRODUCER_PAUSE = 0.002
_IDLE_PAUSE = 0.002


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

    def prepare(self, count: int, length: int, stuck: int = 0) -> None:
        """Add messages in chains of a length, and settle.

        stuck: so many of them, the first ones, are one chain, whose head is due tomorrow.
        """
        for section in ("fill", "settle"):
            self._run_all(section, count=count, length=length, stuck=stuck)

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

    def _run_all(self, section: str, **values: Value) -> None:
        for statement in self._sql[section].split(";\n"):
            self.session.run(statement, **values)


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
