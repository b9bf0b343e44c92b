"""Fast paths of the hot routines: that they run, and that they do what the general paths do."""

from collections.abc import Callable
from itertools import permutations
from random import Random
from typing import Any

import pytest

from tests.dice import AGAIN, dice, times
from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_plans import Plan, Watched, nodes
from tests.helpers.calls import Row, bodies, call, rolled_back
from tests.helpers.queues import CheckedQueue

READY = """
    select r.message_id, r.attempt + 1, m.body, m.enqueued_at, r.last_error
    from rowq.ready r
    join rowq.message m using (queue_id, message_id)
    where r.queue_id = (select q.queue_id from rowq.queue q where q.queue_name = %s)
    order by r.lane, r.seq
    limit %s
    """
"""The messages of a queue in the order of delivery, as a dequeue must return them."""

STORED = """
    select 'message', string_agg(m.message_id::text, ' ' order by m.message_id) from rowq.message m
    union all
    select 'ready', string_agg(r.lane || ':' || r.message_id, ' ' order by r.lane, r.seq)
    from rowq.ready r
    union all
    select 'claim', string_agg(c.message_ids::text, ' ' order by c.claim_id) from rowq.claim c
    union all
    select 'dedup', string_agg(d.dedup_key, ' ' order by d.dedup_key) from rowq.dedup d
    union all
    select 'group_slot', string_agg(g.group_key, ' ' order by g.group_key) from rowq.group_slot g
    union all
    select 'group_waiting', string_agg(g.message_id::text, ' ' order by g.message_id)
    from rowq.group_waiting g
    union all
    select 'blocked', string_agg(b.message_id::text, ' ' order by b.message_id) from rowq.blocked b
    """
"""Content of the tables without numbers that a sequence assigns."""


def about(plans: list[Plan], words: str) -> list[Plan]:
    """Return the plans of the statements that contain these words."""
    return [plan["Plan"] for plan in plans if words in " ".join(plan["Query Text"].split())]


def answer(plans: list[Plan]) -> list[str]:
    """Return the kinds of nodes of the statement that returns the messages of a batch."""
    [plan] = about(plans, "m.body, m.body_binary") or about(plans, "j.body, j.body_binary")
    return [node["Node Type"] for node in nodes(plan)]


def in_order(queue: CheckedQueue, count: int) -> list[Row]:
    """Dequeue a batch, which must be as the tables have it."""
    expected = queue.connection.execute(READY, [queue.name, count]).fetchall()
    rows = queue.dequeue(count)
    found = [(r.message_id, r.attempt, r.body, r.enqueued_at, r.last_error) for r in rows]
    assert found == expected, AGAIN
    return rows


@pytest.fixture
def watched(open_owner: Open, own_queue: CheckedQueue) -> Watched:
    """Return a session that reports its plans, warmed up by a batch."""
    session = Watched(open_owner())
    queue = own_queue.via(session.connection)
    queue.enqueue("a", "b")
    queue.call("complete", claim_id=queue.dequeue(2)[0].claim_id)
    return session


@pytest.mark.promise("P05")
@pytest.mark.parametrize("others", [0, 6], ids=["consecutive", "with gaps"])
def test_fresh_batch_is_one_scan(own_queue: CheckedQueue, watched: Watched, others: int) -> None:
    for number in range(10):
        own_queue.enqueue(f"{number}")
        own_queue.enqueue(*["other"] * others, priority=9)
    queue = own_queue.via(watched.connection)
    plans = watched.run(lambda _: in_order(queue, 10))
    assert answer(plans) == ["Index Scan"]


@pytest.mark.promise("P05", "P10")
def test_batches_in_another_order_keep_it(own_queue: CheckedQueue) -> None:
    queue = own_queue
    queue.enqueue("promoted", delay_seconds=10)
    queue.enqueue("passed on", "passed on too", group_key="g")
    queue.enqueue("retried", "released")
    queue.pass_seconds(20)
    queue.call("promote")
    rows = queue.dequeue(2)
    assert bodies(rows) == ["passed on", "retried"]
    common = {"claim_id": rows[0].claim_id}
    queue.call("complete", **common, message_ids=[rows[0].message_id])
    queue.call("retry_later", **common, delay_seconds=0, error="broken")
    queue.enqueue("urgent", priority=0)
    queue.call("release", claim_id=queue.dequeue(1)[0].claim_id)
    rows = in_order(queue, 10)
    assert bodies(rows) == ["urgent", "released", "promoted", "passed on too", "retried"]


@pytest.mark.promise("P10")
def test_attempts_are_right_after_a_sequence_was_set_back(own_queue: CheckedQueue) -> None:
    queue = own_queue
    ids = queue.enqueue("a", "b")
    claim = queue.dequeue(2)[0].claim_id
    queue.connection.execute("select setval('rowq.message_seq', %s, false)", [ids[0]])
    queue.call("retry_later", claim_id=claim, delay_seconds=0, error="broken")
    queue.tick()
    queue.call("maintain")  # The floor may be above.
    seqs = queue.connection.execute("select array_agg(r.seq order by r.seq) from rowq.ready r")
    assert seqs.fetchone() == (ids,)
    assert [row.attempt for row in in_order(queue, 2)] == [2, 2]


