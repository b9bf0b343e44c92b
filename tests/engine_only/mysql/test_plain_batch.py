"""A batch of text bodies alone is stored in two inserts, and its ids are known by their order."""

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


@pytest.fixture
def queue(connection: Connection, queue_name: str) -> str:
    call(connection, "create_queue", queue_name=queue_name)
    return queue_name


@pytest.mark.pitfall("mysql 8")
@pytest.mark.promise("P01", "P05")
def test_ids_of_batches_that_are_stored_at_once_are_those_of_their_messages(
    connection: Connection, connect: Connect, queue: str
) -> None:
    def produce(session: int) -> dict[int, str]:
        own = connect()
        sent: dict[int, str] = {}
        for number in range(CALLS):
            # Sizes and kinds vary, so that calls that take many numbers at once meet others.
            texts = [f"{session} {number} {place}" for place in range(1 + (number * 7) % 40)]
            messages: list[dict[str, Any]] = [{"body": text} for text in texts]
            if number % 5 == session % 5:
                messages[-1]["priority"] = 5
            rows = call(own, "enqueue_batch", queue_name=queue, messages=messages)
            sent.update(zip((row.message_id for row in rows), texts, strict=True))
        return sent

    with ThreadPoolExecutor(SESSIONS) as threads:
        answers = list(threads.map(produce, range(SESSIONS)))
    told = {number: text for answer in answers for number, text in answer.items()}
    assert len(told) == sum(map(len, answers))
    assert dict(connection.execute(STORED, [queue]).fetchall()) == told
    taken = []
    while rows := dequeue(connection, queue, 1000):
        taken += bodies(rows)
    assert sorted(map(str, taken)) == sorted(told.values())
    places: dict[str, list[int]] = {}
    for text in taken:
        batch, place = str(text).rsplit(" ", 1)
        places.setdefault(batch, []).append(int(place))
    assert all(places[batch] == sorted(places[batch]) for batch in places)


@pytest.mark.promise("P01")
@pytest.mark.parametrize("step", [1, 2, 10])
def test_numbers_of_a_session_that_jump_are_those_of_its_messages(
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
def test_a_stray_value_among_plain_messages_is_refused_with_its_place(
    connection: Connection, queue: str, stray: Any
) -> None:
    messages = [{"body": "first"}, stray, {"body": "last"}]
    said = refused(connection, "RQ711", "enqueue_batch", queue_name=queue, messages=messages)
    assert "(message 2)" in said
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("text", ['[{"body": "a"}]]', '[{"body": "a"}] x', '[{"body": "a"}', " "])
def test_what_is_no_json_is_refused_though_it_begins_like_a_batch(
    connection: Connection, queue: str, text: str
) -> None:
    with pytest.raises(Exception, match="RQ711"):
        connection.execute("call rowq.enqueue_batch(%s, %s)", [queue, text])
    assert counts(connection, queue) == (0, 0, 0, 0)


@pytest.mark.promise("P20")
def test_a_batch_may_have_blanks_before_and_between(connection: Connection, queue: str) -> None:
    text = "\n\t " + json.dumps([{"body": "a"}, {"body": "b"}], indent=4) + "\n"
    connection.execute("call rowq.enqueue_batch(%s, %s)", [queue, text])
    assert bodies(dequeue(connection, queue, 10)) == ["a", "b"]


@pytest.mark.promise("P01", "P35")
def test_published_messages_with_text_bodies_alone_are_stored_in_two_inserts(
    connection: Connection, connect: Connect, queue: str
) -> None:
    """Those of all places, and those of some; a topic with an escape goes one by one."""
    topic, session = queue.replace(" ", "_")[-60:], connect()
    call(session, "bind_topic", queue_name=queue, topic_pattern=f"{topic}.#")
    # Where ids of one insert need not follow each other, as on MySQL unless set, each has its own.
    ((mode,),) = session.execute("select @@innodb_autoinc_lock_mode").fetchall()
    texts = [str(number) for number in range(30)]
    everything = [{"topic": f"{topic}.{text}", "body": text} for text in texts]
    some = [{"topic": "to.nobody", "body": "none"}, *everything]
    for messages in (everything, some):

        def publish(given: str = json.dumps(messages)) -> None:
            session.execute("call rowq.publish_batch(%s)", [given]).fetchall()

        ran = run_by(connection, session, publish)
        inserts = sum("insert into rowq.message" in statement for statement in ran)
        assert inserts == (1 if mode < 2 else len(everything))
    given = json.dumps(everything).replace(topic[0], f"\\u00{ord(topic[0]):02x}", 1)
    rows = session.execute("call rowq.publish_batch(%s)", [given]).fetchall()
    assert [row[0] for row in rows] == [*range(1, 31)]
    taken = dequeue(connection, queue, 100)
    assert bodies(taken) == texts * 3
    assert [row.message_type for row in taken] == [f"{topic}.{text}" for text in texts] * 3
