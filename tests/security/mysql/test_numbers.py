"""The server numbers messages and claims; a caller cannot."""

from typing import Any

import pymysql
import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server
from tests.engines.mysql.accounts import Accounts
from tests.helpers.calls import bodies, call, call_one, dequeue, enqueue

LAST = 2**63 - 1
TAKEN = 1062


@pytest.mark.pitfall("mysql 21")
@pytest.mark.promise("P01", "P02")
def test_producer_that_sets_the_highest_id_blocks_no_other(
    connection: Connection, users: Accounts, queue: str
) -> None:
    _require_mariadb(connection)
    attacker, consumer = users["producer"], users["consumer"]
    attacker.execute(f"set insert_id = {LAST - 1}")
    sent = enqueue(attacker, queue, "evil")
    attacker.execute(f"set insert_id = {LAST - 1}")
    call(attacker, "enqueue_batch", queue_name=queue, messages=[{"body": "batch"}] * 2)
    sent += enqueue(connection, queue, "honest")
    assert max(sent) < LAST // 2
    consumer.execute(f"set insert_id = {LAST - 1}")
    assert bodies(dequeue(consumer, queue, 10)) == ["evil", "batch", "batch", "honest"]
    assert enqueue(connection, queue, "again")
    assert dequeue(connection, queue)[0].claim_id < LAST // 2


