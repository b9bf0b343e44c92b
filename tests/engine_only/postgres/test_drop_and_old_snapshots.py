"""drop_queue beside a transaction whose snapshot still shows the queue."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

import rowq

Open = Callable[..., Any]


@pytest.mark.pitfall("postgres 12")
@pytest.mark.promise("P01")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("in_a_batch", [False, True], ids=["one", "batch"])
@pytest.mark.parametrize("is_used", [False, True], ids=["unused", "used"])
def test_old_snapshot_cannot_enqueue_into_a_dropped_queue(
    connection: Any, connect: Open, queue_name: str, level: str, *, in_a_batch: bool, is_used: bool
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    if is_used:  # The old snapshot also shows the lane.
        rowq.Queue(connection).enqueue(queue_name, 0)
    old = connect(autocommit=False)
    old.execute(f"set transaction isolation level {level}")
    old.execute("select 1 from pg_class limit 1")
    rowq.Queue(connection).drop_queue(queue_name, force=is_used)
    messages = [rowq.NewMessage(data=1)]
    enqueue: Callable[..., Any] = (
        rowq.Queue(old).enqueue_batch if in_a_batch else rowq.Queue(old).enqueue
    )
    with pytest.raises(psycopg.errors.SerializationFailure):
        enqueue(queue_name, messages if in_a_batch else 1)
    old.rollback()


@pytest.mark.pitfall("postgres 12")
@pytest.mark.promise("P02")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_drop_with_an_old_snapshot_is_refused(
    connection: Any, connect: Open, queue_name: str, level: str
) -> None:
    rowq.Queue(connection).create_queue(queue_name)
    strict = connect()
    strict.execute(f"set default_transaction_isolation = '{level}'")
    for force in (False, True):
        with pytest.raises(rowq.WrongTransactionState, match="requires READ COMMITTED"):
            rowq.Queue(strict).drop_queue(queue_name, force=force)
    strict.execute("begin transaction isolation level read committed")
    assert rowq.Queue(strict).drop_queue(queue_name).outcome == "dropped"
    strict.execute("commit")
