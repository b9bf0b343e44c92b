"""Misbehaving handlers and programs harm only their own messages."""

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rowq import NewMessage, Queue
from tests.chaos import deeds as python_deeds
from tests.chaos import unruly_program
from tests.chaos.call_log import history
from tests.chaos.deeds import QUEUE, UNSEEN
from tests.chaos.killable import KillableServer
from tests.chaos.unruly import IN_PYTHON
from tests.chaos.unruly_program import LEASE_SECONDS
from tests.cli.working import is_running
from tests.concurrency.checker import check
from tests.concurrency.history import Event, write
from tests.dice import AGAIN, dice, limit, times
from tests.engines.base import Connection, wait_until
from tests.helpers.dialects import dialect_of

pytestmark = [pytest.mark.chaos, pytest.mark.requires("genuine"), pytest.mark.timeout(limit(240))]

ROOT = Path(__file__).parents[2]
MESSAGES = 60
STARTS = 60
"""Maximum number of worker starts until the queue is drained."""


@pytest.fixture
def session(killable: KillableServer, url: str) -> Iterator[Connection]:
    """Return the owner's session, with the tables that handlers write."""
    if killable.server.engine not in {"postgres", "mysql"}:
        pytest.skip(
            f"no deeds are written for {killable.server.engine}"
            f"; to run it: --engine postgres18,mariadb"
        )
    with closing(killable.server.connect(url)) as connection:
        dialect = dialect_of(connection)
        dialect.make_table(connection, "ledger", "message_id bigint not null")
        dialect.make_table(connection, "quarrel", "id int primary key, n int")
        dialect.execute(connection, "insert into quarrel values (1, 0), (2, 0)")
        if killable.server.engine == "mysql":
            for name, body in PROCEDURES.items():
                dialect.execute(connection, f"create procedure {name}() begin {body} end")
        Queue(connection).create_queue(
            QUEUE,
            lease_seconds=LEASE_SECONDS,
            backoff_base_seconds=0.1,
            backoff_cap_seconds=0.5,
            max_attempts=10,
        )
        yield connection


PROCEDURES = {
    "commits_unseen": "commit;",
    "rollbacks_unseen": "rollback;",
    "begins_unseen": "start transaction; update quarrel set n = n + 1 where id = 3; commit;",
}


HURTING = python_deeds.HURTING | unruly_program.HURTING


def numbers(path: Path) -> list[int]:
    """Return the numbers in a file, one per line."""
    return [int(line) for line in path.read_text().splitlines()]


