"""put: enqueue with two arguments, because parameters have no defaults here."""

import pytest

from rowq.contract import load_contract
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call_one, counts, dequeue, refused, rolled_back
from tests.helpers.dialects import dialect_of

PUT = load_contract().routine("put")


def test_put_agrees_with_the_contract(connection: Connection, queue: str) -> None:
    dialect = dialect_of(connection)
    found = dialect.installed_parameters(connection, PUT)
    assert found == dialect.contract_parameters(PUT)
    columns = dialect.result_columns(connection, PUT, queue)
    assert columns == dialect.contract_columns(PUT)


@pytest.mark.promise("P20")
@pytest.mark.parametrize("body", ["hello", "", "Grüße 🌍 'quoted' \\", None])
def test_put_enqueues_with_the_defaults(
    connection: Connection, queue: str, body: str | None
) -> None:
    sent = call_one(connection, "put", queue_name=queue, body=body)
    assert sent.outcome == "enqueued"
    enqueued = call_one(connection, "enqueue", queue_name=queue, body=body)
    first, second = (
        call_one(connection, "get_message", queue_name=queue, message_id=number)
        for number in (sent.message_id, enqueued.message_id)
    )
    assert first.body == body
    compared = ("state", "priority", "max_attempts", "message_type", "headers", "body_binary")
    assert [getattr(first, name) for name in compared] == [
        getattr(second, name) for name in compared
    ]


def test_put_call_of_the_readme_works(connection: Connection, queue: str) -> None:
    rows = connection.execute(f"call rowq.put('{queue}', '{{\"id\": 1}}')").fetchall()
    assert [outcome for _, outcome in rows] == ["enqueued"]
    assert bodies(dequeue(connection, queue)) == ['{"id": 1}']


@pytest.mark.promise("P01", "P17")
def test_put_runs_in_the_callers_transaction(connection: Connection, queue: str) -> None:
    with rolled_back(connection):
        call_one(connection, "put", queue_name=queue, body="gone")
        assert counts(connection, queue) == (1, 0, 0, 0)
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P15")
def test_put_raises_the_errors_of_enqueue(connection: Connection, queue: str) -> None:
    refused(connection, "RQ701", "put", queue_name="nosuch", body="x")
    with rolled_back(connection):
        call_one(connection, "put", queue_name=queue, body="kept")
        refused(connection, "RQ711", "put", queue_name=queue, body="x" * 1_048_577)
        assert counts(connection, queue) == (1, 0, 0, 0)
