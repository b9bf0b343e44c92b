"""cancel on Oracle: session settings, reads, long headers and old snapshots."""

from datetime import UTC, datetime, timedelta
from typing import Any

import oracledb
import pytest

from tests.engine_only.oracle.plans import Plan, plans, reads
from tests.engine_only.oracle.test_plans import LARGE, fill
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.engines.oracle.session import number_of
from tests.helpers.calls import (
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    make_dead,
    outcomes,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

CANNOT_SERIALIZE = 8177
ENDS = ("complete", "retry_later", "release", "fail_now", "extend_lease")
LONG = "\N{SNAKE} é" * 12_000
"""A header value that is too long for a varchar2."""


def cancel(connection: Connection, queue: str, ids: list[int]) -> list[str]:
    """Cancel messages, leased ones included; return the outcomes."""
    arguments = {"queue_name": queue, "message_ids": ids, "include_leased": True}
    return [row.outcome for row in call(connection, "cancel", **arguments)]


@pytest.mark.pitfall("oracle 34")
@pytest.mark.promise("P10", "P15")
@pytest.mark.parametrize("setting", STRANGE)
def test_filters_compare_bytes_under_any_session_settings(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    words = ("ii-I", "II-i", "iiI", "ii_I", "\N{LATIN SMALL LETTER DOTLESS I}i-I", "íi-I")
    strange = connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    dead = {word: make_dead(connection, queue, "x", message_type=word)[0] for word in words}
    later, sooner = (datetime.now(UTC) + timedelta(days=days) for days in (1, -1))
    arguments: dict[str, Any] = {
        "queue_name": queue,
        "message_type": words[0],
        "died_before": later,
    }
    assert outcomes(call(strange, "reset", **arguments)) == {dead[words[0]]: "reset"}
    for word in words:
        enqueue(connection, queue, "x", group_key=word, headers={"tint-é": 1, word[1:]: word})
    found = call_one(strange, "cancel_many", queue_name=queue, group_key=words[0])
    assert found.cancelled == 1
    header = {"header_name": words[1][1:], "header_value": words[1]}
    found = call_one(strange, "cancel_many", queue_name=queue, enqueued_before=sooner, **header)
    assert found.cancelled == 0
    assert call_one(strange, "cancel_many", queue_name=queue, **header).cancelled == 1


@pytest.mark.pitfall("oracle 14")
@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("value", "text", "other"),
    [
        (LONG, LONG, f"{LONG[:-1]}e"),
        ("", "", " "),
        (10**37 + 1, f"{10**37 + 1}", f"{10**37}"),
        (-(10**37) - 1, f"{-(10**37) - 1}", f"{10**37 + 1}"),
    ],
    ids=["long", "empty", "38 digits", "below 0"],
)
def test_cancel_many_matches_very_long_and_large_header_values(
    connection: Connection, queue: str, value: Any, text: str, other: str
) -> None:
    enqueue(connection, queue, "x", headers={"tint": value})
    for tried, count in ((other, 0), (text, 1)):
        arguments = {"queue_name": queue, "header_name": "tint", "header_value": tried}
        assert call_one(connection, "cancel_many", **arguments).cancelled == count
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P34")
@pytest.mark.parametrize("routine", ENDS)
@pytest.mark.parametrize("has_cancels", [False, True])
def test_serializable_end_fails_if_a_message_was_cancelled_since(
    connection: Connection,
    connect: Connect,
    queue: str,
    routine: str,
    *,
    has_cancels: bool,
) -> None:
    """Recording another message's cancel again counts as a change."""
    first, second = enqueue(connection, queue, "first", "second")
    claim = dequeue(connection, queue, 2)[0].claim_id
    if has_cancels:
        assert cancel(connection, queue, [first]) == ["requested"]
    strict = connect()
    dialect = dialect_of(strict)
    dialect.begin(strict, "serializable")
    dialect.execute(strict, "select count(*) from rowq_queue")
    assert cancel(connection, queue, [second]) == ["requested"]
    with pytest.raises(oracledb.DatabaseError) as caught:
        call(strict, routine, queue_name=queue, claim_id=claim)
    assert number_of(caught.value) == CANNOT_SERIALIZE
    dialect.rollback(strict)
    ids = call_one(connection, "extend_lease", queue_name=queue, claim_id=claim).cancel_ids
    assert sorted(ids) == ([first, second] if has_cancels else [second])


def plans_of(server: OracleServer, connection: Connection, *words: str) -> list[Plan]:
    """Return the plans of statements that contain these words."""
    return [plan for plan in plans(server, connection) if all(word in plan.text for word in words)]


@pytest.mark.pitfall("oracle 36")
@pytest.mark.promise("P13", "P34")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_cancel_uses_keys_and_scans_leased_once(
    server: OracleServer, connection: Connection, queue: str, *, is_planned_while_empty: bool
) -> None:
    def cycle() -> None:
        ids = enqueue(connection, queue, "first", message_type="mail", priority=0)
        claim = dequeue_one(connection, queue).claim_id
        assert cancel(connection, queue, ids) == ["requested"]
        call(connection, "extend_lease", queue_name=queue, claim_id=claim)
        call(connection, "fail_now", queue_name=queue, claim_id=claim)
        make_dead(connection, queue, "dead", message_type="mail", priority=0)
        arguments = {"queue_name": queue, "message_type": "mail", "max_messages": 100}
        call(connection, "reset", **arguments, died_before=datetime.now(UTC))
        call(connection, "cancel_many", **arguments)

    if is_planned_while_empty:
        cycle()
    fill(connection, queue, LARGE)
    cycle()
    wrong = [plan.shown for plan in plans(server, connection) if list(plan.faults())]
    assert wrong == []
    found = plans_of(server, connection, "rowq_leased l", "from table(:")
    assert found
    for plan in found:
        steps = [step for step in plan.steps if step.table == "ROWQ_LEASED_PK"]
        assert [step.options for step in steps] == ["RANGE SCAN"], plan.shown
        assert "NESTED LOOPS" not in plan.operations, plan.shown


@pytest.mark.pitfall("oracle 19")
@pytest.mark.promise("P13", "P34")
def test_cancel_of_leased_reads_few_blocks_of_a_large_queue(
    server: OracleServer, connection: Connection, queue: str
) -> None:
    fill(connection, queue, LARGE)
    found = []
    for _ in range(5):
        ids = enqueue(connection, queue, "x", priority=0)
        claim = dequeue_one(connection, queue).claim_id
        before = reads(server, connection)
        assert cancel(connection, queue, ids) == ["requested"]
        found.append(reads(server, connection) - before)
        call(connection, "release", queue_name=queue, claim_id=claim)
    # The tables have hundreds of blocks each, and a call scans a few indexes.
    assert min(found) < 100
