"""The heartbeat under locks, slow handlers and outages."""

import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

import rowq
from rowq.engines import engine_for_url
from rowq.errors import StaleClaim
from rowq.worker import context
from rowq.worker.batching import BatchSize
from rowq.worker.claim import LiveClaim
from rowq.worker.meter import WorkerStats
from tests.client.proxy import relay
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.queues import Connect
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running

LEASE_SECONDS = 3
BATCH = BatchSize(1)


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue(lease_seconds=LEASE_SECONDS, max_attempts=1)


def lease_of(queue: WorkerQueue, message_id: int) -> datetime | None:
    details = queue.get_message(message_id)
    return details.lease_until if details else None


STATEMENTS = {
    "postgres": "select * from rowq.extend_lease(%s, %s)",
    "mysql": "call rowq.extend_lease(%s, %s, null, null)",
}
"""SQL that locks a claim until the transaction ends, and that rowq cannot refuse."""


@pytest.fixture
def hold_own_claim(server: Server, queue_name: str) -> Callable[[Connection, rowq.Message], None]:
    """Return a function that blocks a claim's heartbeat."""
    if server.engine not in STATEMENTS:
        pytest.skip(
            f"no statement that locks a claim is written for {server.engine}"
            f"; to run it: --engine postgres18,mariadb"
        )

    def hold(own: Connection, message: rowq.Message) -> None:
        own.cursor().execute(STATEMENTS[server.engine], [queue_name, message.claim_id])

    return hold


Hold = Callable[[Connection, rowq.Message], None]


@pytest.fixture
def is_blocked(caplog: pytest.LogCaptureFixture) -> Callable[[], bool]:
    """Return a function: whether the heartbeat has found a locked claim."""
    caplog.set_level("WARNING", "rowq.worker")
    return lambda: "cannot extend claim" in caplog.text


@pytest.mark.promise("P02", "P04")
def test_handler_that_locks_its_claim_does_not_hang(
    queue: WorkerQueue, hold_own_claim: Hold, is_blocked: Callable[[], bool]
) -> None:
    queue.fill(2)

    def handler(message: rowq.Message, own: Connection) -> None:
        if message.data == 0:
            hold_own_claim(own, message)
            wait_until(is_blocked, "the heartbeat is blocked")

    worker = queue.worker(handler, transactional=True)
    with running(worker):
        wait_until(lambda: worker.stats.processed == 2, "both are completed", 20)


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P03")
def test_stuck_claims_delay_no_other_heartbeat(queue: WorkerQueue, hold_own_claim: Hold) -> None:
    ids = queue.fill(4)
    stuck = threading.Barrier(4)
    done = threading.Event()
    lost: list[bool] = []

    def handler(message: Any, own: Connection) -> None:
        if message.message_id == ids[0]:
            stuck.wait(20)
            before = lease_of(queue, ids[0])
            for _ in range(3):
                wait_until(
                    lambda: lease_of(queue, ids[0]) != before,  # noqa: B023 - ends here
                    "the lease is extended",
                    LEASE_SECONDS,
                )
                before = lease_of(queue, ids[0])
            lost.append(message.lost)
            done.set()
        else:
            hold_own_claim(own, message)
            stuck.wait(20)
            done.wait(30)

    worker = queue.worker(handler, transactional=True, threads=4, batch_size=1)
    with running(worker):
        wait_until(lambda: worker.stats.processed == 4, "all are completed", 40)
    assert lost == [False]
    assert worker.stats.stale == 0


@pytest.mark.requires("genuine")
@pytest.mark.promise("P03")
def test_waiting_heartbeat_delays_no_handler(
    queue: WorkerQueue, connect: Connect, is_blocked: Callable[[], bool]
) -> None:
    queue.fill(2)
    blocker = connect(autocommit=False)
    handled: list[int] = []

    def handler(message: rowq.Message) -> None:
        handled.append(message.data)
        if message.data == 0:
            rowq.Queue(blocker).extend_lease(queue.name, message.claim_id)
            wait_until(is_blocked, "the heartbeat is blocked")
        else:
            blocker.rollback()

    worker = queue.worker(handler)
    with running(worker):
        wait_until(lambda: worker.stats.processed == 2, "both are completed", 20)
    assert handled == [0, 1]


@pytest.mark.slow("waits for time limits")
@pytest.mark.promise("P03")
def test_stopping_worker_keeps_its_lease_after_an_outage(
    database_url: str, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "_GRACE_SECONDS", 0.2)
    queue.alter_queue(lease_seconds=10)
    (message_id,) = queue.fill(1)
    lost: list[bool] = []
    with relay(database_url) as between:

        def handler(message: Any) -> None:
            worker.stop()
            between.refuse(connections=True)
            between.cut()
            wait_until(lambda: between.refused > 2, "the heartbeat has tried for a while", 20)
            before = lease_of(queue, message_id)
            between.refuse(connections=False)
            wait_until(
                lambda: lease_of(queue, message_id) != before,
                "the lease is extended",
                20,
            )
            lost.append(message.lost)

        worker = rowq.Worker(between.url, queue.name, handler, maintain_seconds=0)
        assert worker.run().processed == 1
    assert lost == [False]


@pytest.mark.requires("genuine")
def test_brief_call_raises_transient_error_if_locked(
    database_url: str, queue: WorkerQueue, connect: Connect
) -> None:
    queue.fill(1)
    (message,) = queue.dequeue_fast()
    arguments = {
        "queue_name": queue.name,
        "claim_id": message.claim_id,
        "lease_seconds": 60,
        "progress": None,
    }
    engine = engine_for_url(database_url)
    own = engine.connect(database_url)
    blocker = connect(autocommit=False)
    rowq.Queue(blocker).extend_lease(queue.name, message.claim_id)
    for _ in range(2):
        began_at = time.monotonic()
        with pytest.raises(Exception) as met:  # noqa: PT011 - the driver's own
            engine.call_briefly(own, "extend_lease", arguments)
        assert engine.is_transient(met.value)
        assert not engine.is_connection_lost(met.value)
        assert time.monotonic() - began_at < 5
    blocker.rollback()
    ((claim_id, *_),) = engine.call_briefly(own, "extend_lease", arguments)
    assert claim_id == message.claim_id
    engine.close(own)


class Refusing:
    """A queue whose extend_lease raises after an action."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action

    def extend_lease(self, *_: Any, **__: Any) -> None:
        self._action()
        raise StaleClaim("gone")


@pytest.mark.parametrize("is_reported", [False, True])
def test_claim_reported_during_extension_is_not_lost(
    is_reported: bool,
) -> None:
    noon = datetime.now().astimezone()
    row = (1, 2, 3, None, None, "", None, noon, noon, None)
    own = rowq.Worker("postgresql://host/db", "q", print)._context
    claim = LiveClaim(own, own.stripes[0], [row], time.monotonic(), 30, BATCH)

    def action() -> None:
        if is_reported:
            claim.record_outcomes([2], WorkerStats(processed=1))

    claim.extend(Refusing(action))  # type: ignore[arg-type]
    assert claim.lost is not is_reported
