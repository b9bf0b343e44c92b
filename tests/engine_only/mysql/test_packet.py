"""max_allowed_packet limits the result of dequeue_wait; the remaining messages come later."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from tests.engines.base import Connection
from tests.helpers.calls import call, call_one, counts, dequeue, enqueue, refused
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect

pytestmark = [
    pytest.mark.pitfall("mysql 13"),
    pytest.mark.slow("bodies of megabytes"),
]

SetPacket = Callable[[int], None]
MEGABYTE = 1 << 20

# Short bodies that are longer than a packet of 1 MB as JSON.
LONG_AS_JSON = {
    "control characters": {"body": "\x01" * 180_000},
    "quotes": {"body": '"' * 530_000},
    "plain text": {"body": "x" * 1_048_500},
    "base64 with its line breaks": {"body_binary": b"\xff" * 777_000},
}


@pytest.fixture
def set_packet(connection: Connection) -> Iterator[SetPacket]:
    """Return a function that sets the limit of new sessions; restore it afterwards."""
    ((usual,),) = connection.execute("select @@global.max_allowed_packet").fetchall()

    def set_global(size: int) -> None:
        connection.execute(f"set global max_allowed_packet = {size}")

    yield set_global
    set_global(usual)


def wait(connection: Connection, queue: str, batch_size: int = 1) -> list[dict[str, Any]]:
    arguments = {"queue_name": queue, "batch_size": batch_size, "wait_seconds": 0}
    return call_one(connection, "dequeue_wait", **arguments).messages or []


@pytest.mark.promise("P15")
@pytest.mark.parametrize("body", LONG_AS_JSON.values(), ids=LONG_AS_JSON)
def test_body_that_no_result_could_hold_is_refused(
    connection: Connection, queue: str, set_packet: SetPacket, body: dict[str, Any]
) -> None:
    set_packet(MEGABYTE)
    text = refused(connection, "RQ711", "enqueue", queue_name=queue, **body)
    assert "max_allowed_packet" in text
    if "body" in body:
        batch = [{"body": "a"}, body]
        text = refused(connection, "RQ711", "enqueue_batch", queue_name=queue, messages=batch)
        assert "max_allowed_packet" in text
        assert "message 2" in text
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P20")
@pytest.mark.parametrize(
    "body",
    [{"body": "x" * 1_020_000}, {"body_binary": b"\xff" * 755_000}, {"body": "\x01" * 170_000}],
    ids=["plain text", "base64", "control characters"],
)
def test_longest_body_is_delivered_even_with_a_long_error(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, body: Any
) -> None:
    set_packet(MEGABYTE)
    call_one(connection, "enqueue", queue_name=queue, message_type="\x01" * 200, **body)
    [row] = dequeue(connection, queue)
    arguments = {"queue_name": queue, "claim_id": row.claim_id, "delay_seconds": 0}
    call(connection, "retry_later", error="\x01" * 2000, **arguments)
    [message] = wait(connect(), queue)
    assert message["attempt"] == 2
    assert message["last_error"] == "\x01" * 2000
    assert message["body"] == body.get("body")
    assert bool(message["body_binary"]) == ("body_binary" in body)


@pytest.mark.promise("P02", "P05", "P10")
@pytest.mark.parametrize("batch_size", [1, 10])
@pytest.mark.parametrize("body", LONG_AS_JSON.values(), ids=LONG_AS_JSON)
def test_message_beyond_a_lowered_limit_becomes_dead(
    connection: Connection,
    connect: Connect,
    queue: str,
    set_packet: SetPacket,
    body: dict[str, Any],
    batch_size: int,
) -> None:
    sent = [call_one(connection, "enqueue", queue_name=queue, **body).message_id for _ in range(2)]
    enqueue(connection, queue, "a", "b")
    set_packet(MEGABYTE)
    seen = [message["body"] for _ in range(2) for message in wait(connect(), queue, batch_size)]
    assert seen == ["a", "b"]
    assert counts(connection, queue) == (0, 0, 2, 2)
    dead = call(connection, "list_dead", queue_name=queue)
    assert [(row.message_id, row.attempt) for row in dead] == [(number, 0) for number in sent]
    assert {"max_allowed_packet, 1048576" in row.last_error for row in dead} == {True}

    found = call_one(connect(), "get_message", queue_name=queue, message_id=sent[0])
    assert found.body == body.get("body")
    assert found.body_binary == body.get("body_binary")
    call(connection, "reset", queue_name=queue)
    assert [row.body for row in call(connect(), "peek", queue_name=queue, max_messages=2)] == [
        body.get("body")
    ] * 2
    [row] = dequeue(connect(), queue)
    assert (row.body, row.body_binary) == (body.get("body"), body.get("body_binary"))
    set_packet(16 * MEGABYTE)
    [message] = wait(connect(), queue)
    assert (message["message_id"], message["attempt"]) == (sent[1], 1)


@pytest.mark.promise("P02", "P05")
def test_session_with_a_smaller_limit_is_refused(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket
) -> None:
    enqueue(connection, queue, "x" * MEGABYTE, "a")
    set_packet(MEGABYTE)
    old = connect()
    set_packet(16 * MEGABYTE)
    text = refused(old, "RQ711", "dequeue_wait", queue_name=queue, batch_size=2, wait_seconds=0)
    assert "max_allowed_packet" in text
    assert counts(connection, queue) == (2, 0, 0, 0)
    messages = wait(connect(), queue, 2)
    assert [(row["body"][0], row["attempt"]) for row in messages] == [("x", 1), ("a", 1)]


@pytest.mark.promise("P05", "P07")
def test_messages_beyond_the_packet_keep_their_order(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket
) -> None:
    enqueue(connection, queue, *(f"{number}" + "x" * 400_000 for number in range(6)), priority=3)
    rows = dequeue(connection, queue, 4)
    call(connection, "release", queue_name=queue, claim_id=rows[0].claim_id)
    enqueue(connection, queue, "first" + "x" * 400_000, priority=0)
    set_packet(MEGABYTE)
    session = connect()
    seen: list[str] = []
    for _ in range(4):
        messages = wait(session, queue, 3)
        assert {row["attempt"] for row in messages} == {1}
        assert counts(connection, queue) == (7 - len(seen) - len(messages), 0, len(messages), 0)
        seen += [row["body"].rstrip("x") for row in messages]
        call(connection, "complete", queue_name=queue, claim_id=messages[0]["claim_id"])
    assert seen == ["first", "0", "1", "2", "3", "4", "5"]


@pytest.mark.promise("P02", "P05")
@pytest.mark.parametrize("index", [0, 1, 99, 100, 101, 249])
def test_long_message_at_any_position_loses_nothing(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, index: int
) -> None:
    bodies = [f"{number}" for number in range(250)]
    bodies[index] = "\x01" * 180_000
    messages = [{"body": body} for body in bodies]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    set_packet(MEGABYTE)
    session = connect()
    first = wait(session, queue, 1000)
    second = wait(session, queue, 1000)
    seen = [row["body"] for row in first + second]
    assert seen == bodies[:index] + bodies[index + 1 :]
    assert counts(connection, queue) == (0, 0, 249, 1)
    for rows in filter(None, (first, second)):
        call(connection, "complete", queue_name=queue, claim_id=rows[0]["claim_id"])
    assert counts(connection, queue) == (0, 0, 0, 1)


@pytest.mark.promise("P02", "P03")
def test_sessions_with_partial_results_get_each_message_once(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket
) -> None:
    messages = [{"body": f"{number:03d}" + "x" * 150_000} for number in range(200)]
    for start in range(0, 200, 50):
        part = messages[start : start + 50]
        call(connection, "enqueue_batch", queue_name=queue, messages=part)
    set_packet(MEGABYTE)
    seen: list[str] = []

    def consume(session: Connection) -> None:
        while rows := call_one(
            session, "dequeue_wait", queue_name=queue, batch_size=20, wait_seconds=1
        ).messages:
            seen.extend(row["body"][:3] for row in rows)
            call(session, "complete", queue_name=queue, claim_id=rows[0]["claim_id"])

    threads = [threading.Thread(target=consume, args=[connect()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [f"{number:03d}" for number in range(200)]
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P17")
def test_dequeue_wait_restores_group_concat_max_len(
    connection: Connection, connect: Connect, queue: str
) -> None:
    enqueue(connection, queue, json.dumps({"a": "b" * 5000}))
    session = connect()
    session.execute("set session group_concat_max_len = 1024")
    [message] = wait(session, queue)
    assert len(message["body"]) > 5000
    assert session.execute("select @@group_concat_max_len").fetchone() == (1024,)


@pytest.mark.promise("P02")
@pytest.mark.parametrize("size", [1024, 4096])
def test_batch_beyond_a_tiny_packet_loses_nothing(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, size: int
) -> None:
    sent = call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 1000)
    call(connection, "cancel", queue_name=queue, message_ids=[sent[-4].message_id])
    set_packet(size)
    with contextlib.suppress(pymysql.Error):
        dequeue(connect(), queue, 1000)
    set_packet(MEGABYTE)
    dialect_of(connection).pass_seconds(connection, queue, 60)
    call(connection, "maintain", queue_name=queue)
    found = [row.message_id for row in dequeue(connection, queue, 1000)]
    assert sorted(found) == [row.message_id for row in sent if row != sent[-4]]


@pytest.mark.promise("P12")
@pytest.mark.parametrize("end", ["complete", "archived", "fail_now", "cancel"])
def test_one_call_releases_more_keys_than_a_packet_holds(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, end: str
) -> None:
    """1000 keys of the greatest length, in hex, exceed a packet."""
    keys = [f"{number:03d}" + "\U0001f4e6" * 197 for number in range(1000)]
    messages = [{"body": "x", "dedup_key": key} for key in keys]
    if end == "archived":
        call(connection, "alter_queue", queue_name=queue, archive_days=1)
    sent = call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    set_packet(MEGABYTE)
    session = connect()
    if end == "cancel":
        call(session, end, queue_name=queue, message_ids=[row.message_id for row in sent])
    else:
        claim = dequeue(session, queue, 1000)[0].claim_id
        routine = "complete" if end == "archived" else end
        call(session, routine, queue_name=queue, claim_id=claim)
    assert counts(session, queue) == (0, 0, 0, 1000 * (end == "fail_now"))
    again = call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    assert {row.outcome for row in again} == {"enqueued"}


@pytest.mark.promise("P17")
def test_set_session_raises_group_concat_max_len(connect: Connect) -> None:
    """The value is max_allowed_packet, and the caller's value is restored."""
    session = connect()
    session.execute("set session group_concat_max_len = 1024")
    session.execute("call rowq.internal_set_session(@@timestamp)")
    if "mariadb" in session.server_version.lower():
        found = session.execute("select @@group_concat_max_len = @@max_allowed_packet").fetchone()
        assert found == (1,)
    session.execute("call rowq.internal_restore_session()")
    assert session.execute("select @@group_concat_max_len").fetchone() == (1024,)