def test_session_that_sets_insert_id_is_refused_on_mysql(
    connection: Connection, users: Accounts, queue: str
) -> None:
    if _is_mariadb(connection):
        pytest.skip("MariaDB unsets insert_id; to run it: --engine mysql")
    [before] = enqueue(connection, queue, "before")
    calls: dict[str, dict[str, Any]] = {
        "enqueue": {"body": "evil"},
        "enqueue_batch": {"messages": [{"body": "evil"}]},
        "dequeue_fast": {},
    }
    for routine, arguments in calls.items():
        user = users["consumer" if routine == "dequeue_fast" else "producer"]
        user.execute(f"set insert_id = {LAST - 1}")
        with pytest.raises(pymysql.Error, match=r"RQ711.*insert_id"):
            call(user, routine, queue_name=queue, **arguments)
        assert user.execute("select @@insert_id").fetchone() == (LAST - 1,)
        # Error 1568 would mean that the call left a transaction open.
        user.execute("set transaction read write")
    [after] = enqueue(connection, queue, "after")
    assert after == before + 1
    rows = dequeue(connection, queue, 10)
    assert (bodies(rows), rows[0].claim_id < LAST // 2) == (["before", "after"], True)


@pytest.mark.promise("P01", "P12")
def test_producer_that_sets_a_used_id_loses_no_message(
    connection: Connection, users: Accounts, queue: str
) -> None:
    _require_mariadb(connection)
    attacker = users["producer"]
    [used] = enqueue(connection, queue, "first")
    attacker.execute(f"set insert_id = {used}")
    row = call_one(attacker, "enqueue", queue_name=queue, body="second", dedup_key="invoice-77")
    assert (row.message_id > used, row.outcome) == (True, "enqueued")
    again = call_one(connection, "enqueue", queue_name=queue, dedup_key="invoice-77")
    assert (again.message_id, again.outcome) == (row.message_id, "duplicate")
    assert bodies(dequeue(connection, queue, 10)) == ["first", "second"]


@pytest.mark.promise("P01", "P12")
@pytest.mark.parametrize("key", [None, "invoice-77"])
def test_used_message_id_is_an_error(connection: Connection, queue: str, key: str | None) -> None:
    [used] = enqueue(connection, queue, "first")
    part = queue_id_of(connection, queue)
    connection.begin()
    connection.execute(f"set insert_id = {used}")
    with pytest.raises(pymysql.Error) as met:
        connection.execute(
            "call rowq.internal_store(%s, 0, utc_timestamp(6), 'x', null, null, null, 5, null, %s,"
            " null, null, null, null, null, null, null, true,"
            " @message_id, @outcome, @joining, @failed)",
            [part, key],
        )
    assert met.value.args[0] == TAKEN
    connection.rollback()
    connection.execute(f"set insert_id = {used}")
    with pytest.raises(pymysql.Error) as met:
        connection.execute(
            'call rowq.internal_store_batch(%s, \'[{"body": "x"}]\', null, true, @results)', [part]
        )
    assert met.value.args[0] == TAKEN
    connection.execute("set insert_id = 0")
    row = call_one(connection, "enqueue", queue_name=queue, dedup_key="invoice-77")
    assert row.outcome == "enqueued"


@pytest.mark.promise("P15")
def test_queue_with_a_used_id_is_refused(server: Server, empty_database: str) -> None:
    migrate(empty_database)
    with server.connect(empty_database) as admin:
        _require_mariadb(admin)
        call(admin, "create_queue", queue_name="orders")
        # Simulate a restore that lost the counters.
        admin.execute("drop procedure rowq.internal_set_session")
        admin.execute("create procedure rowq.internal_set_session(p_moment double) begin end")
        admin.execute(f"set insert_id = {queue_id_of(admin, 'orders')}")
        with pytest.raises(pymysql.Error) as met:
            call(admin, "create_queue", queue_name="invoices")
        assert met.value.args[0] == TAKEN
        admin.execute("set insert_id = 0")
        assert call_one(admin, "create_queue", queue_name="invoices").outcome == "created"
        assert call_one(admin, "create_queue", queue_name="orders").outcome == "exists"


@pytest.mark.promise("P02")
def test_callers_auto_increment_settings_spare_queue_ids(
    connection: Connection, users: Accounts, queue: str
) -> None:
    jump = "set auto_increment_increment = 65535, auto_increment_offset = 65535"
    users["producer"].execute(jump)
    first, last = enqueue(users["producer"], queue, "1", "2")
    assert last - first == 65535
    third, fourth = enqueue(connection, queue, "3", "4")
    assert (third - last <= 65535, fourth - third) == (True, 1)
    users["admin"].execute(jump)
    part = queue_id_of(connection, queue)
    call(users["admin"], "create_queue", queue_name=f"{queue} too")
    assert queue_id_of(connection, f"{queue} too") - part < 65535
    mine = users["admin"].execute("select @@auto_increment_increment, @@auto_increment_offset")
    assert mine.fetchone() == (65535, 65535)
    call(connection, "drop_queue", queue_name=f"{queue} too")


@pytest.mark.promise("P06")
def test_producer_without_unique_checks_blocks_no_other(
    server: Server, empty_database: str
) -> None:
    migrate(empty_database)
    with server.connect(empty_database) as attacker, server.connect(empty_database) as honest:
        call(honest, "create_queue", queue_name="orders")
        # With these settings InnoDB would lock an empty table for the session that inserts the
        # first row.
        attacker.execute("set unique_checks = 0, foreign_key_checks = 0")
        attacker.begin()
        enqueue(attacker, "orders", "first")
        honest.execute("set innodb_lock_wait_timeout = 1")
        enqueue(honest, "orders", "second")
        attacker.rollback()
        assert bodies(dequeue(honest, "orders", 10)) == ["second"]


def test_health_warns_before_ids_run_out(connection: Connection) -> None:
    def status() -> tuple[str, str]:
        [row] = [r for r in call(connection, "health") if r.check_name == "sequence_near_end"]
        return row.status, row.detail

    assert status()[0] == "ok"
    ((_, text),) = connection.execute("show create table rowq.finished").fetchall()
    numbers = [word for word in text.split() if word.startswith("AUTO_INCREMENT=")]
    usual = numbers[0].partition("=")[2] if numbers else "1"
    try:
        for share, expected in ((0.6, "warning"), (0.95, "critical")):
            number = int(LAST * share)
            connection.execute(f"alter table rowq.finished auto_increment = {number}")
            assert status() == (expected, "per cent of the ids of rowq.finished are used")
    finally:
        connection.execute(f"alter table rowq.finished auto_increment = {usual}")


def queue_id_of(connection: Connection, queue: str) -> int:
    """Return a queue's id."""
    query = "select queue_id from rowq.queue where queue_name = %s"
    ((part,),) = connection.execute(query, [queue]).fetchall()
    return int(part)


def _is_mariadb(connection: Connection) -> bool:
    return "mariadb" in connection.server_version.lower()


def _require_mariadb(connection: Connection) -> None:
    if not _is_mariadb(connection):
        pytest.skip(
            "MySQL cannot unset insert_id, so a call is refused; to run it: --engine mariadb"
        )
