"""Metrics and readiness of a worker."""

import multiprocessing
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import prometheus_client
import pytest

import rowq
from rowq.worker.meter import BOUNDS, Measures, Meter, Times
from rowq.worker.processes import WorkerProcess
from tests.client.proxy import relay
from tests.engines.base import Server, wait_until
from tests.helpers.worker_queue import MakeQueue, WorkerQueue
from tests.helpers.workers import running
from tests.metrics.promtool import promtool
from tests.metrics.reading import Metrics, fetched, get


@pytest.fixture
def queue(make_queue: MakeQueue) -> WorkerQueue:
    return make_queue({"metrics_port": 0}, lease_seconds=3, backoff_base_seconds=0, max_attempts=2)


def address_of(worker: rowq.Worker) -> str:
    wait_until(lambda: worker.metrics_url is not None, "the worker serves its metrics")
    return str(worker.metrics_url)


def metrics_when(
    worker: rowq.Worker, condition: Callable[[Metrics], bool], what: str, seconds: float = 20
) -> Metrics:
    """Wait until the metrics of a worker meet a condition; return them."""
    address, seen = address_of(worker), [Metrics("")]

    def holds() -> bool:
        seen.append(fetched(address))
        return condition(seen[-1])

    wait_until(holds, what, seconds)
    return seen[-1]


def outcomes(metrics: Metrics, queue: WorkerQueue) -> dict[str, float | None]:
    return {
        labels["outcome"]: metrics.value("rowq_worker_messages_total", **labels)
        for labels in metrics.named("rowq_worker_messages_total")
        if labels["queue"] == queue.name
    }


def value(metrics: Metrics, name: str, queue: WorkerQueue, **labels: str) -> float:
    found = metrics.value(f"rowq_worker_{name}", queue=queue.name, **labels)
    assert found is not None
    return found


def decide(message: rowq.Message) -> None:
    match message.data:
        case 1:
            raise rowq.Fail("never")
        case 2:
            raise RuntimeError("broken")
        case 3:
            raise rowq.Retry(900)
        case 4:
            raise rowq.Snooze(900)


NONE = dict.fromkeys(
    ("completed", "retried", "dead", "released", "snoozed", "stale", "cancelled"), 0.0
)


def test_worker_counts_outcomes_and_errors(queue: WorkerQueue) -> None:
    queue.fill(5)
    with running(queue.worker(decide)) as worker:
        done = NONE | {"completed": 1, "retried": 2, "dead": 2, "snoozed": 1}
        metrics = metrics_when(
            worker, lambda metrics: outcomes(metrics, queue) == done, "all messages are handled"
        )
        # The second message died on its first attempt, the third on its second.
        assert value(metrics, "errors_total", queue, kind="handler") == 2
        assert value(metrics, "errors_total", queue, kind="database") == 0
        assert value(metrics, "handler_seconds_count", queue) == 6
        assert value(metrics, "wait_seconds_count", queue) == 5
        assert value(metrics, "polls_total", queue, result="found") >= 1
        metrics = metrics_when(
            worker,
            lambda metrics: (
                value(metrics, "polls_total", queue, result="empty") >= 1
                and value(metrics, "ready", queue) == 1
            ),
            "it has polled in vain",
        )
        polled_at = value(metrics, "last_poll_timestamp_seconds", queue)
        assert abs(time.time() - polled_at) < 30
        assert value(metrics, "held", queue) == 0
        assert value(metrics, "oldest_claim_seconds", queue) == 0
    assert worker.metrics_url is None


def test_every_series_exists_before_first_message(queue: WorkerQueue) -> None:
    with running(queue.worker(print)) as worker:
        metrics = fetched(address_of(worker))
        assert outcomes(metrics, queue) == NONE
        for kind in ("handler", "database"):
            assert value(metrics, "errors_total", queue, kind=kind) == 0
        for result in ("extended", "lost"):
            assert value(metrics, "leases_total", queue, result=result) == 0
        assert value(metrics, "handler_seconds_bucket", queue, le="+Inf") == 0