MANY = 700
LONGEST = ["\U0001f4e6" * 197 + f"{number:03d}" for number in range(MANY)]
"""700 keys of the greatest length fit into a packet of 1 MB, but not in hex."""

PLAIN = ["k" * 196 + f"{number:04d}" for number in range(2500)]
"""2500 ASCII keys that fit into a call of 1 MB."""


def of_groups(keys: list[str], **more: object) -> list[dict[str, object]]:
    """Return a message per group."""
    return [{"body": key[-3:], "group_key": key, **more} for key in keys]


@pytest.mark.promise("P21")
def test_one_batch_has_more_group_keys_than_a_packet_holds(
    connect: Connect, queue: str, set_packet: SetPacket
) -> None:
    set_packet(MEGABYTE)
    session = connect()
    for _ in range(2):
        sent = call(session, "enqueue_batch", queue_name=queue, messages=of_groups(PLAIN))
        assert {row.outcome for row in sent} == {"enqueued"}
    found: list[str] = []
    while rows := dequeue(session, queue, 1000):
        found += [row.body for row in rows]
        call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    bodies = [key[-3:] for key in PLAIN]
    assert found[:1000] == bodies[:1000]
    assert sorted(found) == sorted(bodies * 2)


@pytest.mark.promise("P11", "P21")
@pytest.mark.parametrize("routine", ["promote", "maintain", "dequeue_fast"])
@pytest.mark.parametrize("packet", [MEGABYTE, 16 * MEGABYTE])
def test_promote_moves_more_group_keys_than_a_packet_holds(
    connection: Connection,
    connect: Connect,
    queue: str,
    set_packet: SetPacket,
    routine: str,
    packet: int,
) -> None:
    messages = of_groups(LONGEST, delay_seconds=30)
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    set_packet(packet)
    dialect_of(connection).pass_seconds(connection, queue, 60)
    session = connect()
    found = []
    for _ in range(3):
        if routine != "dequeue_fast":
            call(session, routine, queue_name=queue)
        found += [row.body for row in dequeue(session, queue, 1000)]
    assert sorted(found) == [key[-3:] for key in LONGEST]


