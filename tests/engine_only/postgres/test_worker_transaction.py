"""Handlers that interfere with a transactional worker's transaction on PostgreSQL."""

import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

import rowq
from tests.engine_only.meddling import MeddledQueue, each_end, swallowing
from tests.engines.base import Connection, Server, wait_until, wait_until_blocked
from tests.helpers.queues import Connect
from tests.helpers.worker_queue import MakeQueue


@pytest.fixture
def meddled(connection: Connection, make_queue: MakeQueue) -> MeddledQueue:
    return MeddledQueue(connection, make_queue)


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
@swallowing
@pytest.mark.parametrize("way", FORBIDDEN)
def test_handler_cannot_end_the_workers_transaction(
    meddled: MeddledQueue, way: str, swallows: bool
) -> None:
    meddled.check_that_it_is_refused(FORBIDDEN[way], swallows=swallows)


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
def test_handler_can_run_other_transaction_statements(meddled: MeddledQueue, way: str) -> None:
    def handle(own: Connection, message: rowq.Message) -> None:
        ALLOWED[way](own)
        meddled.record(own, message)

    meddled.check_that_it_is_taken(handle)


def test_handler_can_nest_driver_transactions(meddled: MeddledQueue) -> None:
    def handle(own: Connection, message: rowq.Message) -> None:
        with own.transaction():
            meddled.record(own, message)
        with contextlib.suppress(ZeroDivisionError), own.transaction():
            meddled.record(own, message)
            raise ZeroDivisionError

    meddled.check_that_it_is_taken(handle)


@pytest.mark.promise("P02", "P04")
@each_end
@pytest.mark.parametrize("way", ["commit", "commit; begin", "rollback", "rollback; begin"])
def test_transaction_ended_by_a_raw_cursor_loses_no_message(
    meddled: MeddledQueue, way: str, goes_on: bool
) -> None:
    """A driver cursor that the connection did not create is not guarded."""
    done = meddled.meddle(
        lambda own: psycopg.ClientCursor(own).execute(way.encode()),
        goes_on=goes_on,
        records_again=False,
    )
    counts = (done.stats.processed, done.stats.failed)
    if way.startswith("commit"):
        assert done.calls == [0, 1, 2, 3, 4]
        # What the handler wrote in its own transaction is rolled back.
        is_kept = goes_on and way == "commit"
        assert counts == ((5, 0) if is_kept else (4, 1))
        assert done.records == 1
    else:
        assert counts == (4, 1)
        assert done.records == 0


LEVELS = ["serializable", "repeatable read"]


@pytest.mark.promise("P04", "P08")
@pytest.mark.parametrize("level", LEVELS)
def test_worker_uses_read_committed_under_any_default(
    database_url: str, meddled: MeddledQueue, level: str
) -> None:
    separator = "&" if "?" in database_url else "?"
    option = quote(f"-c default_transaction_isolation={level.replace(' ', chr(92) + ' ')}")
    url = f"{database_url}{separator}options={option}"
    levels: set[Any] = set()

    def is_extended(message: rowq.Message) -> bool:
        details = meddled.queue.get_message(message.message_id)
        return details is not None and details.lease_until != message.lease_until

    def handler(message: rowq.Message, own: Connection) -> None:
        levels.update(own.execute("show transaction_isolation").fetchone() or ())
        levels.add(own.execute("show default_transaction_isolation").fetchone()[0])
        meddled.record(own, message)
        if message.data == 0:
            wait_until(lambda: is_extended(message), "the heartbeat extends the lease")

    there = dataclasses.replace(meddled.queue, url=url)
    stats = there.drain(handler, transactional=True, lease_seconds=2)
    assert levels == {"read committed", level}
    assert (stats.processed, stats.retried, stats.failed) == (5, 0, 0)
    assert meddled.recorded() == Counter(range(5))


@pytest.mark.promise("P02", "P04")
@pytest.mark.parametrize("count", [1, 5])
def test_deadlock_victim_is_retried_without_an_attempt(
    server: Server, meddled: MeddledQueue, connect: Connect, count: int
) -> None:
    meddled.queue.purge_queue()
    meddled.queue.fill(count)
    table = f"deadlock_{meddled.queue.name[-8:]}"
    meddled.connection.execute(f"create table {table} as select 1 as id union select 2")
    other = connect(autocommit=False)
    other.execute("set deadlock_timeout = '1h'")
    others: list[threading.Thread] = []

    def handler(message: rowq.Message, own: Connection) -> None:
        meddled.record(own, message)
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

    stats = meddled.drain(handler)
    assert others
    assert (stats.processed, stats.retried, stats.failed) == (count, 0, 0)
    assert meddled.recorded() == Counter(range(count))
    meddled.connection.execute(f"drop table {table}")
