"""The kinds of scenario: each runs one peer once in a fresh database, and returns figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.rowq_bench.peers import figures as count
from benchmarks.rowq_bench.peers.figures import Figures, Sample
from benchmarks.rowq_bench.peers.process import Program, start_together
from benchmarks.rowq_bench.peers.runs import Run
from benchmarks.rowq_bench.peers.watch import sizes

_STEP = 0.02
_SETTLE = 1.0
_TOMORROW = 86400


def steady(run: Run) -> Figures:
    """Messages come at a rate for a while; the workers have a little time to handle the last."""
    return _fed(run, run.scenario.seconds + _SETTLE)


def burst(run: Run) -> Figures:
    """Messages come as fast as one client sends them, while the workers wait."""
    return _fed(run, run.scenario.seconds)


def _fed(run: Run, cap: float) -> Figures:
    with ExitStack() as stack:
        keepers = stack.enter_context(run.keeper())
        watch = stack.enter_context(run.watch())
        consumers = run.consumers(stack)
        producer = stack.enter_context(run.producer())
        before = sizes(run.url)
        start_together(consumers)
        time.sleep(_SETTLE)
        spent = sum(program.cpu_so_far() for program in consumers)
        start = watch.read()
        start_together([producer])
        _wait(consumers, cap, lambda: _sent(producer))
        producer.stop()
        produced = producer.finish()
        results = _stop(consumers)
        watch.wait_quiet()
        end = watch.read()
        _stop(keepers)
    sent = produced["messages"]
    found = count.work(results, produced["began"], sent, whole=True)
    handled = found["messages"]
    return (
        found
        | {"sent_per_second": round(sent / max(produced["ended"] - produced["began"], 1e-6), 1)}
        | count.latency(results)
        | count.costs(start, end, handled)
        | count.client_cpu([producer, *consumers, *keepers], handled, spent)
        | count.growth(before, sizes(run.url), handled)
    )


def drain(run: Run) -> Figures:
    """Messages are put in, then the workers are let go; the clock stops at the last handler."""
    scenario = run.scenario
    with ExitStack() as stack:
        stack.enter_context(run.held())
        keepers = stack.enter_context(run.keeper())
        watch = stack.enter_context(run.watch())
        consumers = run.consumers(stack)
        delayed = 0
        if scenario.delayed:
            delayed = run.fill(messages=scenario.delayed, delay_seconds=_TOMORROW)["messages"]
        before, start = sizes(run.url), watch.read()
        filled = run.fill()
        put_in, full = watch.read(), sizes(run.url)
        run.vacuum()
        for program in consumers:
            program.wait_ready()
        begun = watch.read()
        began = time.time()
        start_together(consumers)
        depth = filled["messages"]
        expected = min(scenario.target or depth, depth)
        samples = _wait(consumers, scenario.seconds, lambda: expected)
        results = _stop(consumers)
        watch.wait_quiet()
        end = watch.read()
        _stop(keepers)
    found = count.work(results, began, expected, whole=expected == depth)
    handled = found["messages"]
    length = max(filled["ended"] - filled["began"], 1e-6)
    return (
        found
        | count.costs(begun, end, handled)
        | count.client_cpu([*consumers, *keepers], handled)
        | count.rates_within(samples)
        | {
            "depth": depth,
            "delayed": delayed,
            "fill_per_second": round(depth / length, 1),
            "fill_wal_bytes_per_message": round((put_in.wal_bytes - start.wal_bytes) / depth, 1),
        }
        | {f"fill_{name}": size for name, size in count.growth(before, full, depth).items()}
        | count.growth(full, sizes(run.url), handled)
    )


def idle(run: Run) -> Figures:
    """Workers wait at an empty queue, after a little time to settle."""
    with ExitStack() as stack:
        keepers = stack.enter_context(run.keeper())
        watch = stack.enter_context(run.watch())
        consumers = run.consumers(stack)
        start_together(consumers)
        time.sleep(2 * _SETTLE)
        programs = [*consumers, *keepers]
        spent = sum(program.cpu_so_far() for program in programs)
        start, began = watch.read(), time.monotonic()
        time.sleep(run.scenario.seconds)
        end, seconds = watch.read(), time.monotonic() - began
        spent = sum(program.cpu_so_far() for program in programs) - spent
        _stop(programs)
    queries = None
    if end.queries is not None and start.queries is not None:
        queries = round((end.queries - start.queries) / seconds, 2)
    return {
        "seconds": round(seconds, 3),
        "queries_per_second": queries,
        "transactions_per_second": round((end.transactions - start.transactions) / seconds, 2),
        "server_cpu_ms_per_second": round((end.cpu - start.cpu) / seconds * 1e3, 2),
        "client_cpu_ms_per_second": round(spent / seconds * 1e3, 2),
        "wal_bytes_per_second": round((end.wal_bytes - start.wal_bytes) / seconds, 1),
    }


KINDS: dict[str, Callable[[Run], Figures]] = {
    "steady": steady,
    "burst": burst,
    "drain": drain,
    "idle": idle,
}


def _sent(producer: Program) -> int | None:
    """Return how many messages there are to handle, None while they still come."""
    return int(producer.result["messages"]) if producer.ended and producer.result else None


def _wait(
    consumers: list[Program], cap: float, expected: Callable[[], int | None]
) -> list[Sample]:
    """Wait until everything is handled, or the time is up; return when how much was handled."""
    began = time.monotonic()
    samples: list[Sample] = [(0.0, 0)]
    while (now := time.monotonic() - began) < cap:
        handled = sum(program.handled for program in consumers)
        if handled != samples[-1][1]:
            samples.append((now, handled))
        wanted = expected()
        if wanted is not None and handled >= wanted:
            break
        if any(program.ended for program in consumers):
            break
        time.sleep(_STEP)
    return samples


def _stop(programs: list[Program]) -> list[dict[str, Any]]:
    """Tell programs to stop and wait for their results; sets their `cpu`."""
    for program in programs:
        program.stop()
    return [program.finish() for program in programs]
