"""Every statement of the routines reads a range of the primary key, in its order.

A plan that sorts would lock every row that it reads. A plan without the bounds, or one that reads
only the index, scans all dead rows.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rowq.arguments import plain_arguments
from rowq.contract import load_contract
from tests.engine_only.mysql.costs import queue_id_of
from tests.engine_only.mysql.statements import Access, accesses, run_by
from tests.engines.base import Connection
from tests.helpers.calls import Row, call, dequeue, dequeue_one, enqueue
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

WAITING = {"ready", "delayed", "claim", "finished", "lane", "expiry"}
"""Tables from whose low end the routines read."""

EXPIRE = "lease_until = lease_until - interval"
"""A word of the test's own statement."""

BY_KEY = {*WAITING, "message", "dedup", "queue_lock"}


@pytest.fixture(params=["many live rows", "few live rows and many dead ones"])
def queue(
    request: pytest.FixtureRequest, connection: Connection, connect: Connect, queue_name: str
) -> Iterator[str]:
    call(connection, "create_queue", queue_name=queue_name, archive_days=1, max_attempts=2)
    reader = connect()
    reader.execute("set session transaction isolation level repeatable read")
    if "dead" in request.param:
        reader.execute("start transaction with consistent snapshot")
        reader.execute("select count(*) from rowq.ready where queue_id = -1")
    keyed = [{"body": "x", "dedup_key": str(number)} for number in range(400)]
    plain = [{"body": "x"}] * 4000
    call(connection, "enqueue_batch", queue_name=queue_name, messages=keyed)
    call(connection, "enqueue_batch", queue_name=queue_name, messages=plain)
    if "dead" in request.param:
        while rows := dequeue(connection, queue_name, 1000):
            call(connection, "complete", queue_name=queue_name, claim_id=rows[0].claim_id)
        enqueue(connection, queue_name, *"abcd" * 5)
        enqueue(connection, queue_name, "soon", delay_seconds=0.01)
    yield queue_name
    reader.rollback()


def every_routine(session: Connection, queue: str) -> None:
    """Call every routine that works on messages."""
    called = {"enqueue", "dequeue_fast", "publish", "publish_batch"}

    def ask(routine: str, **arguments: Any) -> list[Row]:
        called.add(routine)
        return call(session, routine, queue_name=queue, **arguments)

    ids = enqueue(session, queue, *"12345678", dedup_key=None)
    enqueue(session, queue, "key", dedup_key="key")
    enqueue(session, queue, "key", dedup_key="key")
    enqueue(session, queue, "late", delay_seconds=100)
    enqueue(session, queue, "1", "2", expire_seconds=0.001)
    enqueue(session, queue, "1", "2", expire_seconds=0.001, group_key="expiring")
    enqueue(session, queue, "delayed", expire_seconds=0.001, delay_seconds=1000)
    enqueue(session, queue, "blocked", expire_seconds=0.001, predecessor_ids=ids[-1:])
    call(session, "bind_topic", queue_name=queue, topic_pattern="plans.*")
    call(session, "publish", topic="plans.one", body="published")
    published = [{"topic": "plans.two"}, {"topic": "plans.one", "dedup_key": "published"}]
    call(session, "publish_batch", messages=published)
    for size in (1, 2):
        ask("fail_now", claim_id=dequeue(session, queue, size)[0].claim_id)
    for routine in ("complete_and_dequeue", "retry_later", "release", "complete", "extend_lease"):
        claim = dequeue(session, queue, 2)[0].claim_id
        ask(routine, claim_id=claim)
    dialect_of(session).expire_claim(session, claim)
    part = dequeue(session, queue, 3)
    ask("complete", claim_id=part[0].claim_id, message_ids=[part[0].message_id])
    for routine in ("maintain", "promote", "reap", "archive", "purge_archive", "queue_stats"):
        ask(routine)
    dead = [row.message_id for row in ask("list_dead")]
    assert dead
    ask("list_dead", before_message_id=2**62, message_type="x")
    ask("list_claims")
    ask("report_worker", worker_id="a")
    ask("discard_dead", message_ids=dead[:1])
    ask("discard_dead", message_type="x", died_before=datetime.now(UTC))
    ask("find_message", dedup_key="key")
    ask("list_delayed", after_due_at=datetime(2020, 1, 1, tzinfo=UTC), after_message_id=1)
    ask("reset", message_ids=[*dead, *ids])
    ask("cancel", message_ids=ids[:4])
    every_cancel(session, queue, ask)
    ask("get_message", message_id=ids[-1])
    waiting = enqueue(session, queue, "1", "2", group_key="explained", expire_seconds=100)
    waiting += enqueue(session, queue, "3", predecessor_ids=waiting[:1], delay_seconds=100)
    for message_id in [*ids, *waiting, 0]:
        ask("explain_message", message_id=message_id)
    every_alter(waiting, ask)
    for entry in load_contract().routines.values():
        if (
            entry.name not in called
            and entry.group not in {"admin", "schedule"}
            and entry.kind == "function"
        ):
            call(session, entry.name, **plain_arguments(entry, queue))


def every_alter(message_ids: list[int], ask: Callable[..., list[Row]]) -> None:
    """Change messages that are ready, in a group, and blocked."""
    for message_id in message_ids:
        ask("alter_message", message_id=message_id, body="changed", expire_seconds=50)
        ask("alter_message", message_id=message_id, priority=7)
        ask("alter_message", message_id=message_id, delay_seconds=50)


