"""The features, each as what sets its queue up and what its messages carry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

GROUPS = 50

BATCHES = (1, 50)
"""Messages of a call; each feature is measured with either."""


SCHEDULES = BATCHES[-1]
"""Schedules that fall due at once, where rowq stands beside other queues."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature, switched on for a queue of its own.

    title: for the page. settings: the queue's, as create_queue has them. message: the keys that
    enqueue has for the message of a number, besides its body. pairs: whether every second message
    waits for the one before it. by: what brings the messages in: enqueue, publish, or maintain,
    which makes them of as many due schedules as a batch has messages. queues: how many get each
    message. results: whether each is completed with a result.
    """

    name: str
    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    message: Callable[[int], Mapping[str, Any]] = lambda _: {}
    pairs: bool = False
    by: str = "enqueue"
    queues: int = 1
    results: bool = False


RESULT_BYTES = 200

PLAIN = "plain"
SCHEDULE = "schedule"
RESULT = "result"
_SHORTLY = {"result_seconds": 0.001}
"""Maintain finds what was kept to be old, so that removing it is part of the cost."""

FEATURES = (
    Feature(PLAIN, "a text body and nothing else"),
    Feature("dedup_key", "each message has its own", message=lambda n: {"dedup_key": f"order {n}"}),
    Feature("archive_days", "1: maintain moves what is finished", {"archive_days": 1}),
    Feature(
        "group_key",
        f"the messages are of {GROUPS} groups, one of each in work at a time",
        message=lambda n: {"group_key": f"customer {n % GROUPS}"},
    ),
    Feature("predecessor_ids", "every second message waits for the one before it", pairs=True),
    Feature("max_leased", "10,000, of which a batch is used", {"max_leased": 10_000}),
    Feature("rate_limit", "10,000 a second, not reached", {"rate_limit": 10_000}),
    Feature("topic, 1 queue", "published to a topic that a queue is bound to", by="publish"),
    Feature("topic, 3 queues", "the same for three; each delivery counts", by="publish", queues=3),
    Feature(
        "expire_seconds", "a day, which does not pass", message=lambda _: {"expire_seconds": 86_400}
    ),
    Feature("result_seconds", "how each has ended is kept, then removed by maintain", _SHORTLY),
    Feature(RESULT, f"the same with a result of {RESULT_BYTES} bytes", _SHORTLY, results=True),
    Feature(
        "history_days", "1: each attempt is kept; removing it is not in here", {"history_days": 1}
    ),
    Feature(SCHEDULE, "maintain makes the messages of due schedules", by="maintain"),
)
