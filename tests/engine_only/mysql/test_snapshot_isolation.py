"""rowq under innodb_snapshot_isolation, which is on by default since MariaDB 11.6.2.

Changing a row newer than the snapshot of a repeatable read transaction raises error 1020. A call's
own transaction is read committed, and never raises it. In the caller's transaction a call switches
the setting off on these versions; on earlier ones 1020 means retry, as a deadlock does.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

from rowq.engines.mysql.engine import ENGINE
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, dequeue, enqueue, state_of
from tests.helpers.queues import Connect

ON_BY_DEFAULT = (11, 6, 2)
CHANGED = 1020


@pytest.fixture
def strict(connect: Connect) -> Callable[[], Connection]:
    """Return a function that opens a session with innodb_snapshot_isolation."""

    def open_session() -> Connection:
        session = connect()
        if not session.execute("show variables like 'innodb_snapshot_isolation'").fetchall():
            pytest.skip("the server has no innodb_snapshot_isolation; to run it: --engine mariadb")
        session.execute("set session innodb_snapshot_isolation = 1")
        session.execute("set session transaction isolation level repeatable read")
        return session

    return open_session


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name, backoff_base_seconds=0)
    return queue_name


def check_is_retryable(error: pymysql.MySQLError) -> None:
    """Check that an error is 1020, and that the client calls it transient."""
    assert error.args[0] == CHANGED, error
    assert ENGINE.is_transient(error)


@pytest.mark.slow("many sessions for seconds", ci="mariadb")
@pytest.mark.pitfall("mysql 3")
def test_concurrent_sessions_never_get_error_1020(
    strict: Callable[[], Connection], queue: str
) -> None:
    done: list[str] = []
    everything = [str(number) for number in range(400)]
    end = time.monotonic() + 30

    def consume(session: Connection) -> None:
        while len(done) < len(everything) and time.monotonic() < end:
            for row in dequeue(session, queue, 7):
                ids = [row.message_id]
                routine = "complete" if row.attempt > 1 or row.message_id % 5 else "retry_later"
                call(session, routine, queue_name=queue, claim_id=row.claim_id, message_ids=ids)
                if routine == "complete":
                    done.append(row.body)
            call(session, "maintain", queue_name=queue)

    with ThreadPoolExecutor(4) as pool:
        consumers = [pool.submit(consume, strict()) for _ in range(3)]
        producer = strict()
        for start in range(0, len(everything), 4):
            enqueue(producer, queue, *everything[start : start + 3], dedup_key=None)
            enqueue(producer, queue, everything[start + 3], dedup_key=f"key {start}")
        for consumer in consumers:
            consumer.result()
    assert sorted(done) == sorted(everything)


@pytest.mark.pitfall("mysql 3")
def test_old_snapshot_dequeues_or_gets_error_1020(
    strict: Callable[[], Connection], connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "old")
    session = strict()
    session.execute("begin")
    session.execute("select count(*) from rowq.message")
    claim = dequeue(connection, queue)[0].claim_id
    call(connection, "release", queue_name=queue, claim_id=claim)
    enqueue(connection, queue, "new")
    taken = again = []
    try:
        taken = dequeue(session, queue, 10)
        session.commit()
    except pymysql.MySQLError as error:
        check_is_retryable(error)
        session.rollback()
        again = dequeue(session, queue, 10)
    assert bodies([*taken, *again, *dequeue(connection, queue, 10)]) == ["old", "new"]


def test_old_snapshot_completes_once_or_gets_error_1020(
    strict: Callable[[], Connection], connection: Connection, queue: str
) -> None:
    session = strict()
    session.execute("begin")
    session.execute("select count(*) from rowq.claim")
    enqueue(connection, queue, "x", dedup_key="key")
    [row] = dequeue(connection, queue)
    try:
        call(session, "complete", queue_name=queue, claim_id=row.claim_id)
        session.commit()
    except pymysql.MySQLError as error:
        check_is_retryable(error)
        session.rollback()
        call(session, "complete", queue_name=queue, claim_id=row.claim_id)
    assert state_of(connection, queue, row.message_id) is None
    assert call(connection, "enqueue", queue_name=queue, dedup_key="key")[0].outcome == "enqueued"


@pytest.mark.pitfall("mysql 3")
def test_no_routine_raises_1020_if_it_is_on_by_default(
    strict: Callable[[], Connection], connection: Connection, queue: str
) -> None:
    session = strict()
    version = tuple(map(int, session.server_version.partition("-")[0].split(".")))
    if version < ON_BY_DEFAULT:
        pytest.skip("on by default since MariaDB 11.6.2; to run it: --engine mariadb11.8")
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    session.execute("begin")
    session.execute("select count(*) from rowq.message")
    finishing = ("complete", "complete_and_dequeue", "retry_later", "release", "fail_now")
    for routine in (*finishing, "extend_lease"):
        enqueue(connection, queue, "newer", dedup_key=routine)
        [row] = dequeue(connection, queue)
        call(session, routine, queue_name=queue, claim_id=row.claim_id)
    [newer] = enqueue(connection, queue, "newer")
    call(connection, "maintain", queue_name=queue)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("enqueue", {"dedup_key": "extend_lease"}),
        ("enqueue_batch", {"messages": [{"body": "x", "dedup_key": "extend_lease"}]}),
        ("reset", {}),
        ("cancel", {"message_ids": [newer]}),
        ("dequeue_fast", {"batch_size": 10}),
        *((name, {}) for name in ("reap", "promote", "maintain", "archive", "purge_archive")),
        *((name, {}) for name in ("pause_queue", "resume_queue", "alter_queue", "purge_queue")),
    ]
    for routine, arguments in calls:
        call(session, routine, queue_name=queue, **arguments)
    on = session.execute("select @@innodb_snapshot_isolation, @@in_transaction").fetchone()
    assert on == (1, 1)
    session.commit()
