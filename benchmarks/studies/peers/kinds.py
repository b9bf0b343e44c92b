"""The kinds of scenario: each runs one peer once and returns figures."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from benchmarks.studies.peers import figures as count
from benchmarks.studies.peers.figures import Figures, Sample
from benchmarks.studies.peers.process import Program, start_together
from benchmarks.studies.peers.runs import Run
from benchmarks.studies.peers.watch import Counters, sizes

_STEP = 0.02
_SETTLE = 1.0
_LEAD = 2.0
_PATIENCE = 15.0
_ENOUGH, _MUCH = 0.1, 0.5
_FAR = 10**7
_TOMORROW = 86400


class _Crew:
    """The programs of a run without its producers, and the counters of its database."""

    def __init__(self, run: Run, stack: ExitStack) -> None:
        self._maintenance = stack.enter_context(run.maintenance())
        self.watch = stack.enter_context(run.watch())
        self.consumers = run.consumers(stack)
        self.programs = [*self.consumers, *self._maintenance]

    def cpu_so_far(self) -> float:
        """Return the CPU seconds of all programs since they started."""
        return sum(program.cpu_so_far() for program in self.programs)

    def stop(self) -> tuple[list[dict[str, Any]], Counters]:
        """Stop the programs; return the consumers' results and the counters at their end."""
        results = _stop(self.consumers)
        self.watch.wait_quiet()
        end = self.watch.read()
        _stop(self._maintenance)
        return results, end


def steady(run: Run) -> Figures:
    """Send messages at a rate to waiting workers; the first seconds do not count."""
    scenario = run.scenario
    with ExitStack() as stack:
        crew = _Crew(run, stack)
        consumers = crew.consumers
        lead = stack.enter_context(run.producer(seconds=_LEAD))
        producer = stack.enter_context(run.producer(first=_FAR))
        before = sizes(run.url)
        start_together([*consumers, lead])
        first = lead.finish()["messages"]
        producer.wait_ready()
        for program in consumers:
            program.mark()
        spent, start, began = crew.cpu_so_far(), crew.watch.read(), time.time()
        handled = sum(program.handled for program in consumers)
        start_together([producer])
        _wait(consumers, scenario.seconds + _SETTLE, lambda: _sent(producer, first))
        sent = producer.finish()["messages"]
        results, end = crew.stop()
    numbers = _sum(0, first) + _sum(_FAR, sent)
    count.check(results, first + sent, numbers)
    total = sum(result["messages"] for result in results)
    passed = total - handled
    return (
        count.rate(passed, began, results, capped=total < first + sent)
        | count.latency(results)
        | count.costs(start, end, passed)
        | count.client_cpu([producer, *crew.programs], passed, spent)
        | count.growth(before, sizes(run.url), total)
    )


def burst(run: Run) -> Figures:
    """Send messages as fast as one client can, to waiting workers."""
    with ExitStack() as stack:
        crew = _Crew(run, stack)
        consumers = crew.consumers
        producer = stack.enter_context(run.producer())
        before = sizes(run.url)
        start_together(consumers)
        producer.wait_ready()
        time.sleep(_SETTLE)
        spent, start, began = crew.cpu_so_far(), crew.watch.read(), time.time()
        start_together([producer])
        _wait(consumers, run.scenario.seconds, lambda: _sent(producer, 0))
        producer.stop()
        produced = producer.finish()
        results, end = crew.stop()
    sent = produced["messages"]
    count.check(results, sent, _sum(0, sent))
    passed = sum(result["messages"] for result in results)
    length = max(produced["ended"] - produced["began"], 1e-6)
    return (
        count.rate(passed, began, results, capped=passed < sent)
        | {"sent_per_second": round(sent / length, 1)}
        | count.latency(results)
        | count.costs(start, end, passed)
        | count.client_cpu([producer, *crew.programs], passed, spent)
        | count.growth(before, sizes(run.url), passed)
    )