class UnrulyRun:
    """One queue of messages, some with deeds, and its history.

    deeds: the deeds of each message, one per delivery.
    """

    def __init__(self, connection: Connection, folder: Path, kind: str) -> None:
        self.connection = connection
        self.queue = Queue(connection)
        self.folder = folder
        self.kind = kind
        self.deeds: dict[int, list[str]] = {}
        self.events: list[Event] = []
        self.starts = 0

    def send(self, names: list[str], count: int) -> None:
        """Enqueue messages; a third have deeds, a few of them at every delivery."""
        drawn = dice(self.kind, names)
        while len(self.deeds) < count:
            drawn_deeds = [
                self._draw(drawn, names) for _ in range(min(100, count - len(self.deeds)))
            ]
            start = time.monotonic()
            sent = self.queue.enqueue_batch(QUEUE, [message for message, _ in drawn_deeds])
            ids = [message.message_id for message in sent]
            self.deeds |= dict(zip(ids, [deeds for _, deeds in drawn_deeds], strict=True))
            results = tuple((message_id, 5) for message_id in ids)
            event = Event(start, time.monotonic(), "producer", "enqueue", None, results)
            self.events.append(event)

    def _draw(self, drawn: random.Random, names: list[str]) -> tuple[NewMessage, list[str]]:
        """Return a message and its deeds; a few have a long body or long headers."""
        deeds = drawn.choices(names, k=drawn.choice([1, 1, 2])) if drawn.random() < 0.35 else []
        if drawn.random() < 0.03 and not HURTING.intersection(deeds):
            deeds *= 20
        length = drawn.choice([0, 1, 1, 1, 100_000]) if drawn.random() < 0.1 else 10
        more = "x" * (60_000 if drawn.random() < 0.03 else 0)
        headers = {"deeds": deeds, "length": length, "more": more}
        return NewMessage(text="x" * length, headers=headers), deeds

    def work(self, url: str) -> None:
        """Run workers one after the other until the queue is drained."""
        command = [sys.executable, "-m", "tests.chaos.unruly", self.kind, url, str(self.folder)]
        while self._is_left():
            self.starts += 1
            assert self.starts <= times(STARTS), f"not drained; see {self.folder / 'log'}"
            with (self.folder / "log").open("ab") as log:
                subprocess.run(
                    command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=log, check=False
                )

    def _is_left(self) -> bool:
        stats = self.queue.queue_stats(QUEUE)[0]
        return bool(stats.ready or stats.delayed or stats.leased)

    def judge(self) -> None:
        """Check the history and the remaining messages."""
        start = time.monotonic()
        left = dialect_of(self.connection).census(self.connection, QUEUE)
        self.events += history(self.folder, start)
        self.events.append(Event(start, time.monotonic(), "judge", "census", None, tuple(left)))
        write(self.events, self.folder / "history.jsonl")
        where = f"{AGAIN}; see {self.folder}"
        assert check(self.events) == [], where
        assert {state for _, state in left} <= {"dead"}, where
        dead = {message for message, _ in left}
        assert not [message_id for message_id in dead if not self.deeds[message_id]], where
        self._judge_effects(dead, where)

    def _judge_effects(self, dead: set[int], where: str) -> None:
        effects = Counter(self._effects())
        done = self.deeds.keys() - dead
        assert not [message_id for message_id in done if effects[message_id] < 1], where
        if "transactions" in self.kind:
            assert not [message_id for message_id in done if effects[message_id] > 1], where
            assert not [message_id for message_id in dead if effects[message_id]], where

    def _effects(self) -> list[int]:
        if self.kind == "programs":
            return numbers(self.folder / "ledger")
        rows = self.connection.execute("select message_id from ledger").fetchall()
        return [int(message_id) for (message_id,) in rows]

    def wait_for_programs(self) -> None:
        """Wait until no program runs; each must end with its worker or lease."""
        pids = numbers(self.folder / "programs")
        wait_until(lambda: not any(map(is_running, pids)), "no program runs")

    def summary(self) -> str:
        """Return a summary to print."""
        counts = Counter(deed for deeds in self.deeds.values() for deed in deeds[:2])
        events = Counter(event.action for event in self.events)
        return f"{self.kind}: {self.starts} starts, deeds {dict(counts)}, calls {dict(events)}"


@pytest.mark.promise("P02", "P03", "P04", "P08", "P09")
@pytest.mark.parametrize("kind", [kind.__name__ for kind in IN_PYTHON])
def test_misbehaving_handlers_harm_only_their_own_messages(
    url: str, session: Connection, tmp_path: Path, kind: str
) -> None:
    run = UnrulyRun(session, tmp_path, kind)
    run.send(list(python_deeds.DEEDS), times(MESSAGES))
    run.work(url)
    run.judge()
    print(run.summary())


@pytest.mark.slow("starts hundreds of programs", ci=False)
@pytest.mark.promise("P02", "P03", "P04", "P08", "P09")
def test_misbehaving_programs_harm_only_their_own_messages(
    url: str, session: Connection, tmp_path: Path
) -> None:
    run = UnrulyRun(session, tmp_path, "programs")
    run.send(list(unruly_program.DEEDS), times(MESSAGES))
    run.work(url)
    run.judge()
    run.wait_for_programs()
    print(run.summary())


@pytest.mark.promise("P02", "P04")
def test_unseen_commits_harm_no_other_messages_effect(
    url: str, session: Connection, tmp_path: Path
) -> None:
    run = UnrulyRun(session, tmp_path, "threads_in_transactions")
    run.send(list(UNSEEN), times(MESSAGES))
    run.work(url)
    run.judge()
    print(run.summary())
