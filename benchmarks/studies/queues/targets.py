"""The target ratios of rowq on PostgreSQL; every report checks them."""

from collections.abc import Iterator

from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results

RATE, CPU = "messages_per_second", "server_cpu_us_per_message"
_COMBINED = {
    "combined_1": ("One by one, 1 session", 1.6),
    "combined_4": ("One by one, 4 sessions", 1.6),
    "combined_16": ("One by one, 16 sessions", 1.5),
    "combined_drain_1": ("Drain in batches of 10, 1 session", 1.8),
    "combined_drain_16": ("Drain in batches of 10, 16 sessions", 1.6),
}
_ENQUEUE = {
    "enqueue_async_1": ("Enqueue, 1 session, not durable", 1.0),
    "enqueue_async_4": ("Enqueue, 4 sessions, not durable", 1.0),
    "enqueue_durable_1": ("Enqueue, 1 session, durable commits", 1.0),
    "enqueue_durable_4": ("Enqueue, 4 sessions, durable commits", 1.0),
    "enqueue_batch_10": ("Enqueue in batches of 10, not durable", 1.0),
    "enqueue_batch_100": ("Enqueue in batches of 100, not durable", 1.05),
}
_CALLS = {
    "maintain_1000": ("maintain, 1,000 queues, 20 messages waiting in each", 12),
    "maintain_10000": ("maintain, 10,000 queues, 20 messages waiting in each", 60),
    "schedules_1": ("maintain, 200,000 schedules in 1 queue, 100 due", 12),
    "schedules_20": ("maintain, 200,000 schedules in 20 queues, 100 due", 20),
    "queue_stats": ("queue_stats, 100,000 queues", 500),
}
_SPIKE = 3

_DRAINS = {"drain_durable": "synchronous_commit on", "drain_async": "synchronous_commit off"}


def check_targets(results: Results) -> list[Target]:
    """Return all targets with their results."""
    return [
        *_against_peer(results),
        *_in_one_call(results),
        *_of_enqueue(results),
        *_of_calls(results),
        *_under_snapshot(results),
        *_by_depth(results),
    ]


def _against_peer(results: Results) -> Iterator[Target]:
    for name, how in _DRAINS.items():
        rate = results.between(name, RATE, "rowq", "pgmq")
        wal = results.between(name, "wal_bytes_per_message", "rowq", "pgmq")
        yield Target(f"Drain in batches of 50, {how}: rate, rowq / pgmq", 1.5, True, rate)
        yield Target(
            f"Drain in batches of 50, {how}: WAL per message, rowq / pgmq", 0.65, False, wal
        )
    for name, sessions in (("one_by_one", 4), ("one_by_one_16", 16)):
        rate = results.between(name, RATE, "rowq", "pgmq")
        what = f"One by one, {sessions} sessions, durable commits: rate, rowq / pgmq"
        yield Target(what, 1.25, True, rate)


def _in_one_call(results: Results) -> Iterator[Target]:
    for name, (words, least) in _COMBINED.items():
        what = f"{words}, durable commits, complete_and_dequeue: rate, rowq / pgmq"
        yield Target(what, least, True, results.between(name, RATE, "rowq", "pgmq"))


def _of_enqueue(results: Results) -> Iterator[Target]:
    for name, (words, most) in _ENQUEUE.items():
        cpu, rate = (results.between(name, figure, "rowq", "pgmq") for figure in (CPU, RATE))
        yield Target(f"{words}: server CPU, rowq / pgmq", most, False, cpu)
        if "batch" not in name:
            yield Target(f"{words}: rate, rowq / pgmq", 1.0, True, rate)


def _of_calls(results: Results) -> Iterator[Target]:
    for name, (words, most) in _CALLS.items():
        found = results.figure(name, "rowq", "server_cpu_ms")
        yield Target(f"{words}: server CPU ms of a call", most, False, found)
        if name.startswith("maintain"):
            worst = results.figure(name, "rowq", "server_cpu_ms_worst")
            yield Target(f"{words}: of the worst call", _SPIKE * most, False, worst)


def _under_snapshot(results: Results) -> Iterator[Target]:
    for batch in (50, 1):
        name = f"snapshot_{batch}"
        found, peer = (
            results.within(name, system, "buffers_end", "buffers_start")
            for system in ("rowq", "pgmq")
        )
        what = f"Idle snapshot, batch {batch}: buffers per dequeue, end / start"
        yield Target(what, 1.5, False, found, peer)


def _by_depth(results: Results) -> Iterator[Target]:
    cases = {"delayed": "behind delayed messages", "backlog": "from a large backlog"}
    for case, words in cases.items():
        for batch in (1, 50):
            for unit, name in (("buffers", "buffers"), ("ms", "time")):
                found, peer = (
                    results.within(
                        "depth", system, f"{case}_{batch}_{unit}", f"small_{batch}_{unit}"
                    )
                    for system in ("rowq", "pgmq")
                )
                what = f"Dequeue {words}, batch {batch}: {name}, / small queue"
                yield Target(what, 1.2, False, found, peer)
