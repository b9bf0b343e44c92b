"""Inspection routines read a page by a seek in key order, without a sort."""

import pytest

from tests.engine_only.sqlserver.showplan import STEPS, called, faults
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, enqueue

pytestmark = pytest.mark.requires("genuine")

PAGE = 50
NEWEST = 2**63 - 1


@pytest.mark.promise("P13")
@pytest.mark.parametrize("size", [0, 5000])
def test_inspection_pages_use_seeks_without_sorts(
    connection: Connection, queue: str, size: int
) -> None:
    own = {"queue_name": queue}
    enqueue(connection, queue, "key", dedup_key="key", delay_seconds=1000)
    for messages in ([{"message_type": "mail"}] * size, [{"delay_seconds": 1000}] * size):
        if messages:
            call(connection, "enqueue_batch", **own, messages=messages)
    enqueue(connection, queue, *"abc")
    while rows := dequeue(connection, queue, 1000):
        call(connection, "fail_now", **own, claim_id=rows[0].claim_id)
    plans = called(connection, "ListDead", **own, max_messages=PAGE)
    for given in ({}, {"message_type": "mail"}):
        plans += called(
            connection, "ListDead", **own, max_messages=PAGE, before_message_id=NEWEST, **given
        )
    plans += called(connection, "ListDelayed", **own, max_messages=PAGE)
    plans += called(connection, "FindMessage", **own, dedup_key="key")
    assert not faults(plans, small=STEPS, walked=frozenset({"dead"}))
    reads = [access.rows_read or 0 for plan in plans for access in plan.accesses]
    assert max(reads) <= PAGE


@pytest.mark.promise("P13")
def test_claims_are_found_by_seeks_in_each_queue(connection: Connection, queue: str) -> None:
    enqueue(connection, queue, *"abc")
    dequeue(connection, queue, 2)
    plans = called(connection, "ListClaims", max_claims=PAGE)
    found = [fault for fault in faults(plans, small=STEPS) if "Scan" in fault]
    assert not found
