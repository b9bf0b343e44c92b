"""The promises that maintain, reap, promote, archive and purge_archive share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, refused, rolled_back, transaction
from tests.helpers.dialects import dialect_of

ROUTINES = ["maintain", "reap", "promote", "archive", "purge_archive"]
each_routine = pytest.mark.parametrize("routine", ROUTINES)


@pytest.mark.promise("P19")
@each_routine
def test_an_empty_queue_has_nothing_to_do(connection: Connection, queue: str, routine: str) -> None:
    before = dialect_of(connection).stored(connection, queue)
    row = call_one(connection, routine, queue_name=queue)
    figures = {name: value for name, value in vars(row).items() if name != "queue_name"}
    assert figures.pop("elected", True) is True
    figures.pop("partitions_dropped", None)  # Partitions are shared by queues.
    assert set(figures.values()) <= {0}
    assert dialect_of(connection).stored(connection, queue) == before


@pytest.mark.promise("P19")
@each_routine
@pytest.mark.requires("genuine")
def test_two_sessions_may_do_it_at_once_and_nobody_waits(
    connection: Connection, connect: Callable[..., Connection], queue: str, routine: str
) -> None:
    call(connection, "alter_queue", queue_name=queue, archive_days=1)
    other = connect()
    with transaction(other):
        call_one(other, routine, queue_name=queue)
        call_one(connection, routine, queue_name=queue)
    with rolled_back(other):
        call_one(other, routine, queue_name=queue)
        call_one(connection, routine, queue_name=queue)


@pytest.mark.promise("P15")
@each_routine
@pytest.mark.parametrize("batch_size", [0, -1, 10001, None, 2147483647])
def test_a_batch_size_out_of_range_is_refused(
    connection: Connection, queue: str, routine: str, batch_size: int | None
) -> None:
    text = refused(connection, "RQ711", routine, queue_name=queue, batch_size=batch_size)
    assert "batch_size" in text


@pytest.mark.promise("P15")
@each_routine
@pytest.mark.parametrize("batch_size", [1, 10000])
def test_a_batch_size_at_its_bounds_is_taken(
    connection: Connection, queue: str, routine: str, batch_size: int
) -> None:
    call_one(connection, routine, queue_name=queue, batch_size=batch_size)


@pytest.mark.promise("P15")
@each_routine
def test_an_unknown_queue_is_refused(connection: Connection, queue_name: str, routine: str) -> None:
    refused(connection, "RQ701", routine, queue_name=queue_name)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ROUTINES[1:])
def test_a_missing_name_is_refused(connection: Connection, routine: str) -> None:
    refused(connection, "RQ711", routine, queue_name=None)
