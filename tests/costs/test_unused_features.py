"""Cost of features for a queue that does not use them, on every engine."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.costs.watching import Statement, Watch, watch
from tests.engines.base import Server
from tests.helpers.dialects import dialect_of

TABLES = {
    "groups": {"group_waiting", "group_slot", "deferred", "lock_bucket"},
    "predecessors": {"blocked", "successor", "deferred"},
    "limits": {"limit_lock", "started"},
    "expiry": {"expiry", "internal_expire"},
    "results": {"result"},
    "history": {"history"},
    "schedules": {"schedule"},
    "topics": {"topic_binding"},
}
"""By feature, its tables and the routines called for it."""

IDLE = {"postgres": "with recursive search as", "mysql": "sysdate"}
"""Words of the statement by which maintain finds queues with work, or without."""

SEEN = {
    ("postgres", "ends", "limits"): 2,
    ("postgres", "returns", "expiry"): 5,
    ("sqlserver", "ends", "predecessors"): 4,
    ("sqlserver", "returns", "predecessors"): 2,
    ("postgres", "maintain", "limits"): 1,
    ("postgres", "maintain", "results"): 1,
    ("postgres", "maintain", "history"): 2,
    ("postgres", "maintain", "schedules"): 1,
    ("mysql", "maintain", "groups"): 2,
    ("mysql", "maintain", "predecessors"): 2,
    ("mysql", "maintain", "expiry"): 2,
    ("mysql", "maintain", "schedules"): 1,
    ("sqlserver", "maintain", "schedules"): 1,
}
"""Number of statements that name an unused feature. Default 0.

PostgreSQL's enqueue reads the limit lock in the statement that stores a message with options.
SQL Server seeks successors in a delete that runs anyway:
engine_only/sqlserver/test_predecessors.py.
"""

MAINTAINED = {
    "postgres": set(TABLES),
    "mysql": set(TABLES),
    "sqlserver": {"schedules", "topics"},
    "oracle": set(),
}
"""The features whose statements in a maintain are counted."""


class Ran(NamedTuple):
    """Statements by phase of a message's life, on a queue without features."""

    engine: str
    phases: dict[str, list[Statement]]


def ends(watched: Watch, queue: str) -> None:
    """Enqueue messages in every way, and complete them."""
    name = {"queue_name": queue}
    for body in "abc":
        watched.call("enqueue", **name, body=body)
    watched.call("enqueue", **name, body="keyed", dedup_key="key")
    watched.call("enqueue", **name, body="late", delay_seconds=60)
    if watched.server.engine == "mysql":
        watched.call("put", **name, body="put")
    watched.call("enqueue_batch", **name, messages=[{"body": "x"}] * 12)
    for size in (1, 3):
        claim = watched.call("dequeue_fast", **name, batch_size=size)
        claim = watched.call("complete_and_dequeue", **name, claim_id=claim, batch_size=size)
        watched.call("complete", **name, claim_id=claim)


def returns(watched: Watch, queue: str) -> None:
    """Return, kill and reset leased messages."""
    name = {"queue_name": queue}
    for routine in ("retry_later", "fail_now", "release", "extend_lease"):
        for size in (1, 2):
            claim = watched.call("dequeue_fast", **name, batch_size=size)
            watched.call(routine, **name, claim_id=claim)
    dialect_of(watched.admin).expire_claim(watched.admin, claim)
    watched.call("reap", **name)


def maintain(watched: Watch, queue: str) -> None:
    """Maintain and purge a queue with waiting, leased and dead messages."""
    watched.call("maintain", queue_name=queue)
    watched.call("purge_archive", queue_name=queue)


PHASES: tuple[Callable[[Watch, str], None], ...] = (ends, returns, maintain)


@pytest.fixture(scope="module")
def ran(server: Server, database_url: str) -> Ran:
    """Return the statements of each phase, after another queue has used every feature."""
    phases = {}
    with watch(server, database_url) as watched:
        for queue in ("unused", "plain"):
            watched.call("create_queue", queue_name=queue)
            watched.call("bind_topic", queue_name="unused", topic_pattern="plain.#")
            for phase in PHASES:
                phases[phase.__name__] = watched.run(lambda: phase(watched, queue))  # noqa: B023
    return Ran(server.engine, phases)


@pytest.mark.requires("genuine")
@pytest.mark.promise("P13", "P28", "P29", "P30", "P32", "P37")
@pytest.mark.parametrize("phase", [phase.__name__ for phase in PHASES])
@pytest.mark.parametrize("feature", TABLES)
def test_unused_feature_runs_no_statement(ran: Ran, phase: str, feature: str) -> None:
    if phase == "maintain" and feature not in MAINTAINED[ran.engine]:
        pytest.skip("not counted there yet; to run it: --engine postgres18,mariadb")
    statements = ran.phases[phase]
    assert len(statements) > 20
    seen = set[str]().union(*(statement.names for statement in statements))
    assert seen >= ({"claim", "ready"} if phase == "maintain" else {"claim", "ready", "message"})
    idle = IDLE.get(ran.engine) if phase == "maintain" else None
    naming = [
        statement
        for statement in statements
        if statement.names & TABLES[feature] and (idle is None or idle not in statement.text)
    ]
    assert len(naming) == SEEN.get((ran.engine, phase, feature), 0), naming


@pytest.mark.requires("genuine")
@pytest.mark.promise("P38")
def test_release_without_delay_delays_nothing(server: Server, database_url: str) -> None:
    with watch(server, database_url) as watched:
        watched.call("create_queue", queue_name="released")
        watched.call("enqueue_batch", queue_name="released", messages=[{"body": "x"}] * 4)
        claims = [
            watched.call("dequeue_fast", queue_name="released", batch_size=size)
            for size in (1, 2, 1)
        ]

        def release() -> None:
            for claim in claims:
                watched.call("release", queue_name="released", claim_id=claim)

        statements = watched.run(release)
    assert set[str]().union(*(statement.names for statement in statements)) >= {"claim", "ready"}
    of_a_delay = {"delayed", "internal_push_delayed", "internal_back_off"}
    assert not [statement for statement in statements if statement.names & of_a_delay]
