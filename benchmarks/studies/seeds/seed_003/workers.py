"""Workers of seed 003 that something happens to: each runs in a process of its own."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg

import rowq
from benchmarks.studies.seeds.client import SqlClient
from benchmarks.studies.seeds.seed_003.diary import Diary

BATCH = 5
KEEP_HOUSE_SECONDS = 0.25
HAPPENED = "happened"
_SHORT_SECONDS = 0.02
_TICK = 0.01
_QUEUE = "bench"
_IDLE_SECONDS = 0.05
_BODY_BYTES = 200

OpenClient = Callable[[str, int], SqlClient]


@dataclass(frozen=True, slots=True)
class Part:
    """A worker's part. first_seconds: how long it works on its first message; the rest is short.

    That time runs from the moment when the file HAPPENED is in the folder, where the diary is too.
    None: the worker takes over what comes back, and all messages are short; the others take one
    batch and no more. limit: seconds of a lease.
    """

    name: str
    url: str
    folder: Path
    first_seconds: float | None
    limit: int

    def handle(self, message: int, text: str, *, is_first: bool) -> None:
        """Work on a message."""
        diary = Diary(self.folder / f"{self.name}.diary")
        diary.note("started", message, text)
        if is_first and self.first_seconds is not None:
            while not (self.folder / HAPPENED).exists():
                time.sleep(_TICK)
            time.sleep(self.first_seconds)
        else:
            time.sleep(_SHORT_SECONDS)
        diary.note("ended", message, text)


def run_owner(open_client: OpenClient, part: Part) -> None:
    """Claim by owner, complete each message by deleting it; connect anew when cut off."""
    client = open_client(part.url, _BODY_BYTES)
    seen = 0
    while part.first_seconds is None or seen == 0:
        taken = client.dequeue(BATCH)
        if not taken:
            time.sleep(_IDLE_SECONDS)
        for row in taken:
            seen += 1
            part.handle(int(row[0] or 0), (row[1] or b"").decode(), is_first=seen == 1)
            try:
                client.complete([row])
            except (RuntimeError, psycopg.Error):
                client = open_client(part.url, _BODY_BYTES)
                client.complete([row])


def run_rowq(part: Part) -> None:
    """Run rowq's own worker, heartbeats and housekeeping included."""
    # The scene looks for lost claims itself, so their warnings would only be noise.
    logging.getLogger("rowq").setLevel(logging.ERROR)
    seen: list[int] = []

    def handler(message: rowq.Message) -> None:
        seen.append(message.message_id)
        if part.first_seconds is not None and len(seen) == BATCH:
            worker.stop()
        part.handle(message.message_id, message.body or "", is_first=len(seen) == 1)

    worker = rowq.Worker(
        part.url,
        _QUEUE,
        handler,
        batch_size=BATCH,
        lease_seconds=part.limit,
        worker_name=part.name,
        idle_max_seconds=_IDLE_SECONDS,
        maintain_seconds=KEEP_HOUSE_SECONDS,
    )
    worker.run()
