"""Handlers meddle with a transactional worker's transaction on MariaDB and MySQL."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rowq
from tests.engines.base import Connection, Server, wait_until_blocked


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> Iterator[rowq.Queue]:
    connection.execute("create table if not exists noted (queue_name varchar(200), number int)")
    connection.execute("create table if not exists scratch (n int)")
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0, max_attempts=1)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(5)])
    yield queue
    for name in PROCEDURES:
        connection.execute(f"drop procedure if exists {name}")


def note(own: Connection, queue_name: str, message: rowq.Message) -> None:
    own.cursor().execute("insert into noted values (%s, %s)", [queue_name, message.data])


def noted(connection: Connection, queue_name: str) -> Counter[int]:
    query = "select number from noted where queue_name = %s"
    return Counter(number for (number,) in connection.execute(query, [queue_name]).fetchall())


def drain(url: str, queue_name: str, handler: Callable[..., Any], **options: Any) -> Any:
    worker = rowq.Worker(url, queue_name, handler, transactional=True, drain=True, **options)
    return worker.run()


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
@pytest.mark.parametrize("swallows", [False, True], ids=["raises", "swallows"])
@pytest.mark.parametrize("way", FORBIDDEN)
def test_a_handlers_connection_refuses_to_end_the_workers_transaction(
    database_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
    way: str,
    swallows: bool,
) -> None:
    calls: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        calls.append(message.data)
        note(own, queue_name, message)
        if message.data == 2:
            with contextlib.suppress(*[rowq.ForbiddenInHandler] * swallows):
                FORBIDDEN[way](own)

    stats = drain(database_url, queue_name, handler)
    assert calls == [0, 1, 2, 3, 4]
    assert stats.processed + stats.failed == 5
    assert stats.failed == (not swallows)
    assert noted(connection, queue_name) == Counter({0, 1, 2, 3, 4} - (set() if swallows else {2}))
    if not swallows:
        (dead,) = queue.list_dead(queue_name)
        assert "ForbiddenInHandler" in str(dead.last_error)


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
def test_a_handlers_connection_takes_all_that_does_not_end_it(
    database_url: str, connection: Connection, queue: rowq.Queue, queue_name: str, statement: str
) -> None:
    def handler(message: rowq.Message, own: Connection) -> None:
        note(own, queue_name, message)
        own.cursor().execute(statement)

    assert drain(database_url, queue_name, handler).processed == 5
    assert noted(connection, queue_name) == Counter(range(5))
    assert queue.list_dead(queue_name) == []


PROCEDURES = {
    "commits": "commit;",
    "begins": "start transaction; insert into scratch values (1); commit;",
    "leaves_open": "start transaction; insert into scratch values (1);",
    "makes_a_table": "create or replace table another (n int);",
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
"""Bodies of procedures, by name. Nobody can see what a call does before it is done."""
ROLLS_BACK = {"rolls_back", "rolls_back_and_fails"}


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("goes_on", [False, True], ids=["raises", "goes on"])
@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_procedure_that_ends_the_transaction_doubles_and_loses_no_others_effect(
    database_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
    procedure: str,
    goes_on: bool,
) -> None:
    connection.execute(f"create procedure {procedure}() begin {PROCEDURES[procedure]} end")
    calls: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        calls.append(message.data)
        note(own, queue_name, message)
        if message.data == 2:
            with contextlib.suppress(*[Exception] * goes_on):
                own.cursor().execute(f"call {procedure}()")
            with contextlib.suppress(Exception):
                note(own, queue_name, message)
            if not goes_on:
                raise ValueError("then it fails")

    stats = drain(database_url, queue_name, handler)
    found = noted(connection, queue_name)
    assert {number: found[number] for number in (0, 1, 3, 4)} == dict.fromkeys((0, 1, 3, 4), 1)
    if procedure in ROLLS_BACK:
        assert (stats.processed, stats.failed) == (4, 1)
        assert found[2] == 0
    else:
        assert calls == [0, 1, 2, 3, 4]
        assert (stats.processed, stats.failed) == ((5, 0) if goes_on else (4, 1))
        assert found[2] == 1
    for dead in queue.list_dead(queue_name):
        assert "ended the worker's transaction" in str(dead.last_error)


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("swallows", [False, True], ids=["raises", "swallows"])
@pytest.mark.parametrize("count", [1, 5])
def test_a_message_that_loses_a_deadlock_is_tried_again_at_no_cost(
    server: Server,
    database_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
    connect: Callable[..., Connection],
    count: int,
    swallows: bool,
) -> None:
    """The server ends the whole transaction, and what a handler did then would be no part of it."""
    queue.purge_queue(queue_name)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(count)])
    table = f"deadlock_{queue_name[-8:]}"
    connection.execute(f"create table {table} (id int primary key, n int)")
    rows = ", ".join(f"({number}, 0)" for number in range(1, 51))
    connection.execute(f"insert into {table} values {rows}")
    other = connect(autocommit=False)
    others: list[threading.Thread] = []

    def deadlock(own: Connection) -> None:
        # Change many rows here: the server ends the transaction that has changed fewer.
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
            note(own, queue_name, message)

    stats = drain(database_url, queue_name, handler)
    assert others
    assert (stats.processed, stats.retried, stats.failed) == (count, 0, 0)
    assert noted(connection, queue_name) == Counter(range(count))
    connection.execute(f"drop table {table}")
