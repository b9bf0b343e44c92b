"""create_queue."""

from typing import Any

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue_one, enqueue, refused, rolled_back
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together

SETTINGS: dict[str, Any] = {
    "lease_seconds": 7,
    "max_attempts": 3,
    "backoff_base_seconds": 1.5,
    "backoff_factor": 3.25,
    "backoff_cap_seconds": 99.5,
    "backoff_jitter": 0.75,
    "archive_days": 2,
    "result_seconds": 600.5,
    "history_days": 3,
}
DEFAULTS: dict[str, Any] = {
    "lease_seconds": 30,
    "max_attempts": 10,
    "backoff_base_seconds": 5,
    "backoff_factor": 2,
    "backoff_cap_seconds": 3600,
    "backoff_jitter": 0.2,
    "archive_days": 0,
    "result_seconds": 0,
    "history_days": 0,
}
RANGES = {
    "lease_seconds": (1, 86400, 1),
    "max_attempts": (0, 10000, 1),
    "backoff_base_seconds": (0, 86400, 0.001),
    "backoff_factor": (1, 10, 0.001),
    "backoff_cap_seconds": (0, 31536000, 0.001),
    "backoff_jitter": (0, 1, 0.001),
    "archive_days": (0, 36500, 1),
    "result_seconds": (0, 31536000, 0.001),
    "history_days": (0, 36500, 1),
}
INSIDE = [(name, value) for name, (low, high, _) in RANGES.items() for value in (low, high)]
OUTSIDE = [
    (name, value)
    for name, (low, high, step) in RANGES.items()
    for value in (low - step, high + step, -1, 2147483647)
]
NOT_FINITE = [
    (name, float(value))
    for name in RANGES
    if name.startswith("backoff") or name == "result_seconds"
    for value in ("nan", "inf", "-inf")
]


@pytest.fixture
def unmade(connection: Connection, queue_name: str) -> CheckedQueue:
    """Return a queue that does not exist yet."""
    return CheckedQueue(connection, queue_name)


def settings_of(queue: CheckedQueue) -> dict[str, Any]:
    row = queue.call_one("queue_stats")
    return {name: getattr(row, name) for name in SETTINGS}


@pytest.mark.promise("P15")
@pytest.mark.parametrize("settings", [{}, dict.fromkeys(SETTINGS)], ids=["none", "null"])
def test_create_queue_uses_the_defaults(unmade: CheckedQueue, settings: dict[str, Any]) -> None:
    row = unmade.call_one("create_queue", **settings)
    assert (row.queue_name, row.outcome) == (unmade.name, "created")
    assert settings_of(unmade) == DEFAULTS


@pytest.mark.promise("P15")
def test_create_queue_stores_its_settings(unmade: CheckedQueue) -> None:
    unmade.call("create_queue", **SETTINGS)
    assert settings_of(unmade) == SETTINGS


@pytest.mark.promise("P15")
def test_create_queue_leaves_an_existing_queue_unchanged(unmade: CheckedQueue) -> None:
    unmade.call("create_queue", **SETTINGS)
    unmade.enqueue("kept")
    row = unmade.call_one("create_queue", lease_seconds=99)
    assert (row.queue_name, row.outcome) == (unmade.name, "exists")
    assert settings_of(unmade) == SETTINGS
    assert unmade.dequeue_one().body == "kept"


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("setting", "value"), INSIDE)
def test_create_queue_accepts_the_bounds_of_settings(
    unmade: CheckedQueue, setting: str, value: float
) -> None:
    unmade.call("create_queue", **{setting: value})
    assert settings_of(unmade)[setting] == value


@pytest.mark.promise("P15")
@together(("setting", "value"), [*OUTSIDE, *NOT_FINITE])
def test_create_queue_refuses_settings_out_of_range(
    unmade: CheckedQueue, setting: str, value: float
) -> None:
    assert setting in unmade.refused("RQ711", "create_queue", **{setting: value})
    unmade.refused("RQ701", "queue_stats")


@pytest.mark.promise("P15")
@pytest.mark.parametrize("name", [None, "", "x" * 101, "a\nb", "a\tb", "a\x01b", "a\x7fb", "a\x1b"])
def test_create_queue_refuses_invalid_names(connection: Connection, name: str | None) -> None:
    assert "queue_name" in refused(connection, "RQ711", "create_queue", queue_name=name)


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "prefix",
    [
        "'; drop table queue; --",
        'double " quote',
        "back\\slash",
        "100 % %s %(x)s {} $1 :name",
        " leading and trailing ",
        "Größe",
        "キュー",
        "🐘 elephant",
        "e\u0301 decomposed",
        "rtl \u202e name",
        "null",
        "dot.dot/slash",
    ],
)
def test_queue_with_a_hostile_name_works(
    connection: Connection, queue_name: str, prefix: str
) -> None:
    name = prefix + queue_name[-20:] + " "
    assert call_one(connection, "create_queue", queue_name=name).queue_name == name
    enqueue(connection, name, "hello")
    row = dequeue_one(connection, name)
    assert row.body == "hello"
    call(connection, "complete", queue_name=name, claim_id=row.claim_id)
    assert call_one(connection, "maintain", queue_name=name).queue_name == name
    assert call_one(connection, "queue_stats", queue_name=name).queue_name == name
    assert name in {row.queue_name for row in call(connection, "queue_stats")}
    assert call_one(connection, "drop_queue", queue_name=name).outcome == "dropped"


@pytest.mark.promise("P20")
@pytest.mark.parametrize("character", ["x", "ü", "🐘"])
def test_queue_name_may_have_100_characters(
    connection: Connection, queue_name: str, character: str
) -> None:
    name = queue_name[-8:] + character * 92
    assert call_one(connection, "create_queue", queue_name=name).queue_name == name
    assert call_one(connection, "queue_stats", queue_name=name).queue_name == name
    refused(connection, "RQ711", "create_queue", queue_name=name + character)


@pytest.mark.pitfall("mysql 10")
@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    ("first", "second"),
    [("orders", "Orders"), ("\u00e9", "e\u0301"), ("trailing", "trailing "), ("ss", "ß")],
)
def test_similar_names_are_different_queues(
    connection: Connection, queue_name: str, first: str, second: str
) -> None:
    names = [queue_name[-20:] + word for word in (first, second)]
    for name in names:
        assert call_one(connection, "create_queue", queue_name=name).outcome == "created"
    enqueue(connection, names[0], "first")
    assert call(connection, "dequeue_fast", queue_name=names[1]) == []
    assert dequeue_one(connection, names[0]).body == "first"


@pytest.mark.promise("P01", "P17")
def test_rolled_back_create_queue_leaves_no_queue(unmade: CheckedQueue) -> None:
    with rolled_back(unmade.connection):
        unmade.call("create_queue")
        unmade.enqueue("gone")
    unmade.refused("RQ701", "enqueue", body="x")
