"""rowq.AsyncQueue on asyncpg connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

import rowq
from rowq.contract import load_contract
from tests.chaos.prepared import Prepared
from tests.client import test_queue
from tests.client.test_queue import check_types
from tests.engines.base import Connection
from tests.helpers.client_queue import ready
from tests.helpers.hard_headers import HARD, put_headers
from tests.helpers.queues import Connect

Login = dict[str, Any]


@pytest.fixture
def login(database_url: str) -> Login:
    """Return the connection arguments of asyncpg."""
    parameters = psycopg.conninfo.conninfo_to_dict(database_url)
    named = {"dbname": "database", "user": "user", "password": "password"}
    named |= {"host": "host", "port": "port"}
    return {named[key]: value for key, value in parameters.items() if key in named and value}


class Awaiting:
    """A synchronous wrapper of a queue on an asyncpg connection."""

    def __init__(self, login: Login, **options: Any) -> None:
        self._runner = asyncio.Runner()
        self.connection = self._runner.run(asyncpg.connect(**login))
        self._queue = rowq.AsyncQueue(self.connection, **options)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._runner.run(getattr(self._queue, method)(*arguments, **options))

        return call

    def close(self) -> None:
        self._runner.run(self.connection.close())
        self._runner.close()


@pytest.fixture
def queue(login: Login) -> Iterator[Any]:
    made = Awaiting(login)
    yield made
    made.close()


def test_asyncpg_methods_return_rows_of_python_types(
    queue: Any, connection: Connection, queue_name: str
) -> None:
    for routine in load_contract().of("postgres").values():
        if routine.is_own:
            continue
        prepared = Prepared(connection, f"{queue_name} {routine.name}", archive_days=1)
        arguments = prepared.arguments(routine)
        if "body" in arguments:
            arguments["text"] = arguments.pop("body")
        if "messages" in arguments:
            topic = prepared.topic if routine.name == "publish_batch" else None
            arguments["messages"] = [rowq.NewMessage(data=1, topic=topic)]
        result = getattr(queue, routine.name)(**arguments)
        if routine.name == "next_ticks":
            assert {(type(tick), tick.tzinfo) for tick in result} == {(datetime, UTC)}
            continue
        rows = result if isinstance(result, list) else [result]
        assert rows, routine.name
        for row in rows:
            check_types(row)


def test_asyncpg_queue_does_what_a_psycopg_queue_does(queue: Any, made: str) -> None:
    """Run tests of rowq.Queue: bodies, headers, refused calls and their classes."""
    for test in (
        test_queue.test_bodies_and_headers_roundtrip,
        test_queue.test_headers_may_contain_escaped_backslash_u0000,
        test_queue.test_dequeue_wait_returns_messages_as_dequeue_fast,
        test_queue.test_refusals_have_their_class_and_the_drivers_cause,
    ):
        name = f"{made} {test.__name__}"[:100]
        queue.create_queue(name)
        test(queue, name)
    for invalid in ({"text": "\ud800"}, {"data": "a", "message_type": "\0"}, {"priority": 10**10}):
        with pytest.raises(rowq.InvalidArgument):
            queue.enqueue(made, **invalid)


@pytest.mark.promise("P01")
def test_message_shares_the_transaction_of_its_connection(
    login: Login, connection: Connection, made: str
) -> None:
    async def life() -> None:
        async with asyncpg.create_pool(**login, min_size=1) as pool, pool.acquire() as own:
            queue = rowq.AsyncQueue(own)
            async with own.transaction():
                await queue.enqueue(made, 1)
                assert ready(connection, made) == 0
                with pytest.raises(rowq.WrongTransactionState, match="autocommit"):
                    await queue.dequeue_wait(made)
            transaction = own.transaction()
            await transaction.start()
            await queue.enqueue(made, 2)
            await transaction.rollback()
            with pytest.raises(rowq.EngineUnknown, match=r"got Pool; use .*acquire"):
                rowq.AsyncQueue(pool)

    asyncio.run(life())
    assert ready(connection, made) == 1


def test_savepoint_keeps_the_transaction_after_a_refused_call(
    login: Login, connection: Connection, made: str
) -> None:
    async def life() -> None:
        own = await asyncpg.connect(**login)
        async with own.transaction():
            queue = rowq.AsyncQueue(own, savepoint=True)
            with pytest.raises(rowq.QueueNotFound):
                await queue.enqueue("no such queue", 1)
            await queue.enqueue(made, 1)
        async with own.transaction():
            with pytest.raises(rowq.QueueNotFound):
                await rowq.AsyncQueue(own).enqueue("no such queue", 1)
            with pytest.raises(asyncpg.InFailedSQLTransactionError):
                await own.execute("select 1")
        await own.close()

    asyncio.run(life())
    assert ready(connection, made) == 1


@pytest.mark.parametrize("has_codec", [True, False])
def test_headers_are_parsed_with_any_jsonb_codec(
    login: Login, connection: Connection, made: str, has_codec: bool
) -> None:
    async def life() -> None:
        own = await asyncpg.connect(**login)
        if has_codec:
            await own.set_type_codec(
                "jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads
            )
        queue = rowq.AsyncQueue(own)
        for number in range(2):
            sent = await queue.enqueue(made, number, headers={"a": [number, "é"]})
        waited = await queue.dequeue_wait(made, 2)
        assert [message.headers for message in waited] == [{"a": [0, "é"]}, {"a": [1, "é"]}]
        await queue.release(made, waited[0].claim_id)
        put_headers(connection, sent.message_id, HARD["digits"])
        readable, unreadable = await queue.dequeue_fast(made, 2)
        assert readable.headers == {"a": [0, "é"]}
        assert isinstance(unreadable.headers, rowq.UnreadableHeaders)
        await own.close()

    asyncio.run(life())


@pytest.mark.promise("P02", "P03")
def test_cancelled_call_leaves_the_connection_usable(login: Login, made: str) -> None:
    async def life() -> None:
        own = await asyncpg.connect(**login)
        queue = rowq.AsyncQueue(own)
        for pause in (0.0, 0.001):
            task = asyncio.create_task(queue.dequeue_wait(made, wait_seconds=60))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.sleep(pause)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await queue.version()).schema_version >= 1
        await queue.enqueue(made, 1)
        assert len(await queue.peek(made)) == 1
        await own.close()

    asyncio.run(life())


def test_call_cancelled_in_a_savepoint_keeps_the_transaction(
    login: Login, connect: Connect, connection: Connection, made: str
) -> None:
    """The call waits for another producer of its dedup key."""
    other = connect(autocommit=False)
    rowq.Queue(other).enqueue(made, "another's", dedup_key="key")

    async def life() -> None:
        own = await asyncpg.connect(**login)
        async with own.transaction():
            queue = rowq.AsyncQueue(own, savepoint=True)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await queue.enqueue(made, "cancelled", dedup_key="key")
            await queue.enqueue(made, 1)
        await own.close()

    asyncio.run(life())
    other.rollback()
    assert [message.data for message in rowq.Queue(connection).peek(made, max_messages=9)] == [1]


def test_denied_call_names_the_required_role(
    login: Login, connection: Connection, made: str
) -> None:
    name = f"{made}'s stranger"[:60]
    quoted = '"' + name.replace('"', '""') + '"'
    connection.execute(f"create role {quoted}")
    connection.execute(f"grant usage on schema rowq to {quoted}")

    async def life() -> None:
        own = await asyncpg.connect(**login)
        await own.execute(f"set role {quoted}")
        with pytest.raises(asyncpg.InsufficientPrivilegeError) as denied:
            await rowq.AsyncQueue(own).enqueue(made, 1)
        assert "needs role rowq_producer" in denied.value.__notes__[0]
        await own.close()

    try:
        asyncio.run(life())
    finally:
        connection.execute(f"drop owned by {quoted}")
        connection.execute(f"drop role {quoted}")


def test_sqlalchemy_connection_is_refused_with_the_remedy(login: Login) -> None:
    async def life() -> None:
        engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=lambda: asyncpg.connect(**login),
            poolclass=NullPool,
        )
        async with engine.connect() as connected:
            for connection in (connected, await connected.get_raw_connection()):
                with pytest.raises(rowq.EngineUnknown, match=r"rowq\.contrib\.sqlalchemy\.enqueue"):
                    rowq.AsyncQueue(connection)

    asyncio.run(life())
