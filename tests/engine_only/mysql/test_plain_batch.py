"""A batch of text bodies only is stored in two inserts with consecutive ids."""

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from tests.engine_only.mysql.statements import run_by
from tests.engines.base import Connection
from tests.helpers.calls import bodies, call, counts, dequeue, refused
from tests.helpers.queues import Connect

STORED = """
    select m.message_id, m.body from rowq.queue q join rowq.message m on m.queue_id = q.queue_id
    where q.queue_name = cast(%s as binary)
"""
SESSIONS, CALLS = 6, 30


@pytest.mark.pitfall("mysql 8")
@pytest.mark.promise("P01", "P05")
def test_concurrent_batches_return_the_right_ids(
    connection: Connection, connect: Connect, queue: str
) -> None:
    def produce(session: int) -> dict[int, str]:
        own = connect()
        sent: dict[int, str] = {}
        for number in range(CALLS):
            # Vary sizes and kinds, so that fast and slow paths run concurrently.
            texts = [f"{session} {number} {index}" for index in range(1 + (number * 7) % 40)]
            messages: list[dict[str, Any]] = [{"body": text} for text in texts]
            if number % 5 == session % 5:
                messages[-1]["priority"] = 5
            rows = call(own, "enqueue_batch", queue_name=queue, messages=messages)
            sent.update(zip((row.message_id for row in rows), texts, strict=True))
        return sent

    with ThreadPoolExecutor(SESSIONS) as threads:
        answers = list(threads.map(produce, range(SESSIONS)))
    returned = {number: text for answer in answers for number, text in answer.items()}
    assert len(returned) == sum(map(len, answers))
    assert dict(connection.execute(STORED, [queue]).fetchall()) == returned
    taken = []
    while rows := dequeue(connection, queue, 1000):
        taken += bodies(rows)
    assert sorted(map(str, taken)) == sorted(returned.values())
    orders: dict[str, list[int]] = {}
    for text in taken:
        batch, index = str(text).rsplit(" ", 1)
        orders.setdefault(batch, []).append(int(index))
    assert all(order == sorted(order) for order in orders.values())


@pytest.mark.promise("P01")
@pytest.mark.parametrize("step", [1, 2, 10])
def test_batch_respects_auto_increment_increment(
    connection: Connection, connect: Connect, queue: str, step: int
) -> None:
    session = connect()
    session.execute(f"set auto_increment_increment = {step}, auto_increment_offset = {step}")
    texts = [str(number) for number in range(50)]
    for _ in range(2):
        rows = call(
            session, "enqueue_batch", queue_name=queue, messages=[{"body": text} for text in texts]
        )
        numbers = [row.message_id for row in rows]
        assert {after - before for before, after in pairwise(numbers)} == {step}
        taken = dequeue(connection, queue, 100)
        assert {row.message_id: row.body for row in taken} == dict(zip(numbers, texts, strict=True))


@pytest.mark.promise("P15")
@pytest.mark.parametrize("stray", [[], ["body"], [{"body": "inside"}], "body", 1, None])
def test_plain_batch_refuses_a_stray_value_by_position(
    connection: Connection, queue: str, stray: Any
) -> None:
    messages = [{"body": "first"}, stray, {"body": "last"}]
    text = refused(connection, "RQ711", "enqueue_batch", queue_name=queue, messages=messages)
    assert "(message 2)" in text
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("text", ['[{"body": "a"}]]', '[{"body": "a"}] x', '[{"body": "a"}', " "])
def test_plain_batch_refuses_invalid_json(connection: Connection, queue: str, text: str) -> None:
    with pytest.raises(Exception, match="RQ711"):
        connection.execute("call rowq.enqueue_batch(%s, %s)", [queue, text])
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P20")
def test_plain_batch_may_have_blanks(connection: Connection, queue: str) -> None:
    text = "\n\t " + json.dumps([{"body": "a"}, {"body": "b"}], indent=4) + "\n"
    connection.execute("call rowq.enqueue_batch(%s, %s)", [queue, text])
    assert bodies(dequeue(connection, queue, 10)) == ["a", "b"]


@pytest.mark.promise("P01", "P35")
def test_plain_published_batch_is_stored_in_two_inserts(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """A topic with an escape is stored one by one."""
    topic, session = queue.replace(" ", "_")[-60:], connect()
    call(session, "bind_topic", queue_name=queue, topic_pattern=f"{topic}.#")
    # In mode 2, MySQL's default, ids of one insert need not be consecutive: each has its own.
    ((mode,),) = session.execute("select @@innodb_autoinc_lock_mode").fetchall()
    texts = [str(number) for number in range(30)]
    everything = [{"topic": f"{topic}.{text}", "body": text} for text in texts]
    some = [{"topic": "not.bound", "body": "none"}, *everything]
    for messages in (everything, some):

        def publish(text: str = json.dumps(messages)) -> None:
            session.execute("call rowq.publish_batch(%s)", [text]).fetchall()

        ran = run_by(connection, session, publish)
        inserts = sum("insert into rowq.message" in statement for statement in ran)
        assert inserts == (1 if mode < 2 else len(everything))
    escaped = json.dumps(everything).replace(topic[0], f"\\u00{ord(topic[0]):02x}", 1)
    rows = session.execute("call rowq.publish_batch(%s)", [escaped]).fetchall()
    assert [row[0] for row in rows] == [*range(1, 31)]
    taken = dequeue(connection, queue, 100)
    assert bodies(taken) == texts * 3
    assert [row.message_type for row in taken] == [f"{topic}.{text}" for text in texts] * 3
