"""maintain, beyond what it shares with the rest of the housekeeping (test_housekeeping.py)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    Row,
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    rolled_back,
    state_of,
    transaction,
)
from tests.stored_times import pass_seconds

DAY = 86400


def maintain(connection: Connection, queue: str, **arguments: int) -> Row:
    return call_one(connection, "maintain", queue_name=queue, **arguments)


@pytest.mark.promise("P09", "P10", "P11", "P19")
def test_all_housekeeping_is_done_in_one_call(connection: Connection, queue: str) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    enqueue(connection, queue, "done")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    pass_seconds(connection, queue, DAY * 3)
    assert maintain(connection, queue).archived == 1
    call(connection, "alter_queue", queue_name=queue, archive_days=2)
    enqueue(connection, queue, "reaped")
    enqueue(connection, queue, "dies", max_attempts=1)
    dequeue(connection, queue, 2)
    enqueue(connection, queue, "delayed", delay_seconds=10)
    enqueue(connection, queue, "completed")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "complete", queue_name=queue, claim_id=claim)
    pass_seconds(connection, queue, 100)
    row = maintain(connection, queue)
    assert row.queue_name == queue
    assert row.elected is True
    assert (row.promoted, row.reaped, row.died, row.archived) == (1, 1, 1, 1)
    assert row.purged + row.partitions_dropped <= 1
    assert counts(connection, queue) == (2, 0, 0, 1)
    assert bodies(dequeue(connection, queue, 10)) == ["reaped", "delayed"]


@pytest.mark.promise("P19")
def test_without_a_name_every_queue_is_maintained(connection: Connection, queue: str) -> None:
    other = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=other)
    for name in (queue, other):
        enqueue(connection, name, "delayed", delay_seconds=10)
        pass_seconds(connection, name, 100)
    rows = {row.queue_name: row for row in call(connection, "maintain")}
    assert rows[queue].promoted == rows[other].promoted == 1
    assert len(rows) == min(1000, len(call(connection, "queue_stats", max_count=1)))
    rows = {row.queue_name: row for row in call(connection, "maintain", queue_name=None)}
    assert rows[queue].promoted == 0


@pytest.mark.promise("P19")
@pytest.mark.requires("genuine")
def test_while_one_session_is_at_it_others_are_not_elected_and_do_not_wait(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    enqueue(connection, queue, "delayed", delay_seconds=10)
    pass_seconds(connection, queue, 100)
    other = connect()
    with transaction(other):
        assert maintain(other, queue).elected is True
        row = maintain(connection, queue)
        assert row.elected is False
        assert (row.promoted, row.reaped, row.died, row.archived) == (0, 0, 0, 0)
        assert (row.purged, row.partitions_dropped) == (0, 0)
        rows = {row.queue_name: row for row in call(connection, "maintain")}
        assert rows[queue].elected is False
    assert maintain(connection, queue).elected is True


@pytest.mark.promise("P19")
def test_each_queue_elects_for_itself(
    connection: Connection, connect: Callable[..., Connection], queue: str
) -> None:
    name = f"{queue[:80]} other"
    call(connection, "create_queue", queue_name=name)
    other = connect()
    with transaction(other):
        assert maintain(other, queue).elected is True
        assert maintain(connection, name).elected is True


@pytest.mark.promise("P19")
def test_a_session_that_is_elected_may_call_again(connection: Connection, queue: str) -> None:
    with transaction(connection):
        assert [maintain(connection, queue).elected for _ in range(2)] == [True, True]


@pytest.mark.promise("P17", "P19")
def test_rolled_back_housekeeping_is_done_again(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, "leased")
    dequeue_one(connection, queue)
    enqueue(connection, queue, "delayed", delay_seconds=10)
    pass_seconds(connection, queue, 100)
    with rolled_back(connection):
        row = maintain(connection, queue)
        assert (row.reaped, row.promoted) == (1, 1)
    row = maintain(connection, queue)
    assert (row.reaped, row.promoted) == (1, 1)
    assert bodies(dequeue(connection, queue, 10)) == ["leased", "delayed"]


@pytest.mark.promise("P19")
def test_a_small_batch_size_does_the_work_in_parts(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *["delayed"] * 5, delay_seconds=10)
    pass_seconds(connection, queue, 100)
    promoted = [maintain(connection, queue, batch_size=2).promoted for _ in range(4)]
    assert promoted == [2, 2, 1, 0]


@pytest.mark.promise("P13", "P14")
def test_many_rounds_of_everything_lose_nothing(connection: Connection, queue: str) -> None:
    seen: list[str | None] = []
    for turn in range(30):
        messages = [{"body": f"{turn}.{place}", "priority": place % 3} for place in range(40)]
        call(connection, "enqueue_batch", queue_name=queue, messages=messages)
        rows = dequeue(connection, queue, 40)
        common = {"queue_name": queue, "claim_id": rows[0].claim_id}
        ids = [row.message_id for row in rows]
        if turn % 3 == 0:
            call(connection, "release", **common, message_ids=ids[:5])
        if turn % 3 == 1:
            call(connection, "retry_later", **common, message_ids=ids[:5], delay_seconds=30)
        kept = rows[5:] if turn % 3 < 2 else rows
        call(connection, "complete", **common, message_ids=[row.message_id for row in kept])
        seen += bodies(kept)
        maintain(connection, queue)
        pass_seconds(connection, queue, 20)
    pass_seconds(connection, queue, 100)
    while rows := dequeue(connection, queue, 1000):
        seen += bodies(rows)
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    expected = {f"{turn}.{place}" for turn in range(30) for place in range(40)}
    assert len(seen) == len(expected)
    assert set(seen) == expected


@pytest.mark.promise("P19")
def test_messages_finished_before_the_archive_was_switched_off_do_not_stay_for_ever(
    connection: Connection, queue: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    ids = enqueue(connection, queue, "archived", "finished")
    for step in range(2):
        claim = dequeue_one(connection, queue).claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
        if step == 0:
            assert maintain(connection, queue).archived == 1
    call(connection, "alter_queue", queue_name=queue, archive_days=0)
    pass_seconds(connection, queue, 61)
    maintain(connection, queue)
    assert [state_of(connection, queue, message_id) for message_id in ids] == [None, None]


@pytest.mark.promise("P15")
def test_an_empty_name_is_no_queue(connection: Connection) -> None:
    refused(connection, "RQ701", "maintain", queue_name="")