@pytest.mark.promise("P15", "P22")
@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
def test_cancel_and_purge_more_group_keys_than_a_packet(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, routine: str
) -> None:
    call(connection, "enqueue_batch", queue_name=queue, messages=of_groups(LONGEST))
    waiting = call(connection, "enqueue_batch", queue_name=queue, messages=of_groups(LONGEST))
    set_packet(MEGABYTE)
    session = connect()
    if routine == "cancel":
        ids = [row.message_id for row in waiting]
        cancelled = call(session, "cancel", queue_name=queue, message_ids=ids)
        assert {row.outcome for row in cancelled} == {"cancelled"}
        rows = dequeue(session, queue, 1000)
        call(session, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    else:
        assert call_one(session, "purge_queue", queue_name=queue).removed == 2 * MANY
    assert dequeue(session, queue, 1000) == []
    call(connection, "enqueue_batch", queue_name=queue, messages=of_groups(LONGEST))
    assert counts(connection, queue) == (MANY, 0, 0, 0)


@pytest.mark.promise("P10", "P12", "P21")
@pytest.mark.parametrize("kind", ["dedup_key", "group_key"])
def test_one_call_resets_more_keys_than_a_packet_holds(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket, kind: str
) -> None:
    messages = [{"body": key[-3:], kind: key} for key in LONGEST]
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    claim = dequeue(connection, queue, 1000)[0].claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    taken = call(connection, "enqueue_batch", queue_name=queue, messages=messages[-2:])
    set_packet(MEGABYTE)
    session = connect()
    outcomes = [row.outcome for row in call(session, "reset", queue_name=queue)]
    is_dedup = kind == "dedup_key"
    assert outcomes == ["reset"] * (MANY - 2) + ["duplicate" if is_dedup else "reset"] * 2
    assert counts(connection, queue) == (MANY, 0, 0, 2 * is_dedup)
    assert len(taken) == 2
    found = [row.body for row in dequeue(session, queue, 1000)]
    assert sorted(found) == [key[-3:] for key in LONGEST]
    again = call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    assert {row.outcome for row in again} == {"duplicate" if is_dedup else "enqueued"}


@pytest.mark.promise("P12", "P27")
def test_failed_batch_releases_more_keys_than_a_packet_holds(
    connection: Connection, connect: Connect, queue: str, set_packet: SetPacket
) -> None:
    (first,) = enqueue(connection, queue, "first")
    claim = dequeue(connection, queue)[0].claim_id
    call(connection, "fail_now", queue_name=queue, claim_id=claim)
    set_packet(MEGABYTE)
    session = connect()
    after = {"predecessor_ids": [first], "on_predecessor_dead": "fail"}
    messages = [{"dedup_key": key, **after} for key in PLAIN]
    call(session, "enqueue_batch", queue_name=queue, messages=messages)
    assert counts(connection, queue) == (0, 0, 0, len(PLAIN) + 1)
    messages = [{"dedup_key": key} for key in PLAIN]
    again = call(session, "enqueue_batch", queue_name=queue, messages=messages)
    assert {row.outcome for row in again} == {"enqueued"}


@pytest.mark.promise("P15", "P35")
def test_batch_with_a_result_beyond_the_packet_is_refused(
    connection: Connection, connect: Connect, queue_name: str, set_packet: SetPacket
) -> None:
    topic, queues = queue_name[-8:], [f"{queue_name}{number}" for number in range(4)]
    for name in queues:
        call(connection, "create_queue", queue_name=name)
        call(connection, "bind_topic", queue_name=name, topic_pattern=topic)
    set_packet(1 << 16)
    session = connect()
    messages = [{"topic": topic}] * 1000
    texts = [
        refused(session, "RQ711", "publish_batch", messages=messages),
        refused(session, "RQ711", "enqueue_batch", queue_name=queues[0], messages=[{}] * 4000),
    ]
    assert ["max_allowed_packet" in text for text in texts] == [True, True]
    assert {counts(connection, name) for name in queues} == {(0, 0, 0, 0)}
    assert len(call(session, "publish_batch", messages=messages[:100])) == 400
