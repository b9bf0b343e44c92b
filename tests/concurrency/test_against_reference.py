"""Random calls of one session, each compared with a model in plain Python."""

import uuid
from collections import Counter
from functools import partial
from itertools import count
from random import Random

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

import rowq
from rowq.engines import engine_for_connection
from tests.concurrency.comparison import Comparison
from tests.dice import IS_GIVEN, SEED, dice, limit, times
from tests.engines.base import Connection, Server
from tests.stored_times import pass_seconds

pytestmark = pytest.mark.slow("hypothesis draws long sequences")

SETTINGS = settings(
    max_examples=times(15),
    deadline=None,
    derandomize=not IS_GIVEN,
    database=None,
    suppress_health_check=list(HealthCheck),
)
EVERYTHING = {
    *("enqueue: enqueued", "enqueue: duplicate", "dequeue: some", "dequeue: none"),
    *("complete: completed", "complete: stale", "complete: refused"),
    *("retry_later: retrying", "retry_later: dead", "retry_later: stale", "retry_later: refused"),
    *("fail_now: dead", "fail_now: stale", "fail_now: refused"),
    *("release: released", "release: snoozed", "release: stale", "release: refused"),
    "extend_lease",
    *("cancel: cancelled", "cancel: leased", "cancel: not_found"),
    *("reset: reset", "reset: duplicate", "promote", "reap: back", "reap: died"),
    *("maintain: promoted", "maintain: reaped", "purge", "discard"),
}
OF_CANCEL = {
    *("cancel: requested", "cancel_many", "completed although cancelled"),
    *("retry_later: cancelled", "fail_now: cancelled", "release: cancelled"),
    *("alter: altered", "alter: leased", "alter: dead", "alter: not_found"),
}
OF_RESULTS = {
    *("result: completed", "result: cancelled", "result: expired", "result: dead"),
    *("result: ready", "result: None"),
}
OF_GROUPS = {"blocked", "groups that wait for a dead message", "maintain: deferred work"}


@pytest.mark.timeout(limit(300))
@pytest.mark.promise(
    "P04", "P05", "P08", "P09", "P10", "P11", "P12", "P18", "P21", "P22", "P23",
    "P25", "P26", "P27", "P32", "P34", "P35", "P36", "P38", "P39",
)  # fmt: skip
def test_random_calls_return_what_the_model_returns(
    server: Server, connection: Connection, queue_name: str
) -> None:
    has_groups = "groups" in server.capabilities
    has_predecessors = "predecessors" in server.capabilities
    has_topics = "topics" in server.capabilities
    has_cancel = "cancel" in server.capabilities
    has_expiry = "expiry" in server.capabilities
    has_results = "results" in server.capabilities
    engine = engine_for_connection(connection).name
    numbers = count()
    seen: Counter[str] = Counter()

    @SETTINGS
    @given(steps=st.lists(st.integers(0, 2**32), min_size=80, max_size=100))
    def compare(steps: list[int]) -> None:
        number_of_queue = next(numbers)
        name = f"{queue_name}_{number_of_queue}"
        comparison = Comparison(
            rowq.Queue(connection),
            name,
            seen,
            engine=engine,
            pass_seconds=partial(pass_seconds, connection, name),
            has_groups=has_groups,
            has_predecessors=has_predecessors,
            has_cancel=has_cancel,
            has_expiry=has_expiry,
            # Times of the test are multiples of 300 s.
            result_seconds=3899 * (number_of_queue % 2) if has_results else None,
            topic=f"w{uuid.uuid4().hex}" if has_topics else None,
        )
        for place, number in enumerate(steps):
            comparison.step(Random(f"{number} {place}"))
            if has_cancel and place % 8 == 7:
                comparison.alter_message(Random(f"alter {number}"))
        comparison.compare_messages()

    # Hypothesis's examples depend on the loaded modules and repeat themselves; our seeded ones are
    # the same in every run and reach every outcome.
    for number in range(times(30)):
        draw = dice("steps", number)
        steps = [draw.randrange(2**32) for _ in range(90)]
        compare = example(steps=steps)(compare)
    (seed(SEED)(compare) if IS_GIVEN else compare)()
    # Another seed may miss a rare outcome, so a given seed is not judged.
    everything = EVERYTHING | (OF_GROUPS if has_groups else set())
    everything |= {"waits for others"} if has_predecessors else set()
    everything |= {"publish"} if has_topics else set()
    everything |= OF_CANCEL if has_cancel else set()
    everything |= {"maintain: expired"} if has_expiry else set()
    everything |= OF_RESULTS if has_results else set()
    assert IS_GIVEN or everything - {what for what, times in seen.items() if times} == set()
