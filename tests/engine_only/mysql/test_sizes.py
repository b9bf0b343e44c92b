"""Values longer than the engine's small text types: 64 KB statements, ids, headers and errors."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import rowq
from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, dequeue

Connect = Callable[..., Connection]
SHORT = 2**16
"""The length at which a text or a blob column ends."""

WIDE = "\U0001f4a5"
"""A character of four bytes."""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name, archive_days=1)
    return queue_name


@pytest.mark.promise("P20")
@pytest.mark.parametrize("length", [SHORT - 1, SHORT, SHORT + 1, 16 * SHORT])
def test_a_text_of_64_kilobytes_is_whole_everywhere(
    connection: Connection, queue: str, length: int
) -> None:
    body = WIDE * (length // 4) + "x" * (length % 4)
    headers = {"h": "y" * min(length, SHORT - len('{"h": ""}'))}
    messages = [{"body": body, "headers": headers}, {"body": body, "priority": 1}]
    call(connection, "enqueue", queue_name=queue, body=body, headers=headers)
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    assert {row.body for row in call(connection, "peek", queue_name=queue, batch_size=10)} == {body}
    rows = dequeue(connection, queue, 10)
    assert [(row.body, row.headers) for row in rows] == [(body, None), *[(body, headers)] * 2]
    call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    call(connection, "archive", queue_name=queue)
    kept = call_one(connection, "get_message", queue_name=queue, message_id=rows[1].message_id)
    assert (kept.state, kept.body, kept.headers) == ("completed", body, headers)


@pytest.mark.promise("P20")
def test_a_binary_body_of_64_kilobytes_is_whole(connection: Connection, queue: str) -> None:
    data = bytes(range(256)) * (SHORT // 256) + b"\x00"
    call(connection, "enqueue", queue_name=queue, body_binary=data)
    assert dequeue(connection, queue)[0].body_binary == data


@pytest.mark.promise("P08", "P20")
def test_lists_of_ids_longer_than_64_kilobytes_are_whole(
    connection: Connection, queue: str
) -> None:
    sent = call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 4000)
    ids = [row.message_id for row in sent]
    assert len(ids) == len(set(ids)) == 4000
    claims = [dequeue(connection, queue, 1000) for _ in range(4)]
    assert [row.message_id for rows in claims for row in rows] == ids
    padded = [*range(-9000, 0), *(row.message_id for row in claims[0])]
    assert len(json.dumps(padded)) > SHORT
    done = call(
        connection,
        "complete",
        queue_name=queue,
        claim_id=claims[0][0].claim_id,
        message_ids=padded,
    )
    assert [row.outcome for row in done] == ["stale"] * 9000 + ["completed"] * 1000
    for rows in claims[1:]:
        call(connection, "retry_later", queue_name=queue, claim_id=rows[0].claim_id)
    assert call_one(connection, "queue_stats", queue_name=queue).delayed == 3000


@pytest.mark.promise("P20")
def test_a_body_of_16_megabytes_goes_and_comes_with_its_batch(
    connection: Connection, queue: str
) -> None:
    ((limit,),) = connection.execute("select @@max_allowed_packet").fetchall()
    length = 16 * 2**20
    if limit < 2 * length:
        pytest.skip(
            f"the server takes {limit} bytes; to run it: start it with --max-allowed-packet=64M"
        )
    own = rowq.Queue(connection)
    own.alter_queue(queue, max_body_length=2 * length)
    text, data = "z" * length, b"\x00\xff" * (length // 2)
    own.enqueue(queue, text=text)
    own.enqueue(queue, data)
    own.enqueue_batch(queue, [rowq.NewMessage(data=text)])
    first, second, third = own.dequeue_fast(queue, 3)
    assert (first.body, second.data, third.data) == (text, data, text)


@pytest.mark.promise("P05", "P20")
@pytest.mark.parametrize("database", [None, "rowq_test_other"])
def test_the_current_database_of_the_caller_is_not_looked_into(
    connection: Connection, connect: Connect, queue: str, database: str | None
) -> None:
    other = connect()
    connection.execute("create database if not exists rowq_test_other")
    for table in ("queue", "message", "ready", "claim"):
        connection.execute(f"create table if not exists rowq_test_other.{table} (mine int)")
    if database:
        other.execute(f"use {database}")
    else:
        connection.execute("create database rowq_test_gone")
        other.execute("use rowq_test_gone")
        connection.execute("drop database rowq_test_gone")
    call(other, "enqueue", queue_name=queue, body="x")
    rows = dequeue(other, queue)
    assert [row.body for row in rows] == ["x"]
    call(other, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    call(other, "maintain", queue_name=queue)
    assert other.execute("select database()").fetchone() == (database,)
    connection.execute("drop database rowq_test_other")