def test_sum_of_stats_has_every_count() -> None:
    names = [stat.name for stat in fields(rowq.WorkerStats) if stat.name != "started_at"]
    counts: dict[str, Any] = dict.fromkeys(names, 1)
    both = rowq.WorkerStats(**counts).plus(rowq.WorkerStats(**counts))
    assert {name: getattr(both, name) for name in names} == dict.fromkeys(names, 2)


def test_what_it_tells_passes_promtool_s_check(queue: WorkerQueue) -> None:
    queue.fill(1)
    with running(queue.worker(print)) as worker:
        metrics = metrics_when(
            worker, lambda metrics: outcomes(metrics, queue)["completed"] == 1, "done"
        )
    checked = promtool("check", "metrics", given=metrics.text)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_waits_count_per_message_and_handlers_per_attempt(queue: WorkerQueue) -> None:
    def handler(message: rowq.Message) -> None:
        time.sleep(0.3)
        if message.attempt == 1:
            raise rowq.Retry(0)

    queue.enqueue(1, delay_seconds=1.2)
    with running(queue.worker(handler)) as worker:
        metrics = metrics_when(
            worker, lambda metrics: outcomes(metrics, queue)["completed"] == 1, "done"
        )
    assert value(metrics, "wait_seconds_count", queue) == 1
    assert value(metrics, "wait_seconds_bucket", queue, le="1.0") == 0
    assert 1.2 <= value(metrics, "wait_seconds_sum", queue) < 20
    assert value(metrics, "handler_seconds_count", queue) == 2
    assert value(metrics, "handler_seconds_bucket", queue, le="0.25") == 0
    assert 0.6 <= value(metrics, "handler_seconds_sum", queue) < 20


async def slowly(_message: rowq.Message) -> None:
    import asyncio

    await asyncio.sleep(0.2)


@pytest.mark.parametrize(
    ("handler", "options", "calls"),
    [
        (lambda _messages: time.sleep(0.2), {"per": "batch"}, 1),
        (lambda _message, _connection: time.sleep(0.2), {"transactional": True}, 4),
        (slowly, {"concurrent": True}, 4),
        (slowly, {}, 4),
    ],
    ids=["batch", "transactional", "concurrent", "awaited"],
)
def test_all_kinds_of_handlers_are_measured(
    queue: WorkerQueue, handler: Any, options: dict[str, Any], calls: int
) -> None:
    queue.fill(4)
    with running(queue.worker(handler, **options)) as worker:
        metrics = metrics_when(
            worker, lambda metrics: outcomes(metrics, queue)["completed"] == 4, "done"
        )
    assert value(metrics, "handler_seconds_count", queue) == calls
    assert value(metrics, "handler_seconds_bucket", queue, le="0.1") == 0
    assert value(metrics, "handler_seconds_sum", queue) >= 0.2 * calls


