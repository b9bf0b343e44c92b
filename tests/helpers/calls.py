"""Call routines by name, and check every call against the contract.

    row = call_one(connection, "enqueue", queue_name=queue, body="hello")
    refused(connection, "RQ701", "enqueue", queue_name="nowhere")

Only the passed arguments are sent, so the installed routine's defaults apply.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rowq.contract import Routine, load_contract
from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

OPEN = {"get_history": [None]}
"""Routines that also return unfinished messages, and their outcome."""


class Row(SimpleNamespace):
    """A row of a result, with the contract's columns as attributes."""


def call(connection: Connection, routine: str, **arguments: Any) -> list[Row]:
    """Call a routine and return its rows; columns and outcomes must be the contract's."""
    entry = _entry(connection, routine)
    unknown = arguments.keys() - {parameter.name for parameter in entry.parameters}
    assert not unknown, f"{routine} has no parameter {unknown}"
    columns, rows = dialect_of(connection).call(connection, entry, arguments)
    assert columns == [column.name for column in entry.columns], f"columns of {routine}"
    result = [Row(**dict(zip(columns, row, strict=True))) for row in rows]
    if entry.outcomes:
        words = {*entry.outcomes, *OPEN.get(routine, ())}
        assert {row.outcome for row in result} <= words, f"outcomes of {routine}"
    return result


def call_one(connection: Connection, routine: str, **arguments: Any) -> Row:
    """Call a routine that must return exactly one row."""
    rows = call(connection, routine, **arguments)
    assert len(rows) == 1, f"{routine} returned {len(rows)} rows"
    return rows[0]


def refused(connection: Connection, number: str, routine: str, **arguments: Any) -> str:
    """Call a routine that must fail with this declared error, and return the error's text."""
    entry = _entry(connection, routine)
    is_of_nodes = load_contract().errors[number].of_nodes
    assert number in entry.errors or is_of_nodes, f"{routine} does not declare {number}"
    dialect = dialect_of(connection)
    for parameter in entry.parameters:
        if not dialect.can_pass(parameter, arguments.get(parameter.name, parameter.default)):
            pytest.skip(
                "this engine's SQL has no infinity, NaN or such a null"
                "; to run it: --engine postgres18"
            )
    with pytest.raises(dialect.database_error) as caught:
        call(connection, routine, **arguments)
    found, text = dialect.error(caught.value)
    assert found == number, f"{routine}: {found} {text}"
    assert text.startswith(f"{number} {load_contract().errors[number].name}: "), text
    return text


def _entry(connection: Connection, routine: str) -> Routine:
    """Return a routine on the connection's engine; skip the test if it is not available."""
    engine = engine_for_connection(connection).name
    if engine in (load_contract().routine(routine).engines or [engine]):
        return load_contract().of(engine)[routine]
    pytest.skip(f"{routine} is not available on {engine}; to run it: --engine postgres18,mariadb")


@contextmanager
def transaction(connection: Connection) -> Iterator[None]:
    """Run a block in a transaction on a connection in autocommit; an error rolls back."""
    dialect = dialect_of(connection)
    dialect.begin(connection)
    try:
        yield
    except BaseException:
        dialect.rollback(connection)
        raise
    dialect.commit(connection)


@contextmanager
def rolled_back(connection: Connection) -> Iterator[None]:
    """Run a block in a transaction that is rolled back."""
    dialect = dialect_of(connection)
    dialect.begin(connection)
    try:
        yield
    finally:
        dialect.rollback(connection)


def enqueue(connection: Connection, queue: str, *bodies: str, **arguments: Any) -> list[int]:
    """Enqueue one message for each body, with the same arguments, and return their ids."""
    return [
        call_one(connection, "enqueue", queue_name=queue, body=body, **arguments).message_id
        for body in bodies
    ]


def dequeue(connection: Connection, queue: str, batch_size: int = 1, **arguments: Any) -> list[Row]:
    """Dequeue and return the rows."""
    return call(connection, "dequeue_fast", queue_name=queue, batch_size=batch_size, **arguments)


def dequeue_one(connection: Connection, queue: str, **arguments: Any) -> Row:
    """Dequeue one message that must be there."""
    return call_one(connection, "dequeue_fast", queue_name=queue, **arguments)


def bodies(rows: list[Row]) -> list[str | None]:
    """Return the text bodies of rows in order."""
    return [row.body for row in rows]


def outcomes(rows: list[Row]) -> dict[int, str]:
    """Return the outcome of each message."""
    return {row.message_id: row.outcome for row in rows}


def state_of(connection: Connection, queue: str, message_id: int) -> str | None:
    """Return the state of a message, None if it is unknown."""
    rows = call(connection, "get_message", queue_name=queue, message_id=message_id)
    return rows[0].state if rows else None


def counts(connection: Connection, queue: str) -> tuple[int, int, int, int]:
    """Return the numbers of ready, delayed, leased and dead messages."""
    row = call_one(connection, "queue_stats", queue_name=queue)
    return row.ready, row.delayed, row.leased, row.dead


def make_dead(connection: Connection, queue: str, *bodies: str, **arguments: Any) -> list[int]:
    """Enqueue messages and make them dead; return their ids."""
    ids = []
    for body in bodies:
        enqueue(connection, queue, body, **arguments)
        row = dequeue_one(connection, queue)
        call(connection, "fail_now", queue_name=queue, claim_id=row.claim_id, error="broken")
        ids.append(row.message_id)
    return ids
