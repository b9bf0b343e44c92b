"""health after a failover: sequences behind their rows, and prepared transactions that remain.

Logical replication and a dump without sequences copy rows, but not the next numbers.
"""

from contextlib import closing

import psycopg
import pytest

from rowq.tools.doctor import Status, examine
from rowq.tools.migrate import migrate
from tests.contract.test_health import check
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server
from tests.helpers.calls import bodies, call, outcomes, transaction
from tests.helpers.dialects import preparing_dialect_of
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P08")

SEQUENCES = ("rowq.claim_seq", "rowq.message_seq", "rowq.queue_queue_id_seq")


def cut_over(connection: Connection) -> None:
    """Restart every sequence, as on a server that received only rows."""
    for sequence in SEQUENCES:
        connection.execute(f"alter sequence {sequence} restart")


def behind(connection: Connection) -> dict[str, float]:
    """Return by how many numbers each sequence is behind, as health shows it."""
    rows = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    assert [row.detail.split()[0] for row in rows] == ["claim", "message", "queue"]
    assert all((row.status == "critical") is (row.value > 0) for row in rows)
    return {row.detail.split()[0]: row.value for row in rows if row.value}


TABLES = """
    select c.relname
    from pg_class c
    where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
    order by c.relname
"""


def copy_rows(here: Connection, there: Connection) -> None:
    """Copy the rows of every table, as logical replication does."""
    for (table,) in here.execute(TABLES).fetchall():
        there.execute(f"truncate rowq.{table}")
        with (
            here.cursor().copy(f"copy (select * from rowq.{table}) to stdout") as source,
            there.cursor().copy(f"copy rowq.{table} from stdin") as target,
        ):
            for data in source:
                target.write(data)


@pytest.mark.promise("P01", "P46")
@pytest.mark.parametrize("healed_by", ["after_failover", "maintain"])
def test_old_claim_ends_no_message_after_a_cut_over(
    server: Server, owner: Connection, own_queue: CheckedQueue, healed_by: str
) -> None:
    own_queue.enqueue("a", "b", "c")
    old = own_queue.dequeue_one()
    own_queue.call("maintain")
    url = server.fresh_database()
    try:
        migrate(url)
        with closing(server.connect(url)) as there:
            copy_rows(owner, there)
            # The new server does not receive this one.
            late = own_queue.dequeue_one()
            cut_over(there)
            assert behind(there).keys() == {"claim", "message", "queue"}
            call(there, healed_by)
            assert behind(there) == {}

            queue = own_queue.via(there)
            queue.pass_seconds(100)
            assert queue.call_one("maintain").reaped == 1
            queue.enqueue("d")
            new = queue.dequeue(10)
            assert bodies(new) == ["a", "b", "c", "d"]
            assert new[0].claim_id > late.claim_id + 10**8
            for claim in (old, late):
                queue.refused("RQ721", "complete", claim_id=claim.claim_id)
            assert queue.counts() == (0, 0, 4, 0)
            assert new_queue(there, "another").enqueue("e") > [new[-1].message_id]
    finally:
        server.drop_database(url)


def test_first_claim_is_above_those_of_older_servers(
    server: Server, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("a")
    old = own_queue.dequeue_one()
    url = server.fresh_database()
    try:
        migrate(url)
        with closing(server.connect(url)) as there:
            queue = new_queue(there, own_queue.name)
            queue.enqueue("a")
            assert queue.dequeue_one().claim_id > old.claim_id
            queue.refused("RQ721", "complete", claim_id=old.claim_id)
    finally:
        server.drop_database(url)


@pytest.mark.promise("P14")
@pytest.mark.parametrize("healed_by", ["after_failover", "maintain"])
def test_messages_enqueued_before_the_repair_are_delivered(
    owner: Connection, own_queue: CheckedQueue, healed_by: str
) -> None:
    owner.execute("select setval('rowq.message_seq', 10000)")
    other = own_queue.another()
    for queue in (own_queue, other):
        queue.enqueue("done", priority=3)
        queue.finish_one()
        queue.pass_seconds(1)
        queue.call("maintain")
    owner.execute("alter sequence rowq.message_seq restart")
    for queue in (own_queue, other):
        queue.enqueue("early", priority=3)
    if healed_by == "maintain":
        own_queue.call("maintain")
    else:
        call(owner, healed_by)
    assert behind(owner) == {}
    for queue in (own_queue, other):
        assert bodies(queue.dequeue(10)) == ["early"]


def test_health_detects_sequences_that_restart(owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.enqueue("a", "b", "c")
    first = own_queue.dequeue_one()
    assert behind(owner) == {}

    cut_over(owner)
    found = behind(owner)
    assert found == {"claim": first.claim_id, "message": 3, "queue": 1}
    call(owner, "after_failover")
    assert behind(owner) == {}

    own_queue.enqueue("d")
    second = own_queue.dequeue_one()
    assert second.claim_id > first.claim_id + 10**9 - 1
    assert outcomes(own_queue.call("complete", claim_id=first.claim_id)) == {
        first.message_id: "completed"
    }
    assert new_queue(owner, "another").enqueue("e") > [second.message_id]


@pytest.mark.parametrize("kept", ["history", "results", "archive"])
def test_health_detects_a_sequence_behind_retained_rows(
    owner: Connection, own_queue: CheckedQueue, kept: str
) -> None:
    settings = {"history": "history_days", "results": "result_seconds", "archive": "archive_days"}
    own_queue.call("alter_queue", **{settings[kept]: 100})
    own_queue.enqueue("a", "b")
    for _ in range(2):
        own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)

    cut_over(owner)
    found = behind(owner)
    assert "message" in found
    assert ("claim" in found) is (kept != "results")
    call(owner, "after_failover")
    assert behind(owner) == {}


@pytest.mark.parametrize("name", ["claim", "message"])
def test_health_detects_a_sequence_behind_its_floor(
    owner: Connection, own_queue: CheckedQueue, name: str
) -> None:
    owner.execute("select setval('rowq.message_seq', 100000)")
    own_queue.enqueue("a")
    own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)
    own_queue.pass_seconds(1)
    own_queue.call("maintain")
    owner.execute(f"alter sequence rowq.{name}_seq restart")
    assert behind(owner).keys() == {name}
    call(owner, "after_failover")
    assert behind(owner) == {}


