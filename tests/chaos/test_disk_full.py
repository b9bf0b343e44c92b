"""The disk is full: calls fail or wait; with free space nothing is lost and work resumes.

A local server gets a small disk; elsewhere the database's size is limited, with the same errors.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import rowq
from tests.chaos.killable import WAYS, KillableServer
from tests.engines.base import Limiting, Unavailable, wait_until

pytestmark = pytest.mark.chaos

DISK_BYTES = 512 << 20
FREE_BYTES = 8 << 20
"""Free bytes on the disk when the work begins."""
ON_LOCAL_DISKS = {"postgres", "mariadb"}
"""Products whose servers run as local programs and write to a given folder."""
BODY = "x" * 4000
LARGE_BODY = "x" * 50_000
"""Larger than the free space inside data files that grow in large steps."""
RECOVERY_SECONDS = 90
"""MariaDB checks once per minute whether its binary log has space again."""


class Disk:
    """A small disk of its own, and the file that fills it.

    body: what is enqueued until it is full.
    """

    body = BODY

    def __init__(self, mount: Path) -> None:
        self.mount = mount
        self._ballast = mount / "ballast"

    def fill(self) -> None:
        """Leave FREE_BYTES."""
        free = shutil.disk_usage(self.mount).free
        with self._ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, free - FREE_BYTES)

    def free_space(self) -> None:
        """Free the space that `fill` used."""
        self._ballast.unlink()


class Limit:
    """A limit on a database's size."""

    body = LARGE_BODY

    def __init__(self, server: Limiting) -> None:
        self._server = server
        self.url = ""

    def fill(self) -> None:
        """Leave FREE_BYTES beside the database's data."""
        try:
            self._server.limit_space(self.url, FREE_BYTES)
        except Unavailable as reason:
            pytest.skip(f"{reason}; to run it: --engine postgres18")

    def free_space(self) -> None:
        """Remove the limit."""
        self._server.limit_space(self.url, None)


@pytest.fixture
def disk(server: KillableServer) -> Iterator[Disk | Limit]:
    """Mount a small disk in memory, or return a limit if the server writes elsewhere."""
    if server.server.product in ON_LOCAL_DISKS and server.can_die:
        with small_disk() as small:
            yield small
    elif isinstance(server.server, Limiting):
        yield Limit(server.server)
    else:
        pytest.skip(
            f"{server.name} keeps its files where no test can limit them; to run it: local programs"
        )


@contextmanager
def small_disk() -> Iterator[Disk]:
    """Mount a small disk in memory; skip the test if that is not allowed."""
    mount = Path(tempfile.mkdtemp(prefix="rowq-disk-", dir="/tmp"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=1777", "tmpfs", str(mount)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if done.returncode:
            pytest.skip(
                f"a disk cannot be mounted: {done.stderr.strip()}; to run it: run the tests as root"
            )
        yield Disk(mount)
    finally:
        subprocess.run(["umount", "--lazy", str(mount)], capture_output=True, check=False)
        mount.rmdir()


@pytest.fixture
def killable(
    server: KillableServer, disk: Disk | Limit, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KillableServer]:
    """Return a server of the same product that writes to that disk."""
    if isinstance(disk, Limit):
        yield server
        return
    with ExitStack() as stack:
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(disk.mount))
            product = server.server.product
            killable = stack.enter_context(WAYS[product](server.name.removeprefix(product)))
        yield killable


class Producer(threading.Thread):
    """Enqueues messages one by one until it is stopped or a call fails."""

    def __init__(self, url: str, body: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._body = body
        self.stop = threading.Event()
        self.sent: list[int] = []
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with rowq.connect(self._url) as queue:
                while not self.stop.is_set():
                    self.sent.append(queue.enqueue("orders", self._body).message_id)
        except Exception as error:
            self.error = error

    def has_failed(self) -> bool:
        """Return whether a call has failed."""
        self.join(3)
        return not self.is_alive()

    def is_blocked(self) -> bool:
        """Return whether a call has failed, or none has ended for 3 seconds."""
        before = len(self.sent)
        self.join(3)
        return not self.is_alive() or len(self.sent) == before


@pytest.mark.promise("P01", "P02", "P03", "P04")
def test_full_disk_loses_nothing_and_work_resumes(
    killable: KillableServer, url: str, disk: Disk | Limit
) -> None:
    if isinstance(disk, Limit):
        disk.url = url
    with rowq.connect(url) as queue:
        queue.create_queue("orders")
        early = [queue.enqueue("orders", number).message_id for number in range(4)]
        done, leased = (queue.dequeue_fast("orders", 2) for _ in range(2))
        queue.complete("orders", done[0].claim_id)
    disk.fill()
    producer = Producer(url, disk.body)
    producer.start()
    is_full = producer.is_blocked if isinstance(disk, Disk) else producer.has_failed
    wait_until(is_full, "the disk is full", RECOVERY_SECONDS)

    disk.free_space()
    producer.stop.set()
    producer.join(RECOVERY_SECONDS)
    assert not producer.is_alive()
    assert producer.sent
    if isinstance(disk, Limit):
        # A call never waits for space in a limited database, and a slow machine is not a full disk.
        assert producer.error is not None
        assert not isinstance(producer.error, rowq.ConnectionLost)
    if not _answers(url):
        killable.crash()
    with rowq.connect(url) as queue:
        left = _drain(queue)
        assert sorted(left) == sorted(set(left))
        assert set(producer.sent) <= set(left)
        assert not set(early) & set(left)
        held = queue.complete("orders", leased[0].claim_id)
        assert [message.outcome for message in held] == ["completed"] * 2


def _answers(url: str) -> bool:
    try:
        rowq.connect(url).close()
    except rowq.CannotConnect:
        return False
    return True


def _drain(queue: rowq.Queue) -> list[int]:
    taken: list[int] = []
    while messages := queue.dequeue_fast("orders", 100):
        queue.complete("orders", messages[0].claim_id)
        taken += [message.message_id for message in messages]
    return taken