def every_cancel(session: Connection, queue: str, ask: Callable[..., list[Row]]) -> None:
    """Cancel leased messages, with every way to return them, and by filters."""
    enqueue(session, queue, *"1234", headers={"tint": "blue"}, message_type="mail")
    enqueue(session, queue, "first", priority=0, message_type="mail")
    for routine in ("retry_later", "release", "fail_now", "reap"):
        taken = dequeue(session, queue, 2)
        ask("cancel", message_ids=[row.message_id for row in taken][:1], include_leased=True)
        if routine == "reap":
            dialect_of(session).expire_claim(session, taken[0].claim_id)
            ask("reap")
        else:
            ask(routine, claim_id=taken[0].claim_id)
    ask("reset", message_type="mail", died_before=datetime.now(UTC))
    blue = {"header_name": "tint", "header_value": "blue"}
    ask("cancel_many", message_type="mail", group_key="g", **blue)
    ask("cancel_many", enqueued_before=datetime.now(UTC))


@pytest.mark.pitfall("mysql 5", "mysql 16")
@pytest.mark.promise("P06", "P13")
@pytest.mark.parametrize("level", [None, "repeatable read"])
def test_statements_use_primary_key_ranges_in_order(
    connection: Connection, connect: Connect, queue: str, level: str | None
) -> None:
    session = connect()
    dequeue_one(session, queue)

    def work() -> None:
        if level is None:
            every_routine(session, queue)
            return
        session.execute(f"set transaction isolation level {level}")
        session.execute("begin")
        every_routine(session, queue)
        session.commit()

    connection.execute("use rowq")
    # The statistics are those of empty tables, the usual cause of bad plans.
    statements = [
        statement for statement in run_by(connection, session, work) if EXPIRE not in statement
    ]
    found = [access for statement in statements for access in accesses(connection, statement)]
    assert {access.table for access in found} >= BY_KEY
    for access in found:
        check(access)


def check(access: Access) -> None:
    """Check a plan."""
    if access.statement.lstrip().startswith("insert"):
        assert access.type == "ALL"  # explain's word for a table that is written
        assert "select" not in access.statement
        return
    if access.table in BY_KEY:
        assert access.key == "PRIMARY", access
        assert access.type in {"const", "eq_ref", "ref", "range"}, access
        assert "filesort" not in access.extra, access
        assert "temporary" not in access.extra, access
    if access.table == "topic_binding" and "literal_prefix" in access.statement:
        assert (access.key, access.type) == ("topic_binding_prefix_ix", "ref"), access
    # find_idle reads from the start of each queue, and measures how long that takes.
    looks_for_idle = "sysdate(6)" in access.statement
    if access.table in WAITING and "count(" not in access.statement and not looks_for_idle:
        assert access.type != "ref", access
    # A message that was returned is searched for in all of ready.
    is_search = "r.lane >= 0" in access.statement
    if access.table in WAITING - {"lane"} and access.type == "range" and not is_search:
        assert "Using index" not in access.extra, access


@pytest.mark.pitfall("mysql 16")
@pytest.mark.promise("P06")
@pytest.mark.parametrize("level", ["read committed", "repeatable read"])
def test_dequeue_locks_only_the_leased_rows(
    connection: Connection, connect: Connect, queue_name: str, level: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    enqueue(connection, queue_name, *map(str, range(200)))
    first, second = connect(), connect()
    for session in (first, second):
        session.execute(f"set transaction isolation level {level}")
        session.execute("begin")
    assert [row.body for row in dequeue(first, queue_name, 2)] == ["0", "1"]
    assert locked_rows(connection, first) < 20
    assert [row.body for row in dequeue(second, queue_name, 2)] == ["2", "3"]
    first.rollback()
    second.rollback()


def locked_rows(admin: Connection, session: Connection) -> int:
    """Return how many rows a session's transaction has locked."""
    # InnoDB refreshes its list of transactions only if it was not read for 100 ms.
    time.sleep(0.15)
    query = "select trx_rows_locked from information_schema.innodb_trx where trx_mysql_thread_id=%s"
    ((count,),) = admin.execute(query, [session.thread_id()]).fetchall()
    return int(count)


@pytest.mark.slow("a large backlog", ci="mariadb")
@pytest.mark.promise("P13")
def test_maintain_runs_at_most_two_statements_for_an_idle_queue(
    connection: Connection, connect: Connect, queue_name: str
) -> None:
    if "mariadb" not in connection.server_version.lower():
        pytest.skip("MySQL shows statements without their values; to run it: --engine mariadb")
    queues = [f"{queue_name} {number}" for number in range(50)]
    for queue in queues:
        call(connection, "create_queue", queue_name=queue)
        enqueue(connection, queue, "to be finished")
        enqueue(connection, queue, "to wait", delay_seconds=3600)
        claim = dequeue(connection, queue, 9)[0].claim_id
        call(connection, "complete", queue_name=queue, claim_id=claim)
    for _ in range(2):
        call(connection, "maintain")
    parts = {str(queue_id_of(connection, queue)) for queue in queues}
    session = connect()
    connection.execute("use rowq")

    def statements() -> Counter[str]:
        """Count the statements about each queue; other queues may have work."""
        ran = run_by(connection, session, lambda: call(session, "maintain"))
        assert "sysdate(6)" in " ".join(ran)
        return Counter(re.findall(r"NAME_CONST\('p_queue_id',(\d+)\)", " ".join(ran)))

    # A check that is slowed down by other load continues into its queue.
    counts = [statements() for _ in range(20)]
    assert all(min(count[part] for count in counts) <= 2 for part in parts)
