"""alter_queue."""

from __future__ import annotations

import pytest

from tests.contract.test_create_queue import (
    DEFAULTS,
    INSIDE,
    NOT_FINITE,
    OUTSIDE,
    SETTINGS,
    settings_of,
)
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue_one, enqueue, refused


@pytest.mark.promise("P15")
def test_all_settings_change(connection: Connection, queue: str) -> None:
    row = call_one(connection, "alter_queue", queue_name=queue, **SETTINGS)
    assert (row.queue_name, row.outcome) == (queue, "altered")
    assert settings_of(connection, queue) == SETTINGS


@pytest.mark.promise("P15")
@pytest.mark.parametrize("setting", SETTINGS)
def test_one_setting_changes_and_null_leaves_the_others(
    connection: Connection, queue: str, setting: str
) -> None:
    given = dict.fromkeys(SETTINGS) | {setting: SETTINGS[setting]}
    call(connection, "alter_queue", queue_name=queue, **given)
    assert settings_of(connection, queue) == DEFAULTS | {setting: SETTINGS[setting]}


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("setting", "value"), INSIDE)
def test_a_setting_at_its_bound_is_taken(
    connection: Connection, queue: str, setting: str, value: float
) -> None:
    call(connection, "alter_queue", queue_name=queue, **{setting: value})
    assert settings_of(connection, queue)[setting] == value


@pytest.mark.promise("P15")
@pytest.mark.parametrize(("setting", "value"), OUTSIDE + NOT_FINITE)
def test_a_setting_beyond_its_bound_is_refused_and_changes_nothing(
    connection: Connection, queue: str, setting: str, value: float
) -> None:
    given = {"lease_seconds": 77} | {setting: value}
    assert setting in refused(connection, "RQ711", "alter_queue", queue_name=queue, **given)
    assert settings_of(connection, queue) == DEFAULTS


@pytest.mark.promise("P15")
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str) -> None:
    refused(connection, "RQ701", "alter_queue", queue_name=queue_name, lease_seconds=5)


@pytest.mark.promise("P15")
def test_a_missing_name_is_refused(connection: Connection) -> None:
    refused(connection, "RQ711", "alter_queue", queue_name=None, lease_seconds=5)


@pytest.mark.promise("P10")
def test_fewer_attempts_count_for_messages_that_are_there_already(
    connection: Connection, queue: str
) -> None:
    enqueue(connection, queue, "one")
    call(connection, "alter_queue", queue_name=queue, max_attempts=1)
    claim = dequeue_one(connection, queue).claim_id
    assert call_one(connection, "retry_later", queue_name=queue, claim_id=claim).outcome == "dead"