def drain(run: Run) -> Figures:
    """Fill a queue, then start the workers.

    The clock starts when each process has handled a message, or all together a tenth, so that the
    programs' start does not count. If more than half was handled by then, the clock runs from the
    start and the figures are cold. It ends at the start of the last handler.
    """
    scenario = run.scenario
    with ExitStack() as stack:
        stack.enter_context(run.held())
        crew = _Crew(run, stack)
        consumers = crew.consumers
        delayed = 0
        if scenario.delayed:
            delayed = run.fill(messages=scenario.delayed, delay_seconds=_TOMORROW)["messages"]
        before, empty = sizes(run.url), crew.watch.read()
        filled = run.fill()
        put_in, full = crew.watch.read(), sizes(run.url)
        run.vacuum()
        depth = filled["messages"]
        expected = min(scenario.target or depth, depth)
        for program in consumers:
            program.wait_ready()
        start, began, spent = crew.watch.read(), time.time(), 0.0
        start_together(consumers)
        first = _warm(consumers, expected)
        cold = first > _MUCH * expected
        if cold:
            first = 0
        else:
            spent, start, began = crew.cpu_so_far(), crew.watch.read(), _report_time(consumers)
        samples = _wait(consumers, scenario.seconds, lambda: expected)
        results, end = crew.stop()
    if expected == depth:
        count.check(results, depth, _sum(0, depth))
    total = sum(result["messages"] for result in results)
    length = max(filled["ended"] - filled["began"], 1e-6)
    return (
        count.rate(total - first, began, results, capped=total < expected)
        | count.costs(start, end, total - first)
        | count.reads(put_in, end, total)
        | count.client_cpu(crew.programs, total - first, spent)
        | count.rates_within(samples)
        | {
            "cold": cold,
            "depth": depth,
            "delayed": delayed,
            "fill_per_second": round(depth / length, 1),
            "fill_wal_bytes_per_message": round((put_in.wal_bytes - empty.wal_bytes) / depth, 1),
        }
        | {f"fill_{name}": size for name, size in count.growth(before, full, depth).items()}
        | count.growth(full, sizes(run.url), total)
        | (count.order(results) if scenario.keys else {})
    )


def idle(run: Run) -> Figures:
    """Let workers wait at an empty queue; the first 2 seconds do not count."""
    with ExitStack() as stack:
        crew = _Crew(run, stack)
        consumers = crew.consumers
        start_together(consumers)
        time.sleep(2 * _SETTLE)
        spent, start, began = crew.cpu_so_far(), crew.watch.read(), time.monotonic()
        time.sleep(run.scenario.seconds)
        end, seconds = crew.watch.read(), time.monotonic() - began
        spent, connections = crew.cpu_so_far() - spent, crew.watch.connections()
        crew.stop()
    queries = None
    if end.queries is not None and start.queries is not None:
        queries = round((end.queries - start.queries) / seconds, 2)
    return {
        "seconds": round(seconds, 3),
        "connections": connections,
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


def _sum(first: int, messages: int) -> int:
    """Return the sum of `messages` consecutive numbers."""
    return messages * (2 * first + messages - 1) // 2


def _sent(producer: Program, before: int) -> int | None:
    """Return the number of messages sent, None while the producer runs."""
    if producer.ended and producer.result:
        return before + int(producer.result["messages"])
    return None


def _handled(consumers: list[Program]) -> int:
    return sum(program.handled for program in consumers)


def _warm(consumers: list[Program], expected: int) -> int:
    """Wait until every process has handled messages; return their number."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and not any(program.ended for program in consumers):
        if all(program.handled for program in consumers):
            break
        if _handled(consumers) >= _ENOUGH * expected:
            break
        time.sleep(_STEP)
    return _handled(consumers)


def _report_time(consumers: list[Program]) -> float:
    """Return the mean time of the processes' last reports."""
    times = [program.handled_at for program in consumers if program.handled]
    return sum(times) / len(times) if times else time.time()


def _wait(consumers: list[Program], cap: float, expected: Callable[[], int | None]) -> list[Sample]:
    """Wait until all messages are handled, or for `cap` seconds; return samples."""
    began = time.monotonic()
    samples: list[Sample] = [(0.0, _handled(consumers))]
    while (now := time.monotonic() - began) < cap:
        handled = _handled(consumers)
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
    """Stop programs and return their results."""
    for program in programs:
        program.stop()
    return [program.finish() for program in programs]
