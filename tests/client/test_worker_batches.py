"""Batch sizes of a worker."""

import threading

import pytest

import rowq
from rowq.worker import batching
from rowq.worker.batching import BatchSize
from rowq.worker.claim import LiveClaim
from tests.engines.base import wait_until
from tests.helpers.worker_queue import MakeQueue
from tests.helpers.workers import running


def adaptive() -> BatchSize:
    return BatchSize(None)


def test_batch_size_follows_the_handler() -> None:
    batch = adaptive()
    sizes = [batch.value]
    for _ in range(7):
        batch.record(batch.value, 0.0)
        sizes.append(batch.value)
    assert sizes == [1, 2, 4, 8, 16, 32, 50, 50]
    batch.record(0, 3.0)
    assert batch.value == 50, "a released claim does not count"
    batch.record(50, 3.0)
    assert batch.value == 1


@pytest.mark.parametrize(
    ("seconds", "size"), [(0.001, 50), (0.01, 10), (0.04, 2), (0.1, 1), (2.0, 1)]
)
def test_batch_size_takes_a_tenth_of_a_second(seconds: float, size: int) -> None:
    batch = adaptive()
    for _ in range(10):
        batch.record(batch.value, batch.value * seconds)
    assert batch.value == size


@pytest.mark.parametrize(
    ("fixed", "together", "size"), [(7, False, 7), (7, True, 7), (None, True, 10)]
)
def test_fixed_or_concurrent_batch_size_stays(fixed: int | None, together: bool, size: int) -> None:
    batch = BatchSize(fixed, is_together=together)
    batch.record(1, 9.0)
    batch.record(size, 0.0)
    assert batch.value == size


@pytest.mark.slow("waits for time limits")
@pytest.mark.parametrize("customers", [None, 3], ids=["no groups", "a group a customer"])
def test_slow_messages_spread_over_idle_threads(
    make_queue: MakeQueue, customers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_TARGET_SECONDS", 0.0)
    queue = make_queue()
    keys = [f"customer {n % customers}" if customers else None for n in range(12)]
    queue.enqueue_batch([rowq.NewMessage(data=n, group_key=key) for n, key in enumerate(keys)])
    # Passed only if three threads have one message each.
    three_at_a_time = threading.Barrier(3)
    assert (
        queue.drain(lambda _message: three_at_a_time.wait(60), threads=3, batch_size=None).processed
        == 12
    )


@pytest.mark.parametrize("transactional", [False, True])
def test_messages_behind_a_slow_one_are_released(
    make_queue: MakeQueue, transactional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_TARGET_SECONDS", 60.0)
    queue = make_queue()
    queue.fill(100)
    slow_has_begun, others_are_done = threading.Event(), threading.Event()
    seen: list[int] = []

    def handler(message: rowq.HeldMessage, *_connection: object) -> None:
        # The first claim of at least 32 messages.
        if message.data == 64:
            slow_has_begun.set()
            assert others_are_done.wait(60)
        seen.append(message.data)

    options = {"transactional": transactional, "lease_seconds": 60, "batch_size": None}
    with running(queue.worker(handler, **options)) as first:
        assert slow_has_begun.wait(60)
        with running(queue.worker(handler, **options)) as second:
            wait_until(lambda: len(seen) == 99, "the others are handled")
            others_are_done.set()
            wait_until(
                lambda: first.stats.processed + second.stats.processed == 100, "all are completed"
            )
    assert sorted(seen) == list(range(100))
    assert first.stats.released == second.stats.processed
    assert first.stats.stale == second.stats.stale == 0


def test_failed_early_release_is_repeated_at_the_end(
    make_queue: MakeQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "_TARGET_SECONDS", 60.0)
    queue = make_queue(max_attempts=1)
    queue.fill(10)
    is_releasing, has_handled = threading.Event(), threading.Event()
    release = LiveClaim._release

    def fails_once(self: LiveClaim, called: rowq.Queue, message_ids: list[int]) -> None:
        if message_ids and self._releasing.locked() and not is_releasing.is_set():
            is_releasing.set()
            assert has_handled.wait(60)
            raise rowq.QueueBusy("planted")
        release(self, called, message_ids)

    def handler(message: rowq.HeldMessage) -> None:
        # The second claim has two messages.
        if message.data == 1:
            assert is_releasing.wait(60)
            has_handled.set()

    monkeypatch.setattr(LiveClaim, "_release", fails_once)
    stats = queue.drain(handler, batch_size=None, lease_seconds=600)
    assert (stats.processed, stats.failed, stats.stale) == (10, 0, 0)
    assert is_releasing.is_set()
