"""Warnings for connections that are closed before their messages are committed."""

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy
from sqlalchemy.orm import Session

import rowq
from rowq.engines import engine_for_url
from tests.engines.base import Connection, Server
from tests.helpers.queues import Connect

FORGOTTEN = "a message for queue {} is lost: its connection was closed without commit"


@contextmanager
def no_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", rowq.UncommittedWarning)
        yield


def warning_of(queue_name: str) -> Any:
    return pytest.warns(rowq.UncommittedWarning, match=FORGOTTEN.format(queue_name))


@pytest.fixture
def made(connection: Connection, queue_name: str) -> str:
    rowq.Queue(connection).create_queue(queue_name)
    return queue_name


@pytest.fixture
def own(connect: Connect, database_url: str) -> Connection:
    """Return a driver's connection without autocommit."""
    if engine_for_url(database_url).name == "sqlserver":
        pytest.skip("pyodbc shows no close; to run it: --engine postgres18")
    return connect(autocommit=False)


@pytest.mark.parametrize(
    "call",
    [
        lambda queue, name: queue.enqueue(name, 1),
        lambda queue, name: queue.enqueue_batch(name, [1]),
        lambda queue, name: queue.publish(name, 1),
        lambda queue, name: queue.publish_batch([rowq.NewMessage(data=1, topic=name)]),
    ],
)
def test_close_without_commit_warns(
    connection: Connection, own: Connection, made: str, call: Callable[[rowq.Queue, str], object]
) -> None:
    rowq.Queue(connection).bind_topic(made, made)
    call(rowq.Queue(own), made)
    with pytest.warns(rowq.UncommittedWarning) as warned:
        own.close()
    assert warned[0].filename == __file__


def test_close_during_an_exception_does_not_warn(own: Connection, made: str) -> None:
    def fails() -> None:
        try:
            rowq.Queue(own).enqueue(made, 1)
            raise ValueError("the caller's")
        finally:
            own.close()

    with no_warning(), pytest.raises(ValueError, match="the caller's"):
        fails()


def test_close_of_a_lost_connection_raises_nothing(
    own: Connection, made: str, server: Server
) -> None:
    rowq.Queue(own).enqueue(made, 1)
    server.kill_session(server.session_id(own))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rowq.UncommittedWarning)
        own.close()


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_close_after_the_transaction_does_not_warn(own: Connection, made: str, end: str) -> None:
    rowq.Queue(own).enqueue(made, 1)
    getattr(own, end)()
    # The current transaction is another one.
    rowq.Queue(own).version()
    with no_warning():
        own.close()


def test_other_calls_do_not_warn(own: Connection, made: str) -> None:
    rowq.Queue(own).dequeue_fast(made)
    with no_warning():
        own.close()


def test_each_transaction_is_watched(own: Connection, made: str) -> None:
    queue = rowq.Queue(own)
    for _ in range(3):
        queue.enqueue(made, 1)
        own.commit()
    queue.enqueue(made, 1)
    with warning_of(made):
        own.close()


def test_autocommit_does_not_warn(connect: Connect, made: str) -> None:
    own = connect()
    rowq.Queue(own).enqueue(made, 1)
    with no_warning():
        own.close()


def on_psycopg(url: str, use: Callable[[psycopg.Connection], object]) -> None:
    use(psycopg.connect(url))


@pytest.fixture
def postgres_url(database_url: str) -> str:
    if engine_for_url(database_url).name != "postgres":
        pytest.skip("this is for PostgreSQL; to run it: --engine postgres18")
    return database_url


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_collected_connection_warns(postgres_url: str, made: str) -> None:
    with warning_of(made):
        on_psycopg(postgres_url, lambda own: rowq.Queue(own).enqueue(made, 1))
        gc.collect()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_collected_committed_connection_does_not_warn(postgres_url: str, made: str) -> None:
    def use(own: psycopg.Connection) -> None:
        rowq.Queue(own).enqueue(made, 1)
        own.commit()
        own.execute("select 1")

    with no_warning():
        on_psycopg(postgres_url, use)
        gc.collect()


@pytest.mark.parametrize("commits", ["block", "statement"])
def test_commit_by_statement_does_not_warn(postgres_url: str, made: str, commits: str) -> None:
    with no_warning(), psycopg.connect(postgres_url) as own:
        if commits == "block":
            with own.transaction():
                rowq.Queue(own).enqueue(made, 1)
        else:
            rowq.Queue(own).enqueue(made, 1)
            own.execute("commit")
        own.execute("select 1")
        own.close()
    with no_warning(), psycopg.connect(postgres_url) as own:
        rowq.Queue(own).enqueue(made, 1)


PROGRAM = """
import os, sys
import psycopg, rowq

url, name, commits = sys.argv[1:]
own = psycopg.connect(url)
rowq.Queue(own).enqueue(name, 1)
if os.fork() == 0:
    sys.exit()
os.wait()
if commits == "yes":
    own.commit()
"""


@pytest.mark.parametrize("commits", ["yes", "no"])
def test_exit_warns_except_in_a_forked_process(postgres_url: str, made: str, commits: str) -> None:
    command = [sys.executable, "-c", PROGRAM, postgres_url, made, commits]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stderr.count("UncommittedWarning") == (commits == "no")
    with rowq.connect(postgres_url) as queue:
        assert queue.queue_stats(made)[0].ready == (commits == "yes")


def test_aborted_transaction_does_not_warn(postgres_url: str, made: str) -> None:
    own = psycopg.connect(postgres_url)
    rowq.Queue(own).enqueue(made, 1)
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("select 1/0")
    with no_warning():
        own.close()


def test_async_connection_warns(postgres_url: str, made: str) -> None:
    async def forget() -> None:
        own = await psycopg.AsyncConnection.connect(postgres_url)
        await rowq.AsyncQueue(own).enqueue(made, 1)
        with warning_of(made):
            await own.close()
        assert own.closed

    asyncio.run(forget())


@pytest.fixture
def engine(database_url: str) -> Iterator[Any]:
    scheme, rest = database_url.split("://", 1)
    drivers = {
        "postgresql": "postgresql+psycopg",
        "mariadb": "mysql+pymysql",
        "mysql": "mysql+pymysql",
    }
    if scheme not in drivers:
        pytest.skip("this is for PostgreSQL and MariaDB; to run it: --engine postgres18")
    engine = sqlalchemy.create_engine(f"{drivers[scheme]}://{rest.partition('?ssl_mode')[0]}")
    yield engine
    engine.dispose()


@pytest.mark.parametrize("by_statement", [False, True])
@pytest.mark.parametrize("opens", [lambda engine: engine.connect(), Session])
def test_uncommitted_sqlalchemy_object_warns(
    engine: Any, made: str, by_statement: bool, opens: Callable[[Any], Any]
) -> None:
    from rowq.contrib.sqlalchemy import enqueue

    def send(owner: Any) -> None:
        enqueue(owner, made, 1) if by_statement else rowq.Queue(owner).enqueue(made, 1)

    with warning_of(made), opens(engine) as owner:
        send(owner)
    with no_warning(), opens(engine) as owner, owner.begin():
        send(owner)
    for end in ("commit", "rollback"):
        with no_warning(), opens(engine) as owner:
            send(owner)
            getattr(owner, end)()
            owner.execute(sqlalchemy.text("select 1"))
