"""Handlers that interfere with a transactional worker's transaction on MariaDB and MySQL."""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rowq
from tests.engine_only.meddling import MeddledQueue, each_end, swallowing
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.queues import Connect
from tests.helpers.worker_queue import MakeQueue


@pytest.fixture
def meddled(connection: Connection, make_queue: MakeQueue) -> Iterator[MeddledQueue]:
    connection.execute("create table if not exists scratch (n int)")
    yield MeddledQueue(connection, make_queue)
    for name in PROCEDURES:
        connection.execute(f"drop procedure if exists {name}")


def with_block(own: Connection) -> None:
    with own:
        pass


def does(statement: str) -> Callable[[Connection], Any]:
    return lambda own: own.cursor().execute(statement)


FORBIDDEN: dict[str, Callable[[Connection], Any]] = {
    "commit by the driver": lambda own: own.commit(),
    "rollback by the driver": lambda own: own.rollback(),
    "begin by the driver": lambda own: own.begin(),
    "autocommit by the driver": lambda own: own.autocommit(False),
    "close": lambda own: own.close(),
    "with": with_block,
    **{
        statement: does(statement)
        for statement in (
            "commit",
            " /* a */ # b\n-- c\nCOMMIT work",
            "/*!100000 commit */",
            "rollback",
            "begin",
            "start transaction",
            "set autocommit = 0",
            "set @a = 1, autocommit = 1",
            "set @@session.autocommit = 1",
            "create table if not exists another (n int)",
            "create or replace view seen as select 1",
            "alter table scratch comment 'x'",
            "drop table if exists another",
            "truncate scratch",
            "truncate table scratch",
            "rename table scratch to another",
            "lock tables scratch read",
            "analyze table scratch",
            "grant select on scratch to nobody",
            "flush tables",
        )
    },
}


@pytest.mark.promise("P02", "P04")
@swallowing
@pytest.mark.parametrize("way", FORBIDDEN)
def test_handler_cannot_end_the_workers_transaction(
    meddled: MeddledQueue, way: str, swallows: bool
) -> None:
    meddled.check_that_it_is_refused(FORBIDDEN[way], swallows=swallows)


MARIADB_ONLY = {"begin not atomic declare n int; end", "analyze select 1"}


@pytest.mark.parametrize(
    "statement",
    [
        "savepoint a",
        "create temporary table if not exists passing (n int)",
        "select 'commit' as `begin` -- ; commit",
        "set @a = 'autocommit = 1'",
        "do release_lock('commit')",
        "begin not atomic declare n int; end",
        "analyze select 1",
    ],
)
def test_handler_can_run_other_transaction_statements(
    connection: Connection, meddled: MeddledQueue, statement: str
) -> None:
    if statement in MARIADB_ONLY and "mariadb" not in connection.server_version.lower():
        pytest.skip("MySQL has no such statement; to run it: --engine mariadb")

    def handle(own: Connection, message: rowq.Message) -> None:
        meddled.record(own, message)
        own.cursor().execute(statement)

    meddled.check_that_it_is_taken(handle)


PROCEDURES = {
    "commits": "commit;",
    "begins": "start transaction; insert into scratch values (1); commit;",
    "leaves_open": "start transaction; insert into scratch values (1);",
    "makes_a_table": "drop table if exists another; create table another (n int);",
    "begins_and_fails": (
        "declare exit handler for sqlexception begin rollback; resignal; end;"
        "start transaction; insert into scratch values (1); signal sqlstate '45000';"
    ),
    "begins_and_hides_its_failure": (
        "declare exit handler for sqlexception begin rollback; end;"
        "start transaction; insert into scratch values (1); signal sqlstate '45000';"
    ),
    "rolls_back": "rollback;",
    "rolls_back_and_fails": (
        "declare exit handler for sqlexception begin rollback; resignal; end;"
        "insert into scratch values (1); signal sqlstate '45000';"
    ),
}
"""Bodies of procedures, by name: a call does not show what it will do."""
ROLLS_BACK = {"rolls_back", "rolls_back_and_fails"}


@pytest.mark.promise("P02", "P04")
@each_end
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_transaction_ended_by_a_procedure_loses_no_message(
    meddled: MeddledQueue, procedure: str, goes_on: bool
) -> None:
    meddled.connection.execute(f"create procedure {procedure}() begin {PROCEDURES[procedure]} end")
    done = meddled.meddle(does(f"call {procedure}()"), goes_on=goes_on, records_again=True)
    counts = (done.stats.processed, done.stats.failed)
    if procedure in ROLLS_BACK:
        assert counts == (4, 1)
        assert done.records == 0
    else:
        assert done.calls == [0, 1, 2, 3, 4]
        assert counts == ((5, 0) if goes_on else (4, 1))
        assert done.records == 1


@pytest.mark.promise("P02", "P04")
@swallowing
@pytest.mark.parametrize("count", [1, 5])
def test_deadlock_victim_is_retried_without_an_attempt(
    server: Server, meddled: MeddledQueue, connect: Connect, count: int, swallows: bool
) -> None:
    """The server rolls back the whole transaction; later writes would not be part of it."""
    meddled.queue.purge_queue()
    meddled.queue.fill(count)
    table = f"deadlock_{meddled.queue.name[-8:]}"
    meddled.connection.execute(f"create table {table} (id int primary key, n int)")
    rows = ", ".join(f"({number}, 0)" for number in range(1, 51))
    meddled.connection.execute(f"insert into {table} values {rows}")
    other = connect(autocommit=False)
    others: list[threading.Thread] = []

    def deadlock(own: Connection) -> None:
        # Change many rows: the server rolls back the transaction that has changed fewer.
        other.execute(f"update {table} set n = 1 where id > 1")
        own.cursor().execute(f"update {table} set n = 2 where id = 1")
        statement = f"delete from {table} where id = 1"
        others.append(threading.Thread(target=other.execute, args=[statement]))
        others[0].start()
        wait_until_blocked(server, server.session_id(other), server.session_id(own))
        try:
            own.cursor().execute(f"update {table} set n = 2 where id = 2")
        finally:
            others[0].join()
            other.rollback()

    def handler(message: rowq.Message, own: Connection) -> None:
        if message.data == count // 2 and not others:
            with contextlib.suppress(*[Exception] * swallows):
                deadlock(own)
        with contextlib.suppress(*[rowq.ForbiddenInHandler] * swallows):
            meddled.record(own, message)

    stats = meddled.drain(handler)
    assert others
    assert (stats.processed, stats.retried, stats.failed) == (count, 0, 0)
    assert meddled.recorded() == Counter(range(count))
    meddled.connection.execute(f"drop table {table}")


def test_handler_ending_the_transaction_is_retried(
    connection: Connection, make_queue: MakeQueue
) -> None:
    queue = make_queue({"transactional": True}, max_attempts=2, backoff_base_seconds=0)
    queue.fill(4)
    table = f"effect_{queue.name[-8:]}"
    connection.execute(f"create table {table} (number int)")

    def handler(message: rowq.Message, own: Any) -> None:
        own.cursor().execute(f"insert into {table} values (%s)", (message.data,))
        if message.data == 2:
            own.rollback()

    stats = queue.drain(handler)
    assert (stats.processed, stats.retried, stats.failed) == (3, 1, 1)
    rows = connection.execute(f"select number from {table} order by number").fetchall()
    assert [number for (number,) in rows] == [0, 1, 3]
    connection.execute(f"drop table {table}")
