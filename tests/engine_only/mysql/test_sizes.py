"""Values beyond the engine's small text types of 64 KB."""

import json

import pytest

import rowq
from tests.engine_only.mysql.costs import queue_id_of
from tests.engines.base import Connection
from tests.helpers.queues import CheckedQueue, Connect, new_queue

pytestmark = pytest.mark.slow("bodies of megabytes")

SHORT = 2**16
"""The limit of text and blob columns."""

WIDE = "\U0001f4a5"
"""A character of 4 bytes."""


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> CheckedQueue:
    return new_queue(connection, queue_name, archive_days=1)


@pytest.mark.pitfall("mysql 13")
@pytest.mark.promise("P20")
@pytest.mark.parametrize("length", [SHORT - 1, SHORT, SHORT + 1, 16 * SHORT])
def test_text_of_64_kilobytes_is_returned_unchanged(queue: CheckedQueue, length: int) -> None:
    body = WIDE * (length // 4) + "x" * (length % 4)
    headers = {"h": "y" * min(length, SHORT - len('{"h": ""}'))}
    messages = [{"body": body, "headers": headers}, {"body": body, "priority": 1}]
    queue.call("enqueue", body=body, headers=headers)
    queue.call("enqueue_batch", messages=messages)
    assert {row.body for row in queue.call("peek", max_messages=10)} == {body}
    rows = queue.dequeue(10)
    assert [(row.body, row.headers) for row in rows] == [(body, None), *[(body, headers)] * 2]
    queue.call("complete", claim_id=rows[0].claim_id)
    queue.call("archive")
    kept = queue.message(rows[1].message_id)
    assert (kept.state, kept.body, kept.headers) == ("completed", body, headers)


@pytest.mark.pitfall("mysql 13")
@pytest.mark.promise("P08", "P20")
def test_id_lists_of_64_kilobytes_are_not_truncated(queue: CheckedQueue) -> None:
    sent = queue.call("enqueue_batch", messages=[{"body": "x"}] * 4000)
    ids = [row.message_id for row in sent]
    assert len(ids) == len(set(ids)) == 4000
    claims = [queue.dequeue(1000) for _ in range(4)]
    assert [row.message_id for rows in claims for row in rows] == ids
    padded = [*range(-9000, 0), *(row.message_id for row in claims[0])]
    assert len(json.dumps(padded)) > SHORT
    done = queue.call("complete", claim_id=claims[0][0].claim_id, message_ids=padded)
    assert [row.outcome for row in done] == ["stale"] * 9000 + ["completed"] * 1000
    for rows in claims[1:]:
        queue.call("retry_later", claim_id=rows[0].claim_id)
    assert queue.call_one("queue_stats").delayed == 3000


@pytest.mark.pitfall("mysql 13")
@pytest.mark.promise("P20")
def test_body_of_16_megabytes_is_returned_with_its_batch(
    connection: Connection, queue: CheckedQueue
) -> None:
    ((limit,),) = connection.execute("select @@max_allowed_packet").fetchall()
    length = 16 * 2**20
    if limit < 2 * length:
        pytest.skip(
            f"the server takes {limit} bytes; to run it: start it with --max-allowed-packet=64M"
        )
    own = rowq.Queue(connection)
    own.alter_queue(queue.name, max_body_length=2 * length)
    text, data = "z" * length, b"\x00\xff" * (length // 2)
    own.enqueue(queue.name, text=text)
    own.enqueue(queue.name, data)
    own.enqueue_batch(queue.name, [rowq.NewMessage(data=text)])
    first, second, third = own.dequeue_fast(queue.name, 3)
    assert (first.body, second.data, third.data) == (text, data, text)


@pytest.mark.promise("P05", "P20")
@pytest.mark.parametrize("database", [None, "rowq_test_other"])
@pytest.mark.pitfall("mysql 25")
def test_calls_ignore_the_callers_current_database(
    connection: Connection, connect: Connect, queue: CheckedQueue, database: str | None
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
    queue.via(other).call("enqueue", body="x")
    rows = queue.via(other).dequeue()
    assert [row.body for row in rows] == ["x"]
    queue.via(other).call("complete", claim_id=rows[0].claim_id)
    queue.via(other).call("maintain")
    assert other.execute("select database()").fetchone() == (database,)
    connection.execute("drop database rowq_test_other")


@pytest.mark.promise("P10", "P12")
def test_reset_10000_dead_messages_with_long_keys(
    connection: Connection, queue: CheckedQueue
) -> None:
    """By default MariaDB truncates the results of aggregates to 1 MB."""
    digits = " union all ".join(f"select {digit} d" for digit in range(10))
    value = "1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d"
    tables = " cross join ".join(f"({digits}) {name}" for name in "abce")
    queue_id = queue_id_of(connection, queue.name)
    connection.execute(
        "insert into rowq.message (queue_id, enqueued_at, dedup_key, body)"
        f" select {queue_id}, utc_timestamp(6), lpad(n.n, 60, 'k'), 'x'"
        f" from (select {value} as n from {tables}) n"
    )
    connection.execute(
        "insert into rowq.dead (queue_id, message_id, lane, attempt, died_at)"
        f" select queue_id, message_id, 11, 1, utc_timestamp(6) from rowq.message"
        f" where queue_id = {queue_id}"
    )
    done = queue.call("reset", max_messages=10000)
    assert [row.outcome for row in done] == ["reset"] * 10000
