"""maintain; test_maintenance.py covers what the routines of maintenance share."""

from contextlib import closing

import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.helpers.calls import Row, bodies, call, refused, transaction
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P19")

DAY = 86400
CHECK = "maintain_fault"


def maintain(queue: CheckedQueue, **arguments: int) -> Row:
    return queue.call_one("maintain", **arguments)


@pytest.mark.promise("P09", "P10", "P11")
def test_maintain_does_all_maintenance_in_one_call(queue: CheckedQueue) -> None:
    queue.call("alter_queue", archive_days=1)
    queue.enqueue("done")
    queue.finish_one()
    queue.pass_seconds(DAY * 3)
    assert maintain(queue).archived == 1
    queue.call("alter_queue", archive_days=2)
    queue.enqueue("reaped")
    queue.enqueue("dies", max_attempts=1)
    queue.dequeue(2)
    queue.enqueue("delayed", delay_seconds=10)
    queue.enqueue("completed")
    queue.finish_one()
    queue.pass_seconds(100)
    row = maintain(queue)
    assert row.queue_name == queue.name
    assert row.elected is True
    assert (row.promoted, row.reaped, row.died, row.archived) == (1, 1, 1, 1)
    assert row.purged + row.partitions_dropped <= 1
    assert queue.counts() == (2, 0, 0, 1)
    assert bodies(queue.dequeue(10)) == ["reaped", "delayed"]


def test_maintain_without_a_name_maintains_every_queue(
    connection: Connection, queue: CheckedQueue
) -> None:
    other = queue.another()
    for late in (queue, other):
        late.enqueue("delayed", delay_seconds=10)
        late.pass_seconds(100)
    first = call(connection, "maintain")
    assert len(first) == min(1000, len(call(connection, "queue_stats", max_count=1)))
    promoted = {row.queue_name: row.promoted for row in first}
    # A call maintains 1000 queues at random, and tests may have left more.
    while not {queue.name, other.name} <= promoted.keys():
        rows = call(connection, "maintain", queue_name=None)
        promoted = {row.queue_name: row.promoted for row in rows} | promoted
    assert promoted[queue.name] == promoted[other.name] == 1
    again = call(connection, "maintain", queue_name=None)
    assert not [row for row in again if row.queue_name in {queue.name, other.name} and row.promoted]


@pytest.mark.requires("genuine")
def test_maintain_returns_not_elected_during_another_call(
    queue: CheckedQueue, elsewhere: CheckedQueue
) -> None:
    queue.enqueue("delayed", delay_seconds=10)
    queue.pass_seconds(100)
    with transaction(elsewhere.connection):
        assert maintain(elsewhere).elected is True
        row = maintain(queue)
        assert row.elected is False
        assert (row.promoted, row.reaped, row.died, row.archived) == (0, 0, 0, 0)
        assert (row.purged, row.partitions_dropped) == (0, 0)
        rows = {row.queue_name: row for row in call(queue.connection, "maintain")}
        assert rows[queue.name].elected is False
    assert maintain(queue).elected is True


def test_each_queue_has_its_own_election(queue: CheckedQueue, elsewhere: CheckedQueue) -> None:
    with transaction(elsewhere.connection):
        assert maintain(elsewhere).elected is True
        assert maintain(queue.another()).elected is True


def test_elected_session_may_call_maintain_again(queue: CheckedQueue) -> None:
    with transaction(queue.connection):
        assert [maintain(queue).elected for _ in range(2)] == [True, True]


def test_maintain_promotes_at_most_batch_size_messages(queue: CheckedQueue) -> None:
    queue.enqueue(*["delayed"] * 5, delay_seconds=10)
    queue.pass_seconds(100)
    promoted = [maintain(queue, batch_size=2).promoted for _ in range(4)]
    assert promoted == [2, 2, 1, 0]


@pytest.mark.slow("thousands of messages", on="mariadb", ci="mariadb")
@pytest.mark.promise("P13", "P14")
def test_many_rounds_of_work_lose_no_message(queue: CheckedQueue) -> None:
    seen: list[str | None] = []
    for turn in range(30):
        messages = [{"body": f"{turn}.{number}", "priority": number % 3} for number in range(40)]
        queue.call("enqueue_batch", messages=messages)
        rows = queue.dequeue(40)
        common = {"claim_id": rows[0].claim_id}
        ids = [row.message_id for row in rows]
        if turn % 3 == 0:
            queue.call("release", **common, message_ids=ids[:5])
        if turn % 3 == 1:
            queue.call("retry_later", **common, message_ids=ids[:5], delay_seconds=30)
        kept = rows[5:] if turn % 3 < 2 else rows
        queue.call("complete", **common, message_ids=[row.message_id for row in kept])
        seen += bodies(kept)
        maintain(queue)
        queue.pass_seconds(20)
    queue.pass_seconds(100)
    while rows := queue.dequeue(1000):
        seen += bodies(rows)
        queue.call("complete", claim_id=rows[0].claim_id)
    expected = {f"{turn}.{number}" for turn in range(30) for number in range(40)}
    assert len(seen) == len(expected)
    assert set(seen) == expected


def test_maintain_purges_after_archive_days_is_set_to_zero(
    queue: CheckedQueue,
) -> None:
    queue.call("alter_queue", archive_days=1)
    ids = queue.enqueue("archived", "finished")
    queue.finish_one()
    assert maintain(queue).archived == 1
    queue.finish_one()
    queue.call("alter_queue", archive_days=0)
    queue.pass_seconds(61)
    maintain(queue)
    assert [queue.state_of(message_id) for message_id in ids] == [None, None]


@pytest.mark.promise("P15")
def test_maintain_refuses_an_empty_name(connection: Connection) -> None:
    refused(connection, "RQ701", "maintain", queue_name="")


@pytest.mark.slow("waits for a lock", on="mariadb", ci="mariadb")
@pytest.mark.promise("P11")
def test_maintain_continues_after_an_error_in_one_queue(
    server: Server, empty_database: str
) -> None:
    migrate(empty_database)
    with closing(server.connect(empty_database)) as connection:
        queues = [new_queue(connection, f"queue {number}") for number in range(5)]
        for late in queues:
            late.enqueue("delayed", delay_seconds=10)
            late.pass_seconds(100)
        broken = queues[2]
        table = "rowq_ready" if server.engine == "oracle" else "rowq.ready"
        dialect = dialect_of(connection)
        # Queue ids are 1, 2, 3, ... MariaDB has a sentinel row with message_id 0 in each queue.
        check = "check (queue_id <> 3 or message_id = 0)"
        dialect.execute(connection, f"alter table {table} add constraint rowq_sabotage {check}")
        rows = call(connection, "maintain", queue_name=None)
        assert {row.queue_name: row.promoted for row in rows} == {
            late.name: int(late is not broken) for late in queues
        }
        if server.engine in {"postgres", "mysql"}:
            [found] = [row for row in call(connection, "health") if row.check_name == CHECK]
            assert (found.status, found.value) == ("critical", 1)
            assert broken.name in found.detail
        with pytest.raises(Exception, match=r"(?i)rowq_sabotage"):
            broken.call("maintain")

        dialect.execute(connection, f"alter table {table} drop constraint rowq_sabotage")
        broken.tick()
        rows = call(connection, "maintain", queue_name=None)
        assert {row.queue_name for row in rows if row.promoted} == {broken.name}
        if server.engine in {"postgres", "mysql"}:
            [found] = [row for row in call(connection, "health") if row.check_name == CHECK]
            assert (found.status, found.value) == ("ok", 0)