def test_sequence_restarted_ahead_is_not_behind(owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.enqueue("a", "b", "c")
    claim = own_queue.dequeue_one().claim_id
    for sequence in SEQUENCES:
        owner.execute(f"alter sequence {sequence} restart with {claim % 10**9 + 1000}")
    owner.execute(f"alter sequence rowq.claim_seq restart with {claim + 1}")
    assert behind(owner) == {}
    owner.execute("alter sequence rowq.message_seq restart with 3")
    assert behind(owner) == {"message": 1}


def test_doctor_reports_a_sequence_behind(
    owner: Connection, own_queue: CheckedQueue, empty_database: str
) -> None:
    own_queue.enqueue("a", "b", "c")
    owner.execute("alter sequence rowq.message_seq restart")
    found = {check.check_name: check for check in examine(empty_database)}
    assert found["health: sequence_behind"].status is Status.FAILED
    assert "rowq after-failover" in found["health: sequence_behind"].detail
    call(owner, "after_failover")
    assert not [check for check in examine(empty_database) if "sequence" in check.check_name]


def test_repairs_take_turns(open_owner: Open, owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.enqueue("a")
    own_queue.call("maintain")
    first = open_owner()
    with transaction(first):
        [claim] = [row for row in call(first, "after_failover") if row.name == "claim"]
        owner.execute("set lock_timeout = 100")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            call(owner, "after_failover")
        # Producers and workers do not wait.
        own_queue.enqueue("b")
        assert own_queue.dequeue_one().claim_id > claim.is_now
        own_queue.call("maintain")
    [second] = [row for row in call(owner, "after_failover") if row.name == "claim"]
    assert second.was > claim.is_now


@pytest.mark.promise("P16")
def test_health_reports_a_prepared_transaction(
    owner: Connection, own_queue: CheckedQueue, open_owner: Open
) -> None:
    preparing_dialect_of(owner)
    nothing = "seconds a prepared transaction has kept rows of rowq locked"
    owner.execute("create table public.other (id integer)")

    other = open_owner()
    other.execute("begin")
    other.execute("insert into public.other values (1)")
    other.execute("select count(*) from rowq.message")
    other.execute("prepare transaction 'rowq_test_other'")
    try:
        row = check(owner, "prepared_transactions")
        assert (row.status, row.value, row.detail) == ("ok", 0, nothing)
    finally:
        owner.execute("rollback prepared 'rowq_test_other'")

    own_queue.enqueue("a")
    worker = open_owner()
    worker.execute("begin")
    own_queue.via(worker).dequeue_one()
    worker.execute("prepare transaction 'it''s rowq_test_failover'")
    worker.close()
    row = check(owner, "prepared_transactions")
    assert row.value > 0
    statement = row.detail.partition(" or ")[2]
    assert statement == "rollback prepared 'it''s rowq_test_failover'"
    assert own_queue.dequeue() == []
    owner.execute(statement)
    row = check(owner, "prepared_transactions")
    assert (row.status, row.value, row.detail) == ("ok", 0, nothing)
    assert len(own_queue.dequeue()) == 1
