"""cancel and reset lock rows but no gaps under the default isolation level."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue, dequeue_one, enqueue, transaction
from tests.helpers.queues import Connect


@pytest.mark.promise("P06")
@pytest.mark.parametrize("routine", ["cancel", "reset"])
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_open_cancel_or_reset_of_missing_ids_blocks_no_session(
    connection: Connection, connect: Connect, queue_name: str, level: str, routine: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    (ready,) = enqueue(connection, queue_name, "ready")
    (later,) = enqueue(connection, queue_name, "later", delay_seconds=60)
    caller = connect()
    caller.execute(f"set session transaction isolation level {level}")
    connection.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(caller):
        ids = [ready, later, later + 1000, ready]
        call(caller, routine, queue_name=queue_name, message_ids=ids)
        enqueue(connection, queue_name, "next")
        enqueue(connection, queue_name, "next later", delay_seconds=30)
        row = dequeue_one(connection, queue_name)
        call(connection, "fail_now", queue_name=queue_name, claim_id=row.claim_id)


@pytest.mark.promise("P06", "P12")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("beside", [[], ["alive"]], ids=["dead", "dead and alive"])
@pytest.mark.parametrize("routine", ["cancel", "discard_dead", "purge_queue"])
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_dedup_keys_stay_free_while_dead_messages_are_removed(
    connection: Connection,
    connect: Connect,
    queue_name: str,
    level: str,
    routine: str,
    beside: list[str],
    archive_days: int,
) -> None:
    call(connection, "create_queue", queue_name=queue_name, archive_days=archive_days)
    dead = [
        *enqueue(connection, queue_name, "x", dedup_key="m"),
        *enqueue(connection, queue_name, "x", dedup_key="n"),
    ]
    claim = dequeue(connection, queue_name, 2)[0].claim_id
    call(connection, "fail_now", queue_name=queue_name, claim_id=claim)
    caller, producer = connect(), connect()
    for session in (caller, producer):
        session.execute("set session innodb_lock_wait_timeout = 1")
    caller.execute(f"set session transaction isolation level {level}")
    for key in beside:
        dead += enqueue(connection, queue_name, "x", dedup_key=key)
    options: dict[str, Any] = {"message_ids": dead}
    if routine == "purge_queue":
        options = {"include_dead": True}
    with transaction(producer):
        enqueue(producer, queue_name, "again", dedup_key="m")
        with transaction(caller):
            call(caller, routine, queue_name=queue_name, **options)
            for key in ("a", "n", "z"):
                enqueue(connection, queue_name, key, dedup_key=key)
            enqueue(connection, queue_name, "no key")
    expected = dict.fromkeys("manz", "duplicate")
    for key in beside:
        expected[key] = "duplicate" if routine == "discard_dead" else "enqueued"
    for key, outcome in expected.items():
        row = call_one(connection, "enqueue", queue_name=queue_name, dedup_key=key)
        assert row.outcome == outcome, key
