"""Calls that remove a message while a transaction has named it, or has locked its result."""

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import pymysql
import pytest

from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Control, Unavailable
from tests.engines.mysql.local import LocalMariaDB, LocalMySQL, find_mysql, find_programs
from tests.engines.mysql.providers import LOCAL_MYSQL_SETTINGS, LOCAL_SETTINGS
from tests.engines.mysql.server import MysqlServer
from tests.helpers.calls import call, call_one, dequeue_one, enqueue, refused, transaction
from tests.helpers.cancelling import cancel_all
from tests.helpers.queues import Connect
from tests.stored_times import tick

LOCK_WAIT_TIMEOUT = 1205
OPTION = {"innodb-rollback-on-timeout": "1"}


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


def new_dead(connection: Connection, queue: str) -> int:
    """Return the id of a new dead message."""
    [dead] = enqueue(connection, queue, "dead", priority=0, message_type="dead")
    claim = dequeue_one(connection, queue).claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    return dead


@pytest.mark.promise("P22", "P26")
@pytest.mark.parametrize("routine", ["cancel", "cancel_many"])
@pytest.mark.parametrize("group_key", [None, "group"])
def test_cancel_with_an_archive_does_not_wait_for_a_producer(
    connection: Connection, connect: Connect, queue: str, routine: str, group_key: str | None
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    producer, other = connect(), connect()
    enqueue(connection, queue, "has the slot", group_key="group", priority=9)
    [named] = enqueue(connection, queue, "x", message_type="named", group_key=group_key)
    other.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(producer):
        [waits] = enqueue(producer, queue, "after", predecessor_ids=[named], priority=0)
        if routine == "cancel":
            row = call_one(other, routine, queue_name=queue, message_ids=[named])
            assert row.outcome == "cancelled"
        else:
            cancel_many = partial(call_one, other, routine, queue_name=queue)
            assert cancel_all(cancel_many, message_type="named") == 1
    tick(other, queue)
    call(other, "maintain", queue_name=queue)
    assert dequeue_one(other, queue).message_id == waits


REMOVE: dict[str, dict[str, Any]] = {
    "cancel": {},
    "cancel_many": {"message_type": "dead"},
    "purge_queue": {"include_dead": True},
    "discard_dead": {},
}


def lock_result(holder: Connection, dead: int) -> None:
    """Lock the result of a dead message, as an open maintain that purges it does."""
    query = "select state from rowq.result where message_id = %s for update"
    assert holder.execute(query, [dead]).fetchall()


@pytest.mark.promise("P15", "P26")
@pytest.mark.parametrize("routine", REMOVE)
def test_wait_for_a_locked_result_ends_in_queue_busy(
    connection: Connection, connect: Connect, queue: str, routine: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, result_seconds=600)
    holder, other = connect(), connect()
    dead = new_dead(connection, queue)
    other.execute("set session innodb_lock_wait_timeout = 1")
    arguments = {"queue_name": queue, **REMOVE[routine]}
    if routine in {"cancel", "discard_dead"}:
        arguments["message_ids"] = [dead]
    with transaction(holder):
        lock_result(holder, dead)
        assert "retry" in refused(other, "RQ705", routine, **arguments)
        with transaction(other):
            enqueue(other, queue, "the caller's own", delay_seconds=600)
            assert "retry" in refused(other, "RQ705", routine, **arguments)
    assert call_one(connection, "queue_stats", queue_name=queue).delayed == 1
    call(other, routine, **arguments)
    assert call_one(connection, "queue_stats", queue_name=queue).dead == 0


@pytest.fixture
def rolling_back(server: MysqlServer) -> Iterator[Connect]:
    """Return a function that connects to a server with innodb_rollback_on_timeout."""
    series = server.name.removeprefix(server.product)
    try:
        local = (
            LocalMariaDB(find_programs(series), {**LOCAL_SETTINGS, **OPTION})
            if server.is_mariadb
            else LocalMySQL(find_mysql(series), {**LOCAL_MYSQL_SETTINGS, **OPTION})
        )
    except Unavailable as reason:
        pytest.skip(f"no server with this option: {reason}; to run it: local programs")
    control = Control(stop=local.stop, log=local.log)
    own = MysqlServer(local.url, "with an option, local programs", control)
    with contextlib.closing(own), contextlib.ExitStack() as opened:
        url = own.fresh_database()
        migrate(url)
        yield lambda: opened.enter_context(own.connect(url))


@pytest.mark.promise("P15")
def test_caller_rolled_back_by_a_timeout_gets_the_servers_error(
    rolling_back: Connect, queue_name: str
) -> None:
    admin, producer, other = rolling_back(), rolling_back(), rolling_back()
    call(admin, "create_queue", queue_name=queue_name, result_seconds=600)
    dead = new_dead(admin, queue_name)
    other.execute("set session innodb_lock_wait_timeout = 1")
    with transaction(producer):
        lock_result(producer, dead)
        for routine, more in REMOVE.items():
            arguments = {"queue_name": queue_name, **more}
            if routine in {"cancel", "discard_dead"}:
                arguments["message_ids"] = [dead]
            assert "retry" in refused(other, "RQ705", routine, **arguments)
            other.execute("begin")
            enqueue(other, queue_name, "the caller's own")
            with pytest.raises(pymysql.err.OperationalError, match=str(LOCK_WAIT_TIMEOUT)):
                call(other, routine, **arguments)
            other.execute("commit")
            assert call_one(admin, "queue_stats", queue_name=queue_name).ready == 0
