"""The queue in memory behaves like the model, call by call."""

from collections import Counter
from functools import partial

from rowq.contrib.testing import MemoryQueue
from tests.concurrency.comparison import Comparison
from tests.dice import dice, times


def test_memory_queue_returns_what_the_model_returns() -> None:
    seen: Counter[str] = Counter()
    for number in range(times(40)):
        queue = MemoryQueue()
        comparison = Comparison(
            queue,
            "orders",
            seen,
            engine="postgres",
            pass_seconds=partial(MemoryQueue.pass_seconds, queue),
            has_groups=True,
            has_predecessors=True,
            has_cancel=True,
            has_expiry=True,
            result_seconds=3899 * (number % 2),
            topic="order.paid",
        )
        for place in range(90):
            comparison.step(dice("memory", number, place))
        comparison.compare_messages()
    assert seen["maintain: expired"]
    assert seen["waits for others"]
    assert seen["result: completed"]
    assert seen["publish"]
