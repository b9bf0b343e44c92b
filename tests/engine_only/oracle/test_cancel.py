"""Cancelling on Oracle: settings of sessions, what it reads, long headers, and old snapshots."""

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
"""A header whose text no varchar2 holds."""


def cancel(connection: Connection, queue: str, ids: list[int]) -> list[str]:
    """Cancel messages that a worker may hold."""
    given = {"queue_name": queue, "message_ids": ids, "include_leased": True}
    return [row.outcome for row in call(connection, "cancel", **given)]


@pytest.mark.pitfall("oracle 34")
@pytest.mark.promise("P10", "P15")
@pytest.mark.parametrize("setting", STRANGE)
def test_filters_compare_bytes_whatever_the_session_has_set(
    connection: Connection, connect: Connect, queue: str, setting: str
) -> None:
    words = ("ii-I", "II-i", "iiI", "ii_I", "\N{LATIN SMALL LETTER DOTLESS I}i-I", "íi-I")
    strange = connect()
    for change in STRANGE[setting]:
        dialect_of(strange).execute(strange, f"alter session set {change}")
    dead = {word: make_dead(connection, queue, "x", message_type=word)[0] for word in words}
    later, sooner = (datetime.now(UTC) + timedelta(days=days) for days in (1, -1))
    given: dict[str, Any] = {"queue_name": queue, "message_type": words[0], "died_before": later}
    assert outcomes(call(strange, "reset", **given)) == {dead[words[0]]: "reset"}
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
def test_a_header_that_no_varchar2_or_integer_holds_is_found_by_its_text(
    connection: Connection, queue: str, value: Any, text: str, other: str
) -> None:
    enqueue(connection, queue, "x", headers={"tint": value})
    for tried, count in ((other, 0), (text, 1)):
        given = {"queue_name": queue, "header_name": "tint", "header_value": tried}
        assert call_one(connection, "cancel_many", **given).cancelled == count
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.pitfall("oracle 31")
@pytest.mark.promise("P34")
@pytest.mark.parametrize("routine", ENDS)
@pytest.mark.parametrize("is_noted_before", [False, True])
def test_a_serializable_end_does_not_miss_what_was_cancelled_since_it_began(
    connection: Connection,
    connect: Connect,
    queue: str,
    routine: str,
    *,
    is_noted_before: bool,
) -> None:
    """The note of another message is there already, and to write it again is a change."""
    first, second = enqueue(connection, queue, "first", "second")
    claim = dequeue(connection, queue, 2)[0].claim_id
    if is_noted_before:
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
    told = call_one(connection, "extend_lease", queue_name=queue, claim_id=claim).cancel_ids
    assert sorted(told) == ([first, second] if is_noted_before else [second])


def walks(server: OracleServer, connection: Connection, *words: str) -> list[Plan]:
    """Return the plans of the statements with these words."""
    return [plan for plan in plans(server, connection) if all(word in plan.text for word in words)]


@pytest.mark.pitfall("oracle 36")
@pytest.mark.promise("P13", "P34")
@pytest.mark.parametrize("is_planned_while_empty", [True, False])
def test_cancelling_goes_by_keys_and_walks_what_is_leased_once(
    server: OracleServer, connection: Connection, queue: str, *, is_planned_while_empty: bool
) -> None:
    def every_look() -> None:
        ids = enqueue(connection, queue, "first", message_type="mail", priority=0)
        claim = dequeue_one(connection, queue).claim_id
        assert cancel(connection, queue, ids) == ["requested"]
        call(connection, "extend_lease", queue_name=queue, claim_id=claim)
        call(connection, "fail_now", queue_name=queue, claim_id=claim)
        make_dead(connection, queue, "dead", message_type="mail", priority=0)
        given = {"queue_name": queue, "message_type": "mail", "max_messages": 100}
        call(connection, "reset", **given, died_before=datetime.now(UTC))
        call(connection, "cancel_many", **given)

    if is_planned_while_empty:
        every_look()
    fill(connection, queue, LARGE)
    every_look()
    wrong = [plan.shown for plan in plans(server, connection) if list(plan.faults())]
    assert wrong == []
    found = walks(server, connection, "rowq_leased l", "from table(:")
    assert found
    for plan in found:
        steps = [step for step in plan.steps if step.table == "ROWQ_LEASED_PK"]
        assert [step.options for step in steps] == ["RANGE SCAN"], plan.shown
        assert "NESTED LOOPS" not in plan.operations, plan.shown


@pytest.mark.pitfall("oracle 19")
@pytest.mark.promise("P13", "P34")
def test_cancelling_what_a_worker_holds_reads_few_blocks_beside_a_large_backlog(
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
    # The tables have hundreds of blocks each, and a call walks a few indexes.
    assert min(found) < 100
