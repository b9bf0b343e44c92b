"""Handlers meddle with a transactional worker's transaction on PostgreSQL."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

import rowq
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> rowq.Queue:
    connection.execute("create table if not exists noted (queue_name text, number integer)")
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name, lease_seconds=60, backoff_base_seconds=0, max_attempts=1)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(5)])
    return queue


def note(own: Connection, queue_name: str, message: rowq.Message) -> None:
    own.execute("insert into noted values (%s, %s)", [queue_name, message.data])


def noted(connection: Connection, queue_name: str) -> Counter[int]:
    query = "select number from noted where queue_name = %s"
    return Counter(number for (number,) in connection.execute(query, [queue_name]))


def drain(url: str, queue_name: str, handler: Callable[..., Any], **options: Any) -> Any:
    worker = rowq.Worker(url, queue_name, handler, transactional=True, drain=True, **options)
    return worker.run()


def with_block(own: Connection) -> None:
    with own:
        pass


def copies(own: Connection) -> None:
    with own.cursor().copy("commit"):
        pass


FORBIDDEN: dict[str, Callable[[Connection], Any]] = {
    "commit": lambda own: own.execute("commit"),
    "commit with words": lambda own: own.execute("  /* a /* b */ */ -- c\n COMMIT WORK; "),
    "commit in bytes": lambda own: own.execute(b"commit"),
    "composed commit": lambda own: own.execute(sql.SQL("commit")),
    "commit by the driver": lambda own: own.commit(),
    "commit by a cursor": lambda own: own.cursor().execute("commit"),
    "commit by a named cursor": lambda own: own.cursor("c").execute("commit"),
    "commit in the middle": lambda own: own.execute("select ';'; commit; begin"),
    "commit after a dollar quote": lambda own: own.execute("do $a$ begin end $a$; commit"),
    "commit for each": lambda own: own.cursor().executemany("commit", [(), ()]),
    "commit by copy": copies,
    "end": lambda own: own.execute("end"),
    "rollback": lambda own: own.execute("rollback"),
    "rollback by the driver": lambda own: own.rollback(),
    "abort": lambda own: own.execute("abort"),
    "begin": lambda own: own.execute("begin"),
    "start transaction": lambda own: own.execute("start transaction"),
    "prepare transaction": lambda own: own.execute("prepare transaction 'x'"),
    "close": lambda own: own.close(),
    "with": with_block,
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


ALLOWED: dict[str, Callable[[Connection], Any]] = {
    "a savepoint": lambda own: own.execute("savepoint a; release savepoint a"),
    "back to a savepoint": lambda own: own.execute("savepoint a; rollback work to savepoint a"),
    "words of it": lambda own: own.execute("select 'commit; rollback' as begin -- ; commit"),
    "words in a dollar quote": lambda own: own.execute("select $b$; commit; $b$"),
    "words in a name": lambda own: own.execute('select 1 as "; commit"'),
    "words in an escape": lambda own: own.execute(r"select e'\'; commit; '"),
    "prepare": lambda own: own.execute("prepare x as select 1; deallocate x"),
}


@pytest.mark.parametrize("way", ALLOWED)
def test_a_handlers_connection_takes_all_that_does_not_end_it(
    database_url: str, connection: Connection, queue: rowq.Queue, queue_name: str, way: str
) -> None:
    def handler(message: rowq.Message, own: Connection) -> None:
        ALLOWED[way](own)
        note(own, queue_name, message)

    assert drain(database_url, queue_name, handler).processed == 5
    assert noted(connection, queue_name) == Counter(range(5))
    assert queue.list_dead(queue_name) == []


def test_a_handler_may_nest_transactions_of_the_drivers(
    database_url: str, connection: Connection, queue: rowq.Queue, queue_name: str
) -> None:
    def handler(message: rowq.Message, own: Connection) -> None:
        with own.transaction():
            note(own, queue_name, message)
        with contextlib.suppress(ZeroDivisionError), own.transaction():
            note(own, queue_name, message)
            raise ZeroDivisionError

    assert drain(database_url, queue_name, handler).processed == 5
    assert noted(connection, queue_name) == Counter(range(5))
    assert queue.list_dead(queue_name) == []


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("goes_on", [False, True], ids=["raises", "goes on"])
@pytest.mark.parametrize("way", ["commit", "commit; begin", "rollback", "rollback; begin"])
def test_what_ends_the_transaction_all_the_same_doubles_and_loses_no_others_effect(
    database_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
    way: str,
    goes_on: bool,
) -> None:
    """A cursor of the driver's that was not made by the connection is not refused anything."""
    calls: list[int] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        calls.append(message.data)
        note(own, queue_name, message)
        if message.data == 2:
            with contextlib.suppress(*[Exception] * goes_on):
                psycopg.ClientCursor(own).execute(way.encode())
            if not goes_on:
                raise ValueError("then it fails")

    stats = drain(database_url, queue_name, handler)
    found = noted(connection, queue_name)
    assert {number: found[number] for number in (0, 1, 3, 4)} == dict.fromkeys((0, 1, 3, 4), 1)
    if way.startswith("commit"):
        assert calls == [0, 1, 2, 3, 4]
        # Whatever the handler would have written in a transaction of its own is rolled back.
        is_kept = goes_on and way == "commit"
        assert (stats.processed, stats.failed) == ((5, 0) if is_kept else (4, 1))
        assert found[2] == 1
    else:
        assert (stats.processed, stats.failed) == (4, 1)
        assert found[2] == 0
    for dead in queue.list_dead(queue_name):
        assert "ended the worker's transaction" in str(dead.last_error)


