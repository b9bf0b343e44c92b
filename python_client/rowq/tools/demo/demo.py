"""One run of the demo: enqueue, drain, kill a worker, and compare the totals."""

import itertools
import logging
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rowq
from rowq.engines import engine_for_url
from rowq.messages import NewMessage
from rowq.queue import Queue
from rowq.tools.demo.ledger import Killed, Killer, Ledger, bodies, cents_per_month, rows
from rowq.tools.demo.report import Report, Show
from rowq.tools.local_postgres.server import LocalPostgres
from rowq.tools.migrate import migrate
from rowq.worker import Worker, WorkerStats

_SEND = 1000
_CLAIM = 100
_PROCESSES = 4
_LEASE_SECONDS = 3


@contextmanager
def private_server(show: Show) -> Iterator[str]:
    """Run PostgreSQL with rowq in a temporary directory, and yield its URL."""
    home = Path(tempfile.mkdtemp(prefix="rowq-demo-"))
    try:
        with LocalPostgres(home) as server:
            show.say(f"started a private PostgreSQL {server.version}")
            migrate(server.url)
            yield server.url
    finally:
        shutil.rmtree(home, ignore_errors=True)


def run(url: str, show: Show) -> Report:
    """Run the demo in a database with rowq, in a temporary queue and table."""
    name = f"rowq_demo_{secrets.token_hex(4)}"
    engine = engine_for_url(url)
    with ExitStack() as stack:
        queue = stack.enter_context(rowq.connect(url))
        connection = engine.connect(url)
        stack.callback(engine.close, connection)
        ledger = Ledger(name)
        queue.create_queue(name, lease_seconds=_LEASE_SECONDS)
        stack.callback(queue.drop_queue, name, force=True)
        ledger.create(connection)
        stack.callback(ledger.drop, connection)
        return _Run(url, name, queue, ledger, connection, show).report()


@dataclass(frozen=True, slots=True)
class _Run:
    """One run; the ledger and the killer use `connection`."""

    url: str
    name: str
    queue: Queue
    ledger: Ledger
    connection: Any
    show: Show

    def report(self) -> Report:
        """Enqueue, drain, and compare."""
        expected = cents_per_month()
        began = time.monotonic()
        message_ids = self._enqueue()
        sent = time.monotonic()
        killed = self._drain(message_ids)
        drained = time.monotonic()
        booked = self.ledger.read(self.connection)
        return Report(
            orders_in=len(message_ids),
            orders_done=booked.orders,
            orders_redelivered=booked.redelivered,
            orders_left=self._left(),
            expected_cents=expected,
            booked_cents=booked.cents_per_month,
            enqueue_seconds=sent - began,
            drain_seconds=drained - sent,
            killed=killed,
        )

    def _enqueue(self) -> list[int]:
        """Enqueue every order and return the message ids in the order of the file."""
        total = sum(1 for _ in rows())
        self.show.begin("enqueue", total)
        message_ids: list[int] = []
        texts = bodies()
        while batch := [NewMessage(text=body) for body in itertools.islice(texts, _SEND)]:
            sent = self.queue.enqueue_batch(self.name, batch)
            message_ids += [added.message_id for added in sent]
            self.show.update(len(message_ids))
        return message_ids

    def _drain(self, message_ids: list[int]) -> Killed | None:
        """Run workers that book every order, and kill one of them."""
        killer = Killer(self.queue, self.name, self.ledger, self.connection, message_ids)

        def on_progress(_: WorkerStats) -> None:
            # Count in the queue, because a killed worker cannot report its progress.
            done = len(message_ids) - self._left()
            self.show.update(done)
            if killed := killer.tick(done):
                self.show.say(
                    f"killed worker {killed.pid} (SIGKILL) while it held claim {killed.claim_id};"
                    f" its lease expires in {_LEASE_SECONDS} s and its orders are redelivered"
                )

        self.show.begin("drain", len(message_ids))
        worker = Worker(
            self.url,
            self.name,
            self.ledger,
            per="batch",
            batch_size=_CLAIM,
            lease_seconds=_LEASE_SECONDS,
            processes=_PROCESSES,
            transactional=True,
            drain=True,
            on_progress=on_progress,
        )
        with _quiet():
            try:
                worker.run()
            finally:
                killer.stop()
        return killer.killed

    def _left(self) -> int:
        """Return the number of orders that are unfinished or dead."""
        stats = self.queue.queue_stats(self.name)[0]
        return stats.ready + stats.delayed + stats.leased + stats.dead


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the warning that a worker died: the demo reports the kill itself."""
    log = logging.getLogger("rowq")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)
