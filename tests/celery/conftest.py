"""Fixtures: a rowq queue, a Celery client and Celery worker processes."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.result import AsyncResult

import rowq
import rowq.contrib.celery
from rowq.messages import Claim
from tests.engines.base import wait_until
from tests.static.sources import ROOT

PATIENCE_SECONDS = 60


@dataclass
class Shop:
    """The application in shop.py: its client, queue and workers.

    rowq: the database's own view. directory: where tasks leave word, and wait for files.
    """

    url: str
    queue_name: str
    rowq: rowq.Queue
    directory: Path
    client: Celery
    _workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def send(self, task: str, *args: Any, **options: Any) -> AsyncResult:
        """Send a task by its name in shop.py."""
        return self.client.send_task(f"tests.celery.shop.{task}", args, **options)

    def result(self, sent: AsyncResult) -> Any:
        """Wait for a task; return or raise its result."""
        return sent.get(timeout=PATIENCE_SECONDS, interval=0.02)

    def work(self, *options: str, url: str | None = None) -> "subprocess.Popen[bytes]":
        """Start a worker; its log is in worker.log."""
        with self.log.open("ab") as log:
            words = ("-A", "tests.celery.shop", "worker", "-l", "INFO", *options)
            worker = subprocess.Popen(
                [sys.executable, "-m", "celery", *words],
                cwd=ROOT,
                env={
                    **os.environ,
                    "ROWQ_TEST_URL": url or self.url,
                    "ROWQ_TEST_QUEUE": self.queue_name,
                    "ROWQ_TEST_DIRECTORY": str(self.directory),
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._workers.append(worker)
        return worker

    @property
    def log(self) -> Path:
        """The workers' log."""
        return self.directory / "worker.log"

    def done(self) -> list[str]:
        """Return the lines written by tasks."""
        path = self.directory / "done"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def wait_for(self, *words: str) -> None:
        """Wait until tasks have written all these lines."""
        self.until(lambda: set(words) <= set(self.done()), f"{words} in {self.directory}")

    def until(self, condition: Any, what: str) -> None:
        """Wait for a condition; a failure shows the workers' log."""
        try:
            wait_until(condition, what, PATIENCE_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text(encoding='utf-8')}") from None

    def let_end(self, word: str) -> None:
        """Let a task of hold_late or hold_early end."""
        (self.directory / f"end {word}").touch()

    def counts(self) -> tuple[int, int, int, int]:
        """Return how many messages are ready, delayed, leased and dead."""
        (stats,) = self.rowq.queue_stats(self.queue_name)
        return stats.ready, stats.delayed, stats.leased, stats.dead

    def claims(self) -> list[Claim]:
        """Return the claims."""
        return self.rowq.list_claims(self.queue_name)

    def stop(self, worker: "subprocess.Popen[bytes]") -> int:
        """Stop a worker gracefully and return its exit status."""
        worker.terminate()
        return worker.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Kill the remaining workers."""
        for worker in self._workers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


@pytest.fixture
def shop(database_url: str, queue_name: str, tmp_path: Path) -> Iterator[Shop]:
    """Return a shop whose queue has long leases and immediate retries."""
    (tmp_path / "results").mkdir()
    client = Celery(broker=f"rowq+{database_url}", backend=f"file://{tmp_path / 'results'}")
    client.conf.task_default_queue = queue_name
    with rowq.connect(database_url) as queue:
        queue.create_queue(queue_name, lease_seconds=120, backoff_base_seconds=0)
        made = Shop(database_url, queue_name, queue, tmp_path, client)
        try:
            yield made
        finally:
            made.end()
            client.close()