class Gate:
    """A handler that blocks until the test opens it."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.may_go = threading.Event()
        self.claims: list[int] = []

    def __call__(self, message: rowq.Message) -> None:
        self.claims.append(message.claim_id)
        self.entered.set()
        assert self.may_go.wait(60)


@pytest.mark.slow("waits for time limits")
def test_busy_worker_is_ready_while_it_extends_leases(queue: WorkerQueue) -> None:
    queue.fill(2)
    gate = Gate()
    with running(queue.worker(gate)) as worker:
        assert gate.entered.wait(30)
        # Busy for more than three pauses and three seconds without a poll.
        metrics = metrics_when(
            worker,
            lambda metrics: (
                value(metrics, "oldest_claim_seconds", queue) > 4
                and value(metrics, "ready", queue) == 1
            ),
            "the worker is busy and ready",
        )
        assert value(metrics, "leases_total", queue, result="extended") >= 2
        assert value(metrics, "held", queue) == 2
        wait_until(lambda: get(f"{worker.metrics_url}/ready") == (200, "ok\n"), "GET /ready is ok")
        gate.may_go.set()
        metrics_when(
            worker, lambda metrics: value(metrics, "held", queue) == 0, "the handlers return"
        )


@pytest.mark.slow("waits for time limits")
def test_worker_is_not_ready_if_leases_are_not_extended(queue: WorkerQueue) -> None:
    queue.fill(1)
    gate = Gate()
    with relay(queue.url) as way:
        worker = rowq.Worker(way.url, queue.name, gate, metrics_port=0)
        with running(worker):
            address = address_of(worker)
            assert gate.entered.wait(30)
            wait_until(lambda: get(f"{address}/ready")[0] == 200, "it is ready")
            way.stall()
            late = 503, f"the lease of claim {gate.claims[0]} was not extended\n"
            wait_until(lambda: get(f"{address}/ready") == late, "it is not ready", seconds=20)
            assert get(f"{address}/live") == (200, "ok\n")
            assert value(fetched(address), "ready", queue) == 0
            way.go_on()
            gate.may_go.set()
            wait_until(lambda: get(f"{address}/ready")[0] == 200, "ready again", seconds=30)


def test_worker_is_not_ready_after_losing_claim(queue: WorkerQueue) -> None:
    queue.fill(1)
    gate = Gate()
    with running(queue.worker(gate)) as worker:
        assert gate.entered.wait(30)
        queue.fail_now(gate.claims[0])
        metrics = metrics_when(
            worker,
            lambda metrics: value(metrics, "leases_total", queue, result="lost") == 1,
            "the lease is lost",
        )
        assert value(metrics, "ready", queue) == 0
        gate.may_go.set()
        metrics_when(
            worker, lambda metrics: outcomes(metrics, queue)["stale"] == 1, "the message is stale"
        )
        wait_until(lambda: get(f"{worker.metrics_url}/ready")[0] == 200, "ready again")


@pytest.mark.slow("waits for time limits")
def test_idle_worker_without_database_is_not_ready(queue: WorkerQueue) -> None:
    with relay(queue.url) as way:
        worker = rowq.Worker(way.url, queue.name, print, metrics_port=0, listen=False)
        with running(worker):
            address = address_of(worker)
            wait_until(lambda: get(f"{address}/ready")[0] == 200, "the worker polls")
            way.refuse(connections=True)
            way.cut()
            wait_until(lambda: get(f"{address}/ready")[0] == 503, "it is not ready", seconds=20)
            text = get(f"{address}/ready")[1]
            assert text.startswith("no dequeue has been answered for ")
            assert get(f"{address}/live") == (200, "ok\n")
            assert value(fetched(address), "errors_total", queue, kind="database") >= 1
            way.refuse(connections=False)
            wait_until(lambda: get(f"{address}/ready")[0] == 200, "ready again", seconds=30)


def test_stopping_worker_is_live_but_not_ready(queue: WorkerQueue) -> None:
    queue.fill(1)
    gate = Gate()
    with running(queue.worker(gate)) as worker:
        address = address_of(worker)
        assert gate.entered.wait(30)
        worker.stop()
        assert get(f"{address}/ready") == (503, "the worker is stopping\n")
        assert get(f"{address}/live") == (200, "ok\n")
        gate.may_go.set()
    with pytest.raises(OSError):  # noqa: PT011 - each system has an error of its own
        get(f"{address}/live")


def test_worker_of_paused_queue_is_ready(queue: WorkerQueue) -> None:
    queue.pause_queue()
    with running(queue.worker(print)) as worker:
        metrics_when(
            worker, lambda metrics: value(metrics, "ready", queue) == 1, "the worker polls"
        )


def test_worker_exports_application_metrics(queue: WorkerQueue) -> None:
    booked = prometheus_client.Counter("shop_booked", "Orders that were booked.")
    try:
        queue.fill(3)
        with running(queue.worker(lambda _message: booked.inc())) as worker:
            metrics_when(
                worker, lambda metrics: metrics.value("shop_booked_total") == 3, "three are counted"
            )
    finally:
        prometheus_client.REGISTRY.unregister(booked)


def test_used_metrics_port_stops_worker_before_dequeue(
    queue: WorkerQueue,
) -> None:
    queue.fill(1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            rowq.WorkerFailed, match=rf"cannot serve metrics at 127.0.0.1:{port}: .*in use"
        ):
            queue.drain(print, metrics_port=port)
    assert queue.counts() == (1, 0, 0, 0)


def test_worker_can_run_again_with_metrics(queue: WorkerQueue) -> None:
    worker = queue.worker(print, drain=True)
    for _ in range(2):
        queue.fill(1)
        assert worker.run().processed == 1
    assert worker.metrics_url is None


def test_replaced_process_is_counted_exactly_once() -> None:
    settings = rowq.Worker("postgresql://nowhere/x", "orders", print, metrics_port=0)._settings
    child = WorkerProcess(multiprocessing.get_context("spawn"), settings)
    child._started_at = time.monotonic()
    done = Measures(stats=rowq.WorkerStats(processed=1))
    seen: set[int] = set()
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            seen.add(child.measures.stats.processed)

    child._measures = (done, done)
    thread = threading.Thread(target=ask)
    thread.start()
    for _ in range(2000):
        child._after_end(0, stopping=True)
        child._measures = (done, done)
    is_over.set()
    thread.join()
    assert seen == {2}


@pytest.mark.parametrize(
    "options",
    [
        *({"metrics_port": port} for port in (-1, 65536, 1.5, True, "9400")),
        *({"metrics_port": 0, "metrics_host": host} for host in ("", None, "x" * 256)),
    ],
)
def test_invalid_metrics_address_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(rowq.InvalidArgument, match="metrics_"):
        rowq.Worker("postgresql://nowhere/x", "orders", print, **options)


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(rowq.PackageMissing, match=r"pip install 'rowq\[metrics\]'"):
        rowq.Worker("postgresql://nowhere/x", "orders", print, metrics_port=0)


def test_worker_without_metrics_port_measures_nothing() -> None:
    assert rowq.Worker("postgresql://nowhere/x", "orders", print)._context.meter is None


def test_times_are_in_buckets_by_upper_bound() -> None:
    meter = Meter()
    for seconds in (0.0, 0.005, 0.006, 3.0, 1e9, -1.0):
        meter.record_handled(seconds)
    handled = meter.measures().handled
    assert dict(zip(BOUNDS, handled.counts, strict=True)) == dict.fromkeys(BOUNDS, 0) | {
        0.005: 3,
        0.01: 1,
        5.0: 1,
        float("inf"): 1,
    }
    assert handled.seconds == pytest.approx(0.011 + 3.0 + 1e9)


def test_measures_of_processes_are_added() -> None:
    one = Measures(
        stats=rowq.WorkerStats(processed=2),
        events={**Measures().events, "found": 3},
        handled=Times((1, *Times().counts[1:]), 0.5),
        held=2,
        oldest_claim_seconds=9.0,
        last_poll_at=50.0,
        why_not_ready="this and that",
    )
    both = one.plus(Measures(held=1, oldest_claim_seconds=1.0, last_poll_at=40.0)).plus(Measures())
    assert (both.stats.processed, both.events["found"], both.handled.counts[0]) == (2, 3, 1)
    assert (both.held, both.oldest_claim_seconds, both.last_poll_at) == (3, 9.0, 40.0)
    assert both.why_not_ready == "this and that"
    over = one.ended()
    assert (over.stats, over.events, over.handled) == (one.stats, one.events, one.handled)
    assert (over.held, over.last_poll_at, over.why_not_ready) == (0, None, "")


@pytest.mark.slow("waits for time limits")
def test_killed_process_keeps_its_counts(
    queue: WorkerQueue, server: Server, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWQ_TEST_DIRECTORY", str(tmp_path))
    queue.fill(4)
    handler = "tests.client.handlers:note"
    with running(queue.worker(handler, processes=2, batch_size=1)) as worker:
        metrics_when(
            worker,
            lambda metrics: (
                outcomes(metrics, queue)["completed"] == 4 and value(metrics, "ready", queue) == 1
            ),
            f"both work on {server.name}",
            seconds=60,
        )
        assert worker._processes
        worker._processes._children[0].kill()
        metrics = metrics_when(
            worker,
            lambda metrics: value(metrics, "ready", queue) == 0,
            "a process is killed",
            seconds=60,
        )
        assert outcomes(metrics, queue)["completed"] == 4
        metrics = metrics_when(
            worker, lambda metrics: value(metrics, "ready", queue) == 1, "it restarts", seconds=60
        )
        assert outcomes(metrics, queue)["completed"] == 4
        assert value(metrics, "handler_seconds_count", queue) == 4
        queue.fill(2)
        metrics_when(
            worker, lambda metrics: outcomes(metrics, queue)["completed"] == 6, "more", seconds=60
        )
