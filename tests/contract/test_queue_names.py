"""Every routine refuses the name of no queue, and null where it needs a name."""

from typing import Any

import pytest

from rowq.contract import load_contract
from tests.engines.base import Connection
from tests.helpers.calls import refused

OTHER_ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "alter_queue": [{"lease_seconds": 5}],
    "alter_schedule": [{"schedule_name": "a"}],
    "bind_topic": [{"topic_pattern": "a.#"}],
    "cancel": [{"message_ids": [1]}],
    "cancel_many": [{"message_type": "a"}],
    "complete": [{"claim_id": 1}],
    "create_schedule": [{"schedule_name": "a", "cron": "* * * * *"}],
    "dequeue_wait": [{"wait_seconds": 60}],
    "drop_queue": [{}, {"force": True}],
    "drop_schedule": [{"schedule_name": "a"}],
    "enqueue_batch": [{"messages": []}],
    "extend_lease": [{"claim_id": 1}],
    "fail_now": [{"claim_id": 1}],
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
"""What each routine is called with beside the name, where that is more than nothing."""
ONE_ENGINES_OWN = {"elect_leader", "listen", "unlisten"}
"""engine_only/postgres/test_listen.py has them."""
NEEDS_NO_NAME = {
    *("list_claims", "list_schedules", "list_topics", "list_workers", "maintain", "queue_stats")
}
"""Null means every queue to them."""
ROUTINES = [
    routine.name
    for routine in load_contract().routines.values()
    if "RQ701" in routine.errors and routine.name not in ONE_ENGINES_OWN
]
CALLS = [(name, given) for name in ROUTINES for given in OTHER_ARGUMENTS.get(name, [{}])]


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("routine", "given"), CALLS)
def test_an_unknown_queue_is_refused_by_its_name(
    connection: Connection, queue_name: str, routine: str, given: dict[str, Any]
) -> None:
    text = refused(connection, "RQ701", routine, queue_name=queue_name, **given)
    assert queue_name in text


@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    ("routine", "given"), [(name, given) for name, given in CALLS if name not in NEEDS_NO_NAME]
)
def test_a_missing_name_is_refused(
    connection: Connection, routine: str, given: dict[str, Any]
) -> None:
    refused(connection, "RQ711", routine, queue_name=None, **given)
