"""alter_queue."""

import pytest

from tests.contract.test_create_queue import (
    DEFAULTS,
    NOT_FINITE,
    OUTSIDE,
    SETTINGS,
    settings_of,
)
from tests.helpers.queues import CheckedQueue
from tests.helpers.together import together


@pytest.mark.promise("P15")
def test_alter_queue_changes_all_settings(queue: CheckedQueue) -> None:
    row = queue.call_one("alter_queue", **SETTINGS)
    assert (row.queue_name, row.outcome) == (queue.name, "altered")
    assert settings_of(queue) == SETTINGS


@pytest.mark.promise("P15")
@pytest.mark.parametrize("setting", SETTINGS)
def test_alter_queue_leaves_null_settings_unchanged(queue: CheckedQueue, setting: str) -> None:
    given = dict.fromkeys(SETTINGS) | {setting: SETTINGS[setting]}
    queue.call("alter_queue", **given)
    assert settings_of(queue) == DEFAULTS | {setting: SETTINGS[setting]}


@pytest.mark.promise("P15")
@together(("setting", "value"), [*OUTSIDE, *NOT_FINITE])
def test_alter_queue_refuses_settings_out_of_range(
    queue: CheckedQueue, setting: str, value: float
) -> None:
    given = {"lease_seconds": 77} | {setting: value}
    assert setting in queue.refused("RQ711", "alter_queue", **given)
    assert settings_of(queue) == DEFAULTS


@pytest.mark.promise("P10")
def test_lower_max_attempts_applies_to_existing_messages(queue: CheckedQueue) -> None:
    queue.enqueue("one")
    queue.call("alter_queue", max_attempts=1)
    claim = queue.dequeue_one().claim_id
    assert queue.call_one("retry_later", claim_id=claim).outcome == "dead"