@pytest.mark.promise("P05")
def test_plain_message_takes_three_statements(own_queue: CheckedQueue, watched: Watched) -> None:
    queue = own_queue.via(watched.connection)
    plans = watched.run(lambda _: queue.enqueue("a"))
    tables = [
        {node["Relation Name"] for node in nodes(plan["Plan"]) if "Relation Name" in node}
        for plan in plans
    ]
    # The last is the call.
    assert tables == [{"queue"}, {"message"}, {"ready", "floor"}, set()]


@pytest.mark.promise("P05", "P20")
@pytest.mark.parametrize("priority", [0, 5, 9])
@pytest.mark.parametrize("body", [None, "", "a", "é" * 100, "x" * 101], ids=ascii)
def test_plain_message_is_stored_as_by_the_general_path(
    own_queue: CheckedQueue, body: str | None, priority: int
) -> None:
    own_queue.call("alter_queue", max_body_length=100)
    found: list[Any] = []
    # Only READ COMMITTED takes the fast path.
    for isolation in ("read committed", "repeatable read"):
        own_queue.connection.execute(f"set default_transaction_isolation = '{isolation}'")
        arguments = {"body": body, "priority": priority}
        if len(body or "") > 100:
            found.append(own_queue.refused("RQ711", "enqueue", **arguments))
            continue
        row = own_queue.call_one("enqueue", **arguments)
        stored = own_queue.connection.execute(
            """
            select to_jsonb(m) - '{message_id,enqueued_at}'::text[],
                   to_jsonb(r) - '{message_id,seq}'::text[], r.seq = m.message_id,
                   m.enqueued_at between now() - interval '1 minute' and clock_timestamp()
            from rowq.message m
            join rowq.ready r using (queue_id, message_id)
            where message_id = %s
            """,
            [row.message_id],
        ).fetchall()
        found.append((row.outcome, stored))
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.promise("P20")
@pytest.mark.parametrize("is_large", [False, True])
def test_plain_batch_is_stored_as_by_the_general_path(
    own_queue: CheckedQueue, *, is_large: bool
) -> None:
    """A batch in which a message has a priority takes the general path."""
    queue = own_queue
    queue.call("alter_queue", max_body_length=1000)
    others = [{"body": "x" * 200}] * (500 if is_large else 1)
    texts = ["", "a", 'é\n"\\', "x" * 979, "x" * 980, "x" * 1000, "x" * 1001]
    for body in [*texts, None, True, 12, 1.5, 10**34, [1, 2], {"a": {"b": 10**60}}]:
        found: list[Any] = []
        for keys in ({}, {"priority": 5}):
            messages = [*others, {"body": body} | keys]
            if len(str(body)) > 1000:
                found.append(queue.refused("RQ711", "enqueue_batch", messages=messages))
                continue
            rows = queue.call("enqueue_batch", messages=messages)
            ids = [row.message_id for row in rows]
            assert ids == [*range(ids[0], ids[0] + len(messages))]
            stored = queue.connection.execute(
                "select m.body from rowq.message m where m.message_id = any (%s) order by 1", [ids]
            ).fetchall()
            ready = in_order(queue, len(messages))
            assert [row.message_id for row in ready] == ids
            found.append(([(row.position, row.outcome) for row in rows], stored))
        assert found[0] == found[1], body


@pytest.mark.parametrize("plain", [0, 1])
def test_batch_takes_one_id_per_message(own_queue: CheckedQueue, plain: int) -> None:
    """Unused numbers would look like work to maintain."""
    [last] = own_queue.enqueue("x")
    for _ in range(2):
        messages = [{"body": "x"}] * plain + [{"body": "x", "priority": 3}] * 3
        ids = [row.message_id for row in own_queue.call("enqueue_batch", messages=messages)]
        assert ids == [*range(last + 1, last + 1 + len(messages))]
        last = ids[-1]


@pytest.mark.promise("P05", "P12", "P20")
@pytest.mark.parametrize("body", ["1e%s", '{"a": 1e%s}', '"x%s"'])
def test_no_key_of_a_batch_is_lost(own_queue: CheckedQueue, body: str) -> None:
    """A number may be shorter as jsonb than as a text."""
    own_queue.connection.execute(
        """
        select count(s.message_id)
        from generate_series(1, 200) e
        cross join lateral rowq.enqueue_batch(
            'q', format('[{"body": ' || %s || ', "priority": 9}]', e)::jsonb
        ) s
        """,
        [body],
    )
    lanes = own_queue.connection.execute("select distinct r.lane from rowq.ready r").fetchall()
    assert lanes == [(19,)]


