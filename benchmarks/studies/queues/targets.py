"""The target ratios of rowq on PostgreSQL; every report checks them."""

from collections.abc import Iterator

from benchmarks.harness.measure import Target
from benchmarks.harness.results import Results

_DRAINS = {"drain_durable": "synchronous_commit on", "drain_async": "synchronous_commit off"}


def check_targets(results: Results) -> list[Target]:
    """Return all targets with their results."""
    return [*_against_peer(results), *_under_snapshot(results), *_by_depth(results)]


def _against_peer(results: Results) -> Iterator[Target]:
    for name, how in _DRAINS.items():
        rate = results.between(name, "messages_per_second", "rowq", "pgmq")
        wal = results.between(name, "wal_bytes_per_message", "rowq", "pgmq")
        yield Target(f"Drain in batches of 50, {how}: rate, rowq / pgmq", 1.5, True, rate)
        yield Target(
            f"Drain in batches of 50, {how}: WAL per message, rowq / pgmq", 0.65, False, wal
        )
    for name, sessions in (("one_by_one", 4), ("one_by_one_16", 16)):
        rate = results.between(name, "messages_per_second", "rowq", "pgmq")
        what = f"One by one, {sessions} sessions, durable commits: rate, rowq / pgmq"
        yield Target(what, 1.25, True, rate)


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
