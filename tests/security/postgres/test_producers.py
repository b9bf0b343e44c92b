"""A producer's open or prepared transaction blocks no worker and kills no message."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import psycopg
import pytest

from rowq.tools.migrate import migrate
from tests.engines.postgres.server import PostgresServer
from tests.helpers.calls import call, call_one, dequeue, enqueue
from tests.security.postgres.conftest import Session
from tests.stored_times import tick

COUNT = 5

Open = Callable[[str], Session]


@pytest.fixture
def open_as(url: str) -> Iterator[Open]:
    """Return a function that opens a session as a superuser, producer or worker.

    In a worker's session, a call fails after half a second of waiting for a lock.
    """
    migrate(url)
    with ExitStack() as opened:

        def connect(role: str) -> Session:
            user = "postgres" if role == "postgres" else f"{role}_account"
            session = opened.enter_context(
                psycopg.connect(url.replace("postgres@", f"{user}@", 1), autocommit=True)
            )
            session.execute("set lock_timeout = '500ms'")
            return session

        with psycopg.connect(url, autocommit=True) as admin:
            for role in ("rowq_producer", "rowq_consumer"):
                admin.execute(f"drop role if exists {role}_account")
                admin.execute(f"create role {role}_account login")
                admin.execute(f"grant {role} to {role}_account")
            call(admin, "create_queue", queue_name="q", max_attempts=1)
        yield connect


def name_all(producer: Session, ids: list[int]) -> None:
    """Enqueue messages that wait for these."""
    messages = [{"body": "x", "predecessor_ids": [each], "delay_seconds": 3e8} for each in ids]
    call(producer, "enqueue_batch", queue_name="q", messages=messages)


@pytest.mark.promise("P04", "P08", "P26")
@pytest.mark.parametrize("batch", [1, COUNT])
@pytest.mark.parametrize("archive_days", [0, 1])
def test_producers_prepared_transaction_blocks_no_worker(
    cluster: PostgresServer, open_as: Open, batch: int, archive_days: int
) -> None:
    admin, producer = open_as("postgres"), open_as("rowq_producer")
    call(admin, "alter_queue", queue_name="q", archive_days=archive_days)
    ids = enqueue(admin, "q", *(f"honest {place}" for place in range(COUNT)))
    producer.execute("begin")
    name_all(producer, ids)
    producer.execute("prepare transaction 'evil'")
    producer.close()
    cluster.crash()
    cluster.restart()

    worker, admin = open_as("rowq_consumer"), open_as("postgres")
    assert "rollback prepared 'evil'" in " ".join(row.detail for row in call(admin, "health"))
    done: list[int] = []
    while rows := dequeue(worker, "q", batch):
        outcomes = call(worker, "complete", queue_name="q", claim_id=rows[0].claim_id)
        done += [row.message_id for row in outcomes if row.outcome == "completed"]
    assert sorted(done) == ids
    tick(admin, "q")
    assert call_one(worker, "maintain", queue_name="q").elected
    assert dequeue(worker, "q", 10) == []
    stats = call_one(admin, "queue_stats", queue_name="q")
    assert (stats.ready, stats.leased, stats.dead) == (0, 0, 0)

    admin.execute("rollback prepared 'evil'")
    for _ in range(2):
        tick(admin, "q")
        call(worker, "maintain", queue_name="q")
    left = admin.execute("select from rowq.message union all select from rowq.deferred").fetchall()
    assert left == []


@pytest.mark.promise("P03", "P09")
def test_producers_open_transaction_harms_no_message(open_as: Open) -> None:
    """With max_attempts 1, a message whose lease expires is dead."""
    admin, producer, worker = map(open_as, ("postgres", "rowq_producer", "rowq_consumer"))
    ids = enqueue(admin, "q", *(f"honest {place}" for place in range(COUNT)))
    producer.execute("begin")
    name_all(producer, ids)
    for message_id in ids:
        [row] = dequeue(worker, "q", 1)
        assert row.message_id == message_id
        call(worker, "complete", queue_name="q", claim_id=row.claim_id)
    assert call(admin, "list_claims", queue_name="q") == []
    assert call_one(worker, "maintain", queue_name="q").died == 0
    producer.execute("rollback")
