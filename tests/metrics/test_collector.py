"""Collector of the queues of a database."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import prometheus_client
import pytest

import rowq
from rowq.tools.metrics import Collector
from rowq.tools.metrics.sampling import Samples
from tests.client.proxy import relay
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.queues import Connect
from tests.helpers.worker_queue import MakeQueue
from tests.metrics.reading import scraped


def test_collector_exports_counts_age_settings_and_health(make_queue: MakeQueue) -> None:
    queue = make_queue(max_attempts=3, lease_seconds=17)
    queue.fill(4)
    queue.enqueue(5, delay_seconds=900)
    (message,) = queue.dequeue_fast()
    queue.fail_now(message.claim_id)
    queue.dequeue_fast()
    metrics = scraped(Collector(queue.url))
    expected = {"ready": 2, "delayed": 1, "leased": 1, "dead": 1}
    for state, count in expected.items():
        assert metrics.value("rowq_messages", queue=queue.name, state=state) == count
        assert metrics.value("rowq_messages_capped", queue=queue.name, state=state) == 0
    assert metrics.value("rowq_queue_setting", queue=queue.name, name="lease_seconds") == 17
    assert metrics.value("rowq_queue_setting", queue=queue.name, name="max_attempts") == 3
    assert metrics.value("rowq_queue_paused", queue=queue.name) == 0
    oldest = metrics.value("rowq_oldest_ready_seconds", queue=queue.name)
    assert oldest is not None
    assert 0 < oldest < 600
    assert metrics.value("rowq_health", queue=queue.name, check="dead_messages") == 1
    assert metrics.value("rowq_health_value", queue=queue.name, check="dead_messages") == 1
    assert metrics.value("rowq_up") == 1
    took = metrics.value("rowq_scrape_seconds")
    assert took
    (info,) = metrics.named("rowq_info")
    version = queue.client.version()
    assert info == {
        "version": version.rowq_version,
        "schema": str(version.schema_version),
        "engine": version.engine,
    }


def test_collector_exports_claims_and_shortest_lease(make_queue: MakeQueue) -> None:
    queue = make_queue(lease_seconds=900)
    queue.fill(3)
    metrics = scraped(Collector(queue.url))
    assert metrics.value("rowq_claims", queue=queue.name) == 0
    assert metrics.value("rowq_lease_left_seconds_min", queue=queue.name) is None
    queue.client.dequeue_fast(queue.name, 2)
    queue.client.dequeue_fast(queue.name, 1, lease_seconds=300)
    metrics = scraped(Collector(queue.url))
    assert metrics.value("rowq_claims", queue=queue.name) == 2
    left = metrics.value("rowq_lease_left_seconds_min", queue=queue.name)
    assert left is not None
    assert 200 < left <= 300


def test_collector_exports_empty_and_paused_queue(make_queue: MakeQueue) -> None:
    queue = make_queue()
    queue.pause_queue()
    metrics = scraped(Collector(queue.url))
    assert metrics.value("rowq_oldest_ready_seconds", queue=queue.name) == 0
    assert metrics.value("rowq_queue_paused", queue=queue.name) == 1


def test_collector_marks_capped_counts(make_queue: MakeQueue) -> None:
    queue = make_queue()
    queue.fill(5)
    metrics = scraped(Collector(queue.url, max_count=4))
    assert metrics.value("rowq_messages", queue=queue.name, state="ready") == 4
    assert metrics.value("rowq_messages_capped", queue=queue.name, state="ready") == 1
    assert metrics.value("rowq_messages_capped", queue=queue.name, state="dead") == 0


def test_label_escapes_any_queue_name(
    connection: Connection, database_url: str, queue_name: str
) -> None:
    name = queue_name[:60] + '"} 1 # \\ é 😀'
    rowq.Queue(connection).create_queue(name)
    try:
        metrics = scraped(Collector(database_url))
        assert metrics.value("rowq_messages", queue=name, state="ready") == 0
    finally:
        rowq.Queue(connection).drop_queue(name)


@contextmanager
def closing(connection: Connection, closed: list[Connection]) -> Iterator[Connection]:
    yield connection
    closed.append(connection)


def test_collector_requires_autocommit_connection(made: str, connect: Connect) -> None:
    assert scraped(Collector(connect())).value("rowq_queue_paused", queue=made) == 0
    with pytest.raises(rowq.InvalidArgument, match="autocommit"):
        Collector(connect(autocommit=False))


def test_factory_connection_is_created_and_ended_per_sample(made: str, connect: Connect) -> None:
    closed: list[Connection] = []
    pooled = connect()
    for source, is_open in (
        (lambda: closing(pooled, closed), True),
        (connect, False),
    ):
        kept: list[Connection] = []

        def factory(source: Callable[[], Any] = source, kept: list[Any] = kept) -> Any:
            kept.append(source())
            return kept[-1]

        collector = Collector(factory, cache_seconds=0)
        for _ in range(2):
            assert scraped(collector).value("rowq_queue_paused", queue=made) == 0
        assert len(kept) == 2
        one = pooled if is_open else kept[0]
        assert rowq.Queue(pooled)._session.engine.is_usable(one) is is_open
    assert closed == [pooled, pooled]


def test_queue_object_is_a_source(make_queue: MakeQueue) -> None:
    queue = make_queue()
    with rowq.connect(queue.url) as client:
        assert scraped(Collector(client)).value("rowq_queue_paused", queue=queue.name) == 0


def test_invalid_source_is_refused_at_once() -> None:
    with pytest.raises(rowq.EngineUnknown):
        Collector("nothing://here")
    with pytest.raises(rowq.EngineUnknown):
        Collector(7)


class Counting:
    """A connection factory that counts, and can be slow or fail."""

    def __init__(self, connect: Connect) -> None:
        self.made = 0
        self.may_go = threading.Event()
        self.may_go.set()
        self.error: BaseException | None = None
        self._connect = connect

    def __call__(self) -> Connection:
        self.made += 1
        self.may_go.wait(60)
        if self.error:
            raise self.error
        return self._connect()


def test_parallel_scrapes_share_a_sample(made: str, connect: Connect) -> None:
    source = Counting(connect)
    collector = Collector(source, cache_seconds=60)
    source.may_go.clear()
    looks: list[Any] = []
    threads = [
        threading.Thread(target=lambda: looks.append(collector.sample()), daemon=True)
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: source.made == 1, "a look has begun")
    source.may_go.set()
    for thread in threads:
        thread.join(30)
    assert len(looks) == 20
    assert len({id(look) for look in looks}) == 1
    assert scraped(collector).value("rowq_queue_paused", queue=made) == 0
    assert source.made == 1


def test_hanging_sample_times_out_and_is_not_repeated(made: str, connect: Connect) -> None:
    source = Counting(connect)
    source.may_go.clear()
    collector = Collector(source, cache_seconds=0, timeout_seconds=0.2)
    for _ in range(3):
        began_at = time.monotonic()
        metrics = scraped(collector)
        assert time.monotonic() - began_at < 5
        assert metrics.value("rowq_up") == 0
        assert list(metrics.named("rowq_messages")) == []
    assert source.made == 1
    assert collector.last_error == "TimedOutError: no answer within 0.2 seconds"
    source.may_go.set()
    wait_until(lambda: scraped(collector).value("rowq_up") == 1, "the look has ended")
    assert scraped(collector).value("rowq_queue_paused", queue=made) == 0


@pytest.mark.parametrize("error", [RuntimeError("out of order"), SystemExit(3)])
def test_failure_sets_rowq_up_to_0_and_is_logged_once(
    connect: Connect, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    source = Counting(connect)
    source.error = error
    collector = Collector(source, cache_seconds=0)
    with caplog.at_level(logging.WARNING, logger="rowq.metrics"):
        for _ in range(3):
            metrics = scraped(collector)
            assert metrics.value("rowq_up") == 0
            assert list(metrics.named("rowq_messages")) == []
            assert list(metrics.named("rowq_info")) == []
        source.error = None
        assert scraped(collector).value("rowq_up") == 1
    assert collector.last_error is None
    first, last = [record.getMessage() for record in caplog.records]
    assert first.startswith(f"cannot read the queues: {type(error).__name__}: ")
    assert last == "reading the queues works again"


@pytest.mark.slow("waits for time limits")
def test_unreachable_database_sets_rowq_up_to_0(database_url: str, made: str) -> None:
    with relay(database_url) as way:
        collector = Collector(way.url, cache_seconds=0)
        assert scraped(collector).value("rowq_up") == 1
        way.refuse(connections=True)
        way.cut()
        assert scraped(collector).value("rowq_up") == 0
        way.refuse(connections=False)
        metrics = scraped(collector)
        assert metrics.value("rowq_up") == 1
        assert metrics.value("rowq_queue_paused", queue=made) == 0


def test_passwords_are_not_exported_or_logged(caplog: pytest.LogCaptureFixture) -> None:
    secret = "correct-horse-battery"

    def refuse() -> None:
        raise RuntimeError(f"cannot reach postgresql://me:{secret}@nowhere/x, password={secret}")

    with caplog.at_level(logging.DEBUG):
        collector = Collector(refuse)
        metrics = scraped(collector)
        missing = Collector(f"postgresql://me:{secret}@127.0.0.1:1/x", timeout_seconds=5)
        metrics_of_missing = scraped(missing)
    assert "***" in str(collector.last_error)
    for text in (metrics.text, metrics_of_missing.text, caplog.text):
        assert secret not in text
    assert secret not in str(missing.last_error) + str(collector.last_error)


def test_missing_thread_sets_rowq_up_to_0(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    collector = Collector(connect, cache_seconds=0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        assert scraped(collector).value("rowq_up") == 0
    assert scraped(collector).value("rowq_up") == 1


def test_registry_refuses_duplicate_without_a_sample(connect: Connect) -> None:
    source = Counting(connect)
    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector(source))
    with pytest.raises(ValueError, match="rowq_up"):
        registry.register(Collector(source))
    assert source.made == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork; to run it: Linux")
def test_forked_process_takes_its_own_sample(connect: Connect) -> None:
    source = Counting(connect)
    source.may_go.clear()
    looks = Samples(source, 1, 60.0, 0.1)
    assert looks.get().error is not None
    child = os.fork()
    if child == 0:
        # A sample begun in the parent would never end in the child; it takes a new one.
        source.error, source.made = RuntimeError("no database"), 0
        source.may_go = threading.Event()
        source.may_go.set()
        looks._timeout_seconds = 30.0
        found = looks.get()
        os._exit(0 if source.made == 1 and isinstance(found.error, RuntimeError) else 1)
    _, status = os.waitpid(child, 0)
    source.may_go.set()
    assert os.waitstatus_to_exitcode(status) == 0


def test_metric_names_follow_prometheus_rules(server: Server, database_url: str) -> None:
    for family in Collector(database_url).collect():
        assert family.documentation.endswith("."), server.name
        assert family.name.startswith("rowq")
        assert not family.name.endswith(("_count", "_sum", "_bucket", "_total"))
