"""Things that handlers should not do: each is a function of a message and a connection.

The connection is the worker's in a transactional worker, else one of the handler's own.
"""

import asyncio
import multiprocessing
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pymysql

import rowq
from rowq.engines import engine_for_connection
from tests.chaos.unruly_program import LEASE_SECONDS
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

QUEUE = "orders"

Deed = Callable[[rowq.Message, Connection], Any]


class Left(BaseException):
    """An error that no `except Exception` catches."""


def swallows_an_error(_message: rowq.Message, own: Connection) -> None:
    with suppress(dialect_of(own).database_error):
        dialect_of(own).execute(own, "select nonsense")


def commits(_message: rowq.Message, own: Connection) -> None:
    own.commit()


def commits_in_words(_message: rowq.Message, own: Connection) -> None:
    dialect_of(own).execute(own, "commit")


def commits_and_swallows(_message: rowq.Message, own: Connection) -> None:
    with suppress(rowq.ForbiddenInHandler):
        dialect_of(own).execute(own, "rollback")
    with suppress(rowq.ForbiddenInHandler):
        own.close()


def makes_a_table(message: rowq.Message, own: Connection) -> None:
    dialect_of(own).make_table(own, f"made_{message.message_id}", "n int")


def raises(_message: rowq.Message, _own: Connection) -> None:
    raise random.choice([ValueError, Left, SystemExit, GeneratorExit, asyncio.CancelledError])


def interrupts(_message: rowq.Message, _own: Connection) -> None:
    raise KeyboardInterrupt


def returns_nonsense(_message: rowq.Message, _own: Connection) -> Any:
    nonsense: list[Any] = [rowq.Fail, ValueError("x"), rowq.Retry(0, "\0"), iter(()), {"a": 1}]
    return random.choice(nonsense)


async def _awaits(message: rowq.Message) -> Any:
    await asyncio.sleep(0.01)
    return rowq.Retry(0) if message.message_id % 2 else None


def awaits(message: rowq.Message, _own: Connection) -> Any:
    return _awaits(message)


def oversleeps(_message: rowq.Message, _own: Connection) -> None:
    time.sleep(1.5 * LEASE_SECONDS)


def extends_its_lease(message: rowq.Message, own: Connection) -> None:
    """Lock the claim while the transaction is open, by SQL that is not refused."""
    calls = {
        "postgres": "select * from rowq.extend_lease(%s, %s)",
        "mysql": "call rowq.extend_lease(%s, %s, null, null)",
    }
    statement = calls[engine_for_connection(own).name]
    dialect_of(own).execute(own, statement, [QUEUE, message.claim_id])
    time.sleep(LEASE_SECONDS)


def asks_for_more_time(message: rowq.Message, own: Connection) -> None:
    rowq.Queue(own).extend_lease(QUEUE, message.claim_id)


def exits(_message: rowq.Message, _own: Connection) -> None:
    os._exit(1)


def forks(_message: rowq.Message, _own: Connection) -> None:
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(30,))
    process.start()
    process.terminate()
    process.join()


def kills_its_session(_message: rowq.Message, own: Connection) -> None:
    is_postgres = engine_for_connection(own).name == "postgres"
    end = "select pg_terminate_backend(pg_backend_pid())" if is_postgres else None
    dialect_of(own).execute(own, end or f"kill {own.thread_id()}")


def holds_the_interpreter(_message: rowq.Message, _own: Connection) -> None:
    pow(7, 300_000)


def quarrels(_message: rowq.Message, own: Connection) -> None:
    """Lock two rows that other handlers lock in the other order."""
    for number in random.sample([1, 2], 2):
        dialect_of(own).execute(own, f"update quarrel set n = n + 1 where id = {number}")
        time.sleep(0.05)


def leaves_a_result(_message: rowq.Message, own: Connection) -> None:
    if engine_for_connection(own).name == "postgres":
        next(iter(own.cursor().stream("select generate_series(1, 100000)")))
    else:
        own.cursor(pymysql.cursors.SSCursor).execute("select seq from seq_1_to_100000")


def changes_the_isolation(_message: rowq.Message, own: Connection) -> None:
    is_postgres = engine_for_connection(own).name == "postgres"
    characteristics = "characteristics as " if is_postgres else ""
    statement = f"set session {characteristics}transaction isolation level serializable"
    dialect_of(own).execute(own, statement)


def ends_it_unseen(message: rowq.Message, own: Connection) -> None:
    """End the transaction in SQL, where it cannot be refused."""
    way = ("commit", "rollback")[message.message_id % 2]
    if engine_for_connection(own).name == "postgres":
        psycopg.ClientCursor(own).execute(way.encode())
        if way == "rollback":
            raise ValueError("what it has undone is not done")
    else:
        dialect_of(own).execute(own, f"call {way}s_unseen()")


def begins_another(_message: rowq.Message, own: Connection) -> None:
    if engine_for_connection(own).name == "mysql":
        dialect_of(own).execute(own, "call begins_unseen()")


DEEDS: dict[str, Deed] = {
    deed.__name__: deed
    for deed in (
        *(swallows_an_error, commits, commits_in_words, commits_and_swallows, makes_a_table),
        *(raises, interrupts, returns_nonsense, awaits, oversleeps, extends_its_lease),
        *(asks_for_more_time, exits, forks, kills_its_session, holds_the_interpreter, quarrels),
        *(leaves_a_result, changes_the_isolation),
    )
}
"""Deeds that may happen at any time."""

HURTING = frozenset({"exits"})
"""Deeds that also cost other messages an attempt."""

UNSEEN: dict[str, Deed] = {
    deed.__name__: deed for deed in (ends_it_unseen, begins_another, raises, swallows_an_error)
}
"""Deeds that commit other messages' work early: outcomes are reported at once."""
