"""Every routine refuses the name of an unknown queue, and null if a name is required."""

from typing import Any

import pytest

from rowq.contract import load_contract
from tests.engines.base import Connection
from tests.helpers.calls import refused

OTHER_ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "alter_message": [{"message_id": 1, "body": "a"}],
    "alter_queue": [{"lease_seconds": 5}],
    "alter_schedule": [{"schedule_name": "a"}],
    "bind_topic": [{"topic_pattern": "a.#"}],
    "cancel": [{"message_ids": [1]}],
    "cancel_many": [{"message_type": "a"}],
    "complete": [{"claim_id": 1}],
    "complete_and_dequeue": [{"claim_id": 1}],
    "create_schedule": [{"schedule_name": "a", "cron": "* * * * *"}],
    "dequeue_wait": [{"wait_seconds": 60}],
    "drop_queue": [{}, {"force": True}],
    "drop_schedule": [{"schedule_name": "a"}],
    "enqueue_batch": [{"messages": []}],
    "extend_lease": [{"claim_id": 1}],
    "fail_now": [{"claim_id": 1}],
    "explain_message": [{"message_id": 1}],
    "get_history": [{"message_id": 1}],
    "find_message": [{"dedup_key": "a"}],
    "get_message": [{"message_id": 1}],
    "get_result": [{"message_id": 1}],
    "release": [{"claim_id": 1}],
    "report_worker": [{"worker_id": "a"}],
    "retry_later": [{"claim_id": 1}],
    "run_schedule": [{"schedule_name": "a"}],
    "unbind_topic": [{"topic_pattern": "a.#"}],
    "wait_for_result": [{"message_id": 1}],
}
"""Further required arguments of the routines."""
POSTGRES_ONLY = {"elect_leader", "listen", "unlisten"}
"""engine_only/postgres/test_listen.py tests them."""
NEEDS_NO_NAME = {
    *("list_claims", "list_schedules", "list_topics", "list_workers", "maintain", "queue_stats")
}
"""Null means every queue."""
ROUTINES = [
    routine.name
    for routine in load_contract().routines.values()
    if "RQ701" in routine.errors and routine.name not in POSTGRES_ONLY
]
CALLS = [(name, others) for name in ROUTINES for others in OTHER_ARGUMENTS.get(name, [{}])]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("routine", "others"), CALLS)
def test_routine_refuses_an_unknown_queue(
    connection: Connection, queue_name: str, routine: str, others: dict[str, Any]
) -> None:
    text = refused(connection, "RQ701", routine, queue_name=queue_name, **others)
    assert queue_name in text


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("routine", "others"), [call for call in CALLS if call[0] not in NEEDS_NO_NAME]
)
def test_routine_refuses_a_null_queue_name(
    connection: Connection, routine: str, others: dict[str, Any]
) -> None:
    refused(connection, "RQ711", routine, queue_name=None, **others)
