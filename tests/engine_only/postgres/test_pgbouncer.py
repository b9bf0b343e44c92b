"""rowq works behind PgBouncer, where each transaction may run in another session."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import rowq
from rowq.worker import listener
from tests.engines.base import free_port, wait_until
from tests.helpers.workers import running

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SESSIONS_OF_THE_POOL = 2
CLIENTS = 8
MESSAGES = 40

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="there is no pgbouncer; to run it: apt-get install pgbouncer"
)


@pytest.fixture
def pooled_url(database_url: str) -> Iterator[str]:
    """Return a URL of the same database through a pool of two sessions."""
    with _pooled(database_url) as url:
        yield url


@contextmanager
def _pooled(database_url: str) -> Iterator[str]:
    there = conninfo_to_dict(database_url)
    target = " ".join(
        f"{name}={there[name]}"
        for name in ("host", "port", "dbname", "user", "password")
        if there.get(name)
    )
    port = free_port()
    user = _account(Path(str(there["host"])))
    with tempfile.TemporaryDirectory() as room:
        settings = Path(room, "pgbouncer.ini")
        settings.write_text(_SETTINGS.format(target=target, port=port))
        for path in (Path(room), settings):
            os.chown(path, user, -1)
        with _running([str(PROGRAM), "-q", str(settings)], user):
            url = f"postgresql://anybody@127.0.0.1:{port}/pooled"
            wait_until(lambda: _answers(url), "pgbouncer answers")
            yield f"{url}?prepare_threshold=none"


_SETTINGS = f"""
[databases]
pooled = {{target}}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {{port}}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {SESSIONS_OF_THE_POOL}
"""


def _account(host: Path) -> int:
    """Return the user id that may open the server's socket; PgBouncer refuses to run as root."""
    return host.stat().st_uid if host.is_absolute() else os.getuid()


@contextmanager
def _running(command: list[str], user: int) -> Iterator[None]:
    """Run the pooler as a user; as root, it runs in a namespace where root has another number."""
    if user == 0:
        command = ["unshare", "--user", "--map-user=1000", *command]
    as_user: int | None = user if os.getuid() == 0 and user else None
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, user=as_user) as process:
        try:
            yield
        finally:
            process.kill()


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


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
def test_a_client_waits_without_keeping_a_session_to_itself(
    pooled_url: str, queue_name: str
) -> None:
    with rowq.connect(pooled_url) as queue:
        queue.create_queue(queue_name)
        with ThreadPoolExecutor(1) as waiters, rowq.connect(pooled_url) as other:
            waiting = waiters.submit(other.dequeue_wait, queue_name, wait_seconds=20)
            queue.enqueue(queue_name, "late")
            assert [message.data for message in waiting.result()] == ["late"]


@pytest.mark.promise("P02")
def test_a_worker_drains_through_the_pool(pooled_url: str, queue_name: str) -> None:
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
def test_a_transactional_workers_heartbeat_leaves_no_setting_in_the_sessions_of_the_pool(
    pooled_url: str, queue_name: str
) -> None:
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
    with ExitStack() as all_of_them:
        for _ in range(SESSIONS_OF_THE_POOL):
            own = all_of_them.enter_context(psycopg.connect(url, prepare_threshold=None))
            assert own.execute("show lock_timeout").fetchone() == ("0",)
            assert own.execute("show transaction_isolation").fetchone() == ("read committed",)


def test_a_worker_polls_through_the_pool_says_so_once_and_leaves_nothing_behind(
    notifying_url: str, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with _pooled(notifying_url) as url, rowq.connect(url) as queue:
        queue.create_queue(queue_name)
        with running(rowq.Worker(url, queue_name, print, threads=2)) as worker:
            wait_until(lambda: bool(caplog.records), "it has said that it polls")
            queue.enqueue(queue_name, 1)
            wait_until(lambda: worker.stats.processed == 1, "the message is handled")
        with ExitStack() as all_of_them:
            for _ in range(SESSIONS_OF_THE_POOL):
                own = all_of_them.enter_context(psycopg.connect(url.partition("?")[0]))
                own.prepare_threshold = None
                assert own.execute("select pg_listening_channels()").fetchall() == []
    with psycopg.connect(notifying_url) as direct:
        locks = "select from pg_locks where locktype = 'advisory'"
        assert direct.execute(locks).fetchall() == []
    assert [record.message for record in caplog.records if "pooler" in record.message]
    assert len(caplog.records) == 1


def test_a_worker_that_is_to_listen_through_the_pool_says_that_it_cannot(
    notifying_url: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "_FIRST_SECONDS", 1.0)
    with _pooled(notifying_url) as url:
        with rowq.connect(url) as queue:
            queue.create_queue(queue_name)
        with pytest.raises(rowq.WorkerFailed, match="pooler in transaction mode"):
            rowq.Worker(url, queue_name, print, listen=True).run()