LEVELS = ["serializable", "repeatable read"]


@pytest.mark.promise("P04", "P08")
@pytest.mark.parametrize("level", LEVELS)
def test_a_worker_reads_what_is_committed_whatever_the_default_is(
    database_url: str, connection: Connection, queue: rowq.Queue, queue_name: str, level: str
) -> None:
    separator = "&" if "?" in database_url else "?"
    option = quote(f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}")
    url = f"{database_url}{separator}options={option}"
    levels: set[Any] = set()

    def is_extended(message: rowq.Message) -> bool:
        details = queue.get_message(queue_name, message.message_id)
        return details is not None and details.lease_until != message.lease_until

    def handler(message: rowq.Message, own: Connection) -> None:
        levels.update(own.execute("show transaction_isolation").fetchone() or ())
        levels.add(own.execute("show default_transaction_isolation").fetchone()[0])
        note(own, queue_name, message)
        if message.data == 0:
            wait_until(lambda: is_extended(message), "the heartbeat extends the lease")

    stats = drain(url, queue_name, handler, lease_seconds=2)
    assert levels == {"read committed", level}
    assert (stats.processed, stats.retried, stats.failed) == (5, 0, 0)
    assert noted(connection, queue_name) == Counter(range(5))


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("count", [1, 5])
def test_a_message_that_loses_a_deadlock_is_tried_again_at_no_cost(
    server: Server,
    database_url: str,
    connection: Connection,
    queue: rowq.Queue,
    queue_name: str,
    connect: Callable[..., Connection],
    count: int,
) -> None:
    queue.purge_queue(queue_name)
    queue.enqueue_batch(queue_name, [rowq.NewMessage(data=number) for number in range(count)])
    table = f"deadlock_{queue_name[-8:]}"
    connection.execute(f"create table {table} as select 1 as id union select 2")
    other = connect(autocommit=False)
    other.execute("set deadlock_timeout = '1h'")
    others: list[threading.Thread] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        note(own, queue_name, message)
        if message.data == count // 2 and not others:
            own.execute(f"update {table} set id = id where id = 1")
            other.execute(f"update {table} set id = id where id = 2")
            statement = f"update {table} set id = id where id = 1"
            others.append(threading.Thread(target=other.execute, args=[statement]))
            others[0].start()
            wait_until_blocked(server, server.session_id(other), server.session_id(own))
            try:
                own.execute(f"update {table} set id = id where id = 2")
            finally:
                others[0].join()
                other.rollback()

    stats = drain(database_url, queue_name, handler)
    assert others
    assert (stats.processed, stats.retried, stats.failed) == (count, 0, 0)
    assert noted(connection, queue_name) == Counter(range(count))
    connection.execute(f"drop table {table}")
