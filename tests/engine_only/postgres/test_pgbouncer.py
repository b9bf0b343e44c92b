"""rowq works with PgBouncer, where each transaction may run in another session."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import cast

import psycopg
import pytest

import rowq
from rowq.worker import listener
from tests.engines.base import wait_until
from tests.engines.postgres.pgbouncer import PROGRAM, TO_RUN, pooled
from tests.helpers.workers import running

SESSIONS_OF_THE_POOL = 2
CLIENTS = 8
MESSAGES = 40

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=TO_RUN),
    pytest.mark.pitfall("postgres 11"),
]


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """Return a URL of the same database through a pool of two sessions."""
    with pooled(database_url, SESSIONS_OF_THE_POOL) as (url, _):
        yield url


@pytest.mark.promise("P03", "P04")
def test_many_clients_share_two_sessions(pooled_url: str, queue_name: str) -> None:
    with rowq.connect(pooled_url) as queue:
        queue.create_queue(queue_name)
        sent = {queue.enqueue(queue_name, number).message_id for number in range(MESSAGES)}

    def drain(_: int) -> list[int]:
        done: list[int] = []
        with rowq.connect(pooled_url) as queue:
            while messages := queue.dequeue_fast(queue_name, 3):
                claim_id = messages[0].claim_id
                done += [outcome.message_id for outcome in queue.complete(queue_name, claim_id)]
        return done

    with ThreadPoolExecutor(CLIENTS) as clients:
        done = [
            message_id
            for completed in clients.map(drain, range(CLIENTS))
            for message_id in completed
        ]
    assert sorted(done) == sorted(sent)


@pytest.mark.promise("P17")
def test_dequeue_wait_does_not_keep_a_session(pooled_url: str, queue_name: str) -> None:
    with rowq.connect(pooled_url) as queue:
        queue.create_queue(queue_name)
        with ThreadPoolExecutor(1) as waiters, rowq.connect(pooled_url) as other:
            waiting = waiters.submit(other.dequeue_wait, queue_name, wait_seconds=20)
            queue.enqueue(queue_name, "late")
            assert [message.data for message in waiting.result()] == ["late"]


@pytest.mark.promise("P02")
def test_worker_drains_through_the_pool(pooled_url: str, queue_name: str) -> None:
    seen: list[int] = []
    with rowq.connect(pooled_url) as queue:
        queue.create_queue(queue_name)
        queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(MESSAGES)])
        rowq.Worker(
            pooled_url, queue_name, lambda message: seen.append(message.data), threads=4, drain=True
        ).run()
        assert queue.queue_stats(queue_name)[0].ready == 0
    assert sorted(seen) == list(range(MESSAGES))


@pytest.mark.promise("P03", "P04")
def test_heartbeat_leaves_no_setting_in_pooled_sessions(pooled_url: str, queue_name: str) -> None:
    extended: list[bool] = []

    def handler(message: rowq.HeldMessage, own: psycopg.Connection) -> None:
        own.execute("select 1")
        if not extended:
            with rowq.connect(pooled_url) as queue:
                wait_until(lambda: is_extended(queue, message), "the lease is extended")
            extended.append(True)

    def is_extended(queue: rowq.Queue, message: rowq.HeldMessage) -> bool:
        details = queue.get_message(queue_name, message.message_id)
        return details is not None and details.lease_until != message.lease_until

    with rowq.connect(pooled_url) as queue:
        queue.create_queue(queue_name)
        queue.enqueue_batch(queue_name, [rowq.NewMessage(data=n) for n in range(MESSAGES)])
    worker = rowq.Worker(
        pooled_url, queue_name, handler, transactional=True, lease_seconds=1, drain=True
    )
    assert worker.run().processed == MESSAGES
    url = pooled_url.partition("?")[0]
    with ExitStack() as stack:
        for _ in range(SESSIONS_OF_THE_POOL):
            own = stack.enter_context(psycopg.connect(url, prepare_threshold=None))
            assert own.execute("show lock_timeout").fetchone() == ("0",)
            assert own.execute("show transaction_isolation").fetchone() == ("read committed",)


def test_worker_polls_through_the_pool_and_logs_it_once(
    notifying_url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pooled(notifying_url, SESSIONS_OF_THE_POOL) as (url, _), rowq.connect(url) as queue:
        queue.create_queue(queue_name)
        with running(rowq.Worker(url, queue_name, print, threads=2)) as worker:
            wait_until(lambda: bool(caplog.records), "it logs that it polls")
            queue.enqueue(queue_name, 1)
            wait_until(lambda: worker.stats.processed == 1, "the message is handled")
        with ExitStack() as stack:
            for _ in range(SESSIONS_OF_THE_POOL):
                own = stack.enter_context(psycopg.connect(url.partition("?")[0]))
                own.prepare_threshold = None
                assert own.execute("select pg_listening_channels()").fetchall() == []
    with psycopg.connect(notifying_url) as direct:
        locks = "select from pg_locks where locktype = 'advisory'"
        assert direct.execute(locks).fetchall() == []
    assert [record.message for record in caplog.records if "pooler" in record.message]
    assert len(caplog.records) == 1


def test_listening_worker_fails_with_a_pooler(
    notifying_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_FIRST_SECONDS", 1.0)
    with pooled(notifying_url, SESSIONS_OF_THE_POOL) as (url, _):
        with rowq.connect(url) as queue:
            queue.create_queue(queue_name)
        with pytest.raises(rowq.WorkerFailed, match="pooler in transaction mode"):
            rowq.Worker(url, queue_name, print, listen=True).run()


def test_client_prepares_statements_only_without_a_pooler(
    database_url: str, pooled_url: str
) -> None:
    with rowq.connect(database_url) as direct, rowq.connect(pooled_url) as pooled_queue:
        assert direct._session.connection().prepare_threshold is not None
        assert pooled_queue._session.connection().prepare_threshold is None
    with rowq.connect(f"{pooled_url}?prepare_threshold=7") as asked:
        assert asked._session.connection().prepare_threshold == 7


def test_async_client_prepares_statements_only_without_a_pooler(
    database_url: str, pooled_url: str
) -> None:
    async def threshold(url: str) -> int | None:
        async with await rowq.connect_async(url) as queue:
            connection = await queue._session.connection()
            return cast("psycopg.AsyncConnection", connection).prepare_threshold

    assert asyncio.run(threshold(database_url)) is not None
    assert asyncio.run(threshold(pooled_url)) is None