@pytest.mark.promise("P04")
def test_plain_batch_is_deleted_by_one_statement(own_queue: CheckedQueue, watched: Watched) -> None:
    own_queue.enqueue(*"abcde")
    claim = own_queue.dequeue(5)[0].claim_id
    queue = own_queue.via(watched.connection)
    plans = watched.run(lambda _: queue.call("complete", claim_id=claim))
    assert len(about(plans, "delete from rowq.message")) == 1
    assert not about(plans, "rowq.internal_")
    assert own_queue.stored()["message"] == 0


@pytest.mark.promise("P04")
@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
@pytest.mark.parametrize("linked", [None, 0, 1, 2])
def test_batch_in_any_order_of_ids_is_completed(
    own_queue: CheckedQueue, order: tuple[int, ...], linked: int | None
) -> None:
    queue = own_queue
    ids: dict[int, int] = {}
    for place in range(3):
        key = {"dedup_key": "key"} if place == linked else {}
        [ids[place]] = queue.enqueue("x", priority=order[place], **key)
    rows = queue.dequeue(3)
    assert [row.message_id for row in rows] == [ids[order.index(place)] for place in range(3)]
    done = queue.call("complete", claim_id=rows[0].claim_id)
    assert [row.message_id for row in done] == [row.message_id for row in rows]
    assert {row.outcome for row in done} == {"completed"}
    assert sum(queue.stored().values()) == 0


@pytest.mark.promise("P13")
def test_ids_far_apart_are_not_read_as_a_range(own_queue: CheckedQueue, watched: Watched) -> None:
    own_queue.enqueue("a")
    own_queue.connection.execute("select setval('rowq.message_seq', 100000)")
    own_queue.enqueue("b")
    queue = own_queue.via(watched.connection)

    def work(_: object) -> None:
        queue.call("complete", claim_id=in_order(queue, 2)[0].claim_id)

    conditions = [
        node.get("Index Cond", "")
        for plan in about(watched.run(work), "rowq.message ")
        for node in nodes(plan)
        if node.get("Relation Name") == "message"
    ]
    assert conditions
    assert not any(">=" in condition for condition in conditions)
    assert own_queue.stored()["message"] == 0


def completed(queue: CheckedQueue, rows: list[Row], *lists: list[int] | None) -> dict[str, Any]:
    """Complete a claim by calls with these message_ids; return what is stored then."""
    for message_ids in lists:
        given = {} if message_ids is None else {"message_ids": message_ids}
        done = queue.call("complete", claim_id=rows[0].claim_id, **given)
        expected = [row.message_id for row in rows] if message_ids is None else message_ids
        assert [(row.message_id, row.outcome) for row in done] == [
            (message_id, "completed") for message_id in expected
        ], AGAIN
    return dict(queue.connection.execute(STORED).fetchall())


def add(queue: CheckedQueue, random: Random, number: int) -> None:
    """Enqueue one or several messages, most of them plain."""
    arguments: dict[str, Any] = {}
    if random.random() < 0.3:
        arguments["priority"] = random.choice([0, 5, 9])
    if random.random() < 0.1:
        arguments["dedup_key"] = random.choice("klm")
    if random.random() < 0.2:
        arguments["group_key"] = random.choice("xyz")
    if random.random() < 0.1:
        stored = [row[0] for row in queue.census()]
        arguments["predecessor_ids"] = random.sample(stored, min(len(stored), 2))
    if random.random() < 0.5:
        queue.enqueue(f"{number}", **arguments)
    else:
        message = {"body": f"{number}"} | arguments
        queue.call("enqueue_batch", messages=[message] + [{"body": "x"}] * random.randrange(9))


@pytest.mark.promise("P04", "P05")
@pytest.mark.parametrize("part", range(2))
def test_random_batches_equal_single_messages(own_queue: CheckedQueue, part: int) -> None:
    queue = own_queue
    random = dice("fast paths", part)
    returns: dict[str, Callable[[], dict[str, Any]]] = {
        "release": dict,
        "retry_later": lambda: {"delay_seconds": random.choice([0, 1000]), "error": "broken"},
        "fail_now": lambda: {"error": "broken"},
    }
    for number in range(times(120)):
        for _ in range(random.randrange(6)):
            add(queue, random, number)
        rows = in_order(queue, random.choice([2, 2, 5, 10, 50]))
        if not rows:
            continue
        ids = [row.message_id for row in rows]
        if random.random() < 0.3:
            routine = random.choice([*returns])
            queue.call(routine, claim_id=rows[0].claim_id, **returns[routine]())
            continue
        random.shuffle(ids)
        # First at once: a message that was deleted in vain is not plain any more.
        with rolled_back(queue.connection):
            at_once = completed(queue, rows, random.choice([None, ids]))
        assert completed(queue, rows, *([one_id] for one_id in ids)) == at_once, AGAIN
        if number % 20 == 0:
            call(queue.connection, "maintain")
