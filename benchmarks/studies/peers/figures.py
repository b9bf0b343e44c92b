"""Figures of one run, from the programs' results and the server's counters."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from benchmarks.studies.peers.process import Program
from benchmarks.studies.peers.protocol import percentile
from benchmarks.studies.peers.watch import Counters

Figures = dict[str, Any]
Sample = tuple[float, int]
"""Seconds since the workers started, and messages handled by then."""

_BEGINNING, _END = 0.2, 0.8


class WrongCountError(RuntimeError):
    """A peer lost messages or handled some twice; the text has their number."""


def check(results: Sequence[dict[str, Any]], expected: int, numbers: int) -> None:
    """Raise WrongCountError if messages were lost or handled twice.

    expected: number of messages; fewer may be handled. numbers: the sum of their numbers.
    """
    messages = sum(result["messages"] for result in results)
    if messages == 0:
        raise WrongCountError("no message was handled in the time limit")
    if messages > expected:
        raise WrongCountError(f"{messages - expected} of {expected} messages were handled twice")
    if messages == expected and sum(result["sum"] for result in results) != numbers:
        raise WrongCountError(f"of {expected} messages, some were lost and as many handled twice")


def rate(
    messages: int, began: float, results: Sequence[dict[str, Any]], *, capped: bool
) -> Figures:
    """Return the messages handled since `began` (seconds since 1970), and their rate.

    Raises WrongCountError if there were none.
    """
    if messages <= 0:
        raise WrongCountError(
            "it handled its first messages only, then none in the time limit"
            if capped
            else "all messages were handled before the clock started"
        )
    seconds = max(max(result["ended"] or began for result in results) - began, 1e-3)
    return {
        "messages": messages,
        "capped": capped,
        "seconds": round(seconds, 3),
        "messages_per_second": round(messages / seconds, 1),
    }


def costs(start: Counters, end: Counters, messages: int) -> Figures:
    """Return the server's costs per message between two readings."""
    return {
        "server_cpu_us_per_message": round((end.cpu - start.cpu) / messages * 1e6, 1),
        "wal_bytes_per_message": round((end.wal_bytes - start.wal_bytes) / messages, 1),
    } | reads(start, end, messages)


def reads(start: Counters, end: Counters, messages: int) -> Figures:
    """Return buffers, queries and transactions per message between two readings.

    The server's sessions report these once a second and when they end.
    """
    queries = None
    if end.queries is not None and start.queries is not None:
        queries = round((end.queries - start.queries) / messages, 3)
    return {
        "buffers_per_message": round((end.buffers - start.buffers) / messages, 1),
        "queries_per_message": queries,
        "transactions_per_message": round((end.transactions - start.transactions) / messages, 3),
        "deadlocks": end.deadlocks - start.deadlocks,
    }


def client_cpu(programs: Sequence[Program], messages: int, before: float = 0) -> Figures:
    """Return the CPU time per message of programs that have ended; before: seconds to subtract."""
    spent = sum(program.cpu for program in programs) - before
    return {"client_cpu_us_per_message": round(spent / messages * 1e6, 1)}


def latency(results: Sequence[dict[str, Any]]) -> Figures:
    """Return the milliseconds from the call that adds a message to its handler's start."""
    counts: Counter[int] = Counter()
    for result in results:
        counts.update({int(bucket): count for bucket, count in result["latency_us"].items()})
    return {
        "latency_ms_p50": round(percentile(counts, 0.5) / 1e3, 3),
        "latency_ms_p99": round(percentile(counts, 0.99) / 1e3, 3),
        "latency_ms_max": round(max(r["latency_max_us"] for r in results) / 1e3, 3),
    }


def growth(before: tuple[int, int], after: tuple[int, int], messages: int) -> Figures:
    """Return the growth of tables and indexes in bytes per message."""
    return {
        "table_bytes_per_message": round((after[0] - before[0]) / messages, 1),
        "index_bytes_per_message": round((after[1] - before[1]) / messages, 1),
    }


def order(results: Sequence[dict[str, Any]]) -> Figures:
    """Return the number of messages handled after a later one of their group; 0 is correct."""
    starts = sorted(
        (time, key, number) for result in results for key, number, time in result["starts"]
    )
    newest: dict[str, int] = {}
    late = 0
    for _, key, number in starts:
        late += number < newest.get(key, number)
        newest[key] = max(number, newest.get(key, number))
    return {"out_of_order": late}


def rates_within(samples: Sequence[Sample]) -> Figures:
    """Return the rate in the first and in the last 20 % of the time."""
    if len(samples) < 3:
        return {"rate_start": None, "rate_end": None}
    length = samples[-1][0]
    first = next(sample for sample in samples if sample[0] >= _BEGINNING * length)
    last = next(sample for sample in samples if sample[0] >= _END * length)
    if last == samples[-1]:
        last = samples[-2]
    rest = samples[-1][1] - last[1], samples[-1][0] - last[0]
    return {
        "rate_start": round((first[1] - samples[0][1]) / first[0], 1),
        "rate_end": round(rest[0] / rest[1], 1),
    }
