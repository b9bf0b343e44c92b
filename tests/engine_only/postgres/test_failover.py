"""health after a failover: sequences behind their rows, and prepared transactions that remain.

Logical replication and a dump without sequences copy rows, but not the next numbers.
"""

import re
from contextlib import closing

import pytest

from rowq.tools.doctor import Status, examine
from rowq.tools.migrate import migrate
from tests.contract.test_health import check
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server
from tests.helpers.calls import bodies, outcomes
from tests.helpers.dialects import preparing_dialect_of
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.promise("P08")

SEQUENCES = ("rowq.claim_seq", "rowq.message_seq", "rowq.queue_queue_id_seq")


def cut_over(connection: Connection) -> None:
    """Restart every sequence, as on a server that received only rows."""
    for sequence in SEQUENCES:
        connection.execute(f"alter sequence {sequence} restart")


def repair(connection: Connection) -> list[str]:
    """Run the statements of the check's detail; return the sequences that they move."""
    detail: str = check(connection, "sequence_behind").detail
    statements = re.findall(r"select setval\('[^']+', \d+\);", detail)
    for statement in statements:
        connection.execute(statement)
    return [statement.split("'")[1] for statement in statements]


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


@pytest.mark.promise("P01")
def test_old_claim_ends_no_message_after_a_cut_over(
    server: Server, owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("a", "b", "c")
    old = own_queue.dequeue_one()
    own_queue.dequeue_one()
    url = server.fresh_database()
    try:
        migrate(url)
        with closing(server.connect(url)) as there:
            copy_rows(owner, there)
            assert check(there, "sequence_behind").status == "critical"
            repair(there)
            assert check(there, "sequence_behind").status == "ok"

            queue = own_queue.via(there)
            queue.pass_seconds(100)
            assert queue.call_one("reap").reaped == 2
            queue.enqueue("d")
            new = queue.dequeue(10)
            assert bodies(new) == ["a", "b", "c", "d"]
            # The claim is gone, and its id is not reused.
            queue.refused("RQ721", "complete", claim_id=old.claim_id)
            assert queue.counts() == (0, 0, 4, 0)
    finally:
        server.drop_database(url)


def test_health_detects_sequences_that_restart(owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.enqueue("a", "b", "c")
    first = own_queue.dequeue_one()
    assert check(owner, "sequence_behind").status == "ok"

    cut_over(owner)
    row = check(owner, "sequence_behind")
    assert (row.status, row.value) == ("critical", 3)
    assert repair(owner) == list(SEQUENCES)
    assert check(owner, "sequence_behind").status == "ok"

    own_queue.enqueue("d")
    second = own_queue.dequeue_one()
    assert second.claim_id > first.claim_id + 100000
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
    assert check(owner, "sequence_behind").status == "critical"
    named = repair(owner)
    assert "rowq.message_seq" in named
    assert ("rowq.claim_seq" in named) is (kept != "results")
    assert check(owner, "sequence_behind").status == "ok"


def test_health_detects_a_claim_sequence_behind_its_floor(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    owner.execute("select setval('rowq.claim_seq', 100000)")
    own_queue.enqueue("a")
    own_queue.call("complete", claim_id=own_queue.dequeue_one().claim_id)
    own_queue.pass_seconds(1)
    own_queue.call("maintain")
    owner.execute("alter sequence rowq.claim_seq restart")
    assert check(owner, "sequence_behind").status == "critical"
    assert repair(owner) == ["rowq.claim_seq"]
    assert check(owner, "sequence_behind").status == "ok"


def test_sequence_restarted_ahead_is_not_behind(owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.enqueue("a", "b", "c")
    own_queue.dequeue_one()
    for sequence in SEQUENCES:
        owner.execute(f"alter sequence {sequence} restart with 1000")
    assert check(owner, "sequence_behind").status == "ok"
    owner.execute("alter sequence rowq.message_seq restart with 3")
    assert (check(owner, "sequence_behind").value, repair(owner)) == (1, ["rowq.message_seq"])


def test_doctor_reports_a_sequence_behind(
    owner: Connection, own_queue: CheckedQueue, empty_database: str
) -> None:
    own_queue.enqueue("a", "b", "c")
    cut_over(owner)
    found = {check.check_name: check for check in examine(empty_database)}
    assert found["health: sequence_behind"].status is Status.FAILED
    assert "select setval('rowq.message_seq'," in found["health: sequence_behind"].detail
    repair(owner)
    assert not [check for check in examine(empty_database) if "sequence" in check.check_name]


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
