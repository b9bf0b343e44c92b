"""after_failover."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import Row, call
from tests.helpers.queues import CheckedQueue, Connect

pytestmark = pytest.mark.promise("P46")

NAMES = ["claim", "message", "queue"]
JUMP = 10**9


def after_failover(connection: Connection) -> dict[str, Row]:
    """Call after_failover; return its rows by name."""
    rows = call(connection, "after_failover")
    assert sorted(row.name for row in rows) == NAMES
    return {row.name: row for row in rows}


@pytest.mark.promise("P08")
def test_numbers_continue_far_above_the_old_ones(queue: CheckedQueue) -> None:
    [message_id] = queue.enqueue("a")
    claim = queue.dequeue_one()
    moved = after_failover(queue.connection)
    assert moved["message"].is_now >= moved["message"].was + JUMP >= message_id + JUMP
    assert moved["claim"].is_now > claim.claim_id
    assert moved["queue"].is_now >= moved["queue"].was + 1000

    assert queue.enqueue("b") > [moved["message"].is_now]
    row = queue.dequeue_one()
    assert row.claim_id > moved["claim"].is_now
    assert queue.another().enqueue("c") > [row.message_id]
    # Claims held before stay valid.
    for held in (claim, row):
        queue.call("complete", claim_id=held.claim_id)
    assert queue.counts() == (0, 0, 0, 0)


def test_second_call_continues_above_the_first(queue: CheckedQueue) -> None:
    first = after_failover(queue.connection)
    second = after_failover(queue.connection)
    for name in NAMES:
        assert second[name].was >= first[name].is_now
        assert second[name].is_now >= second[name].was
    assert second["message"].is_now >= first["message"].is_now + JUMP


def test_health_checks_each_kind_of_number(connection: Connection) -> None:
    after_failover(connection)
    rows = [row for row in call(connection, "health") if row.check_name == "sequence_behind"]
    assert [(row.status, row.value) for row in rows] == [("ok", 0)] * 3
    assert [row.detail.split()[0] for row in rows] == NAMES


@pytest.mark.promise("P08")
def test_first_claim_is_above_those_of_older_servers(queue: CheckedQueue) -> None:
    queue.enqueue("a")
    # Number generators of claims start at a time, and stay exact as doubles.
    assert 10**15 < queue.dequeue_one().claim_id < 2**53


@pytest.mark.promise("P01", "P02", "P04")
def test_calls_in_progress_lose_and_repeat_nothing(queue: CheckedQueue, connect: Connect) -> None:
    def produce(session: CheckedQueue) -> list[int]:
        return [session.enqueue(f"{number}")[0] for number in range(60)]

    def advance(session: CheckedQueue) -> None:
        for _ in range(5):
            after_failover(session.connection)
            session.call("maintain")

    def consume(session: CheckedQueue) -> list[int]:
        done: list[int] = []
        for _ in range(4000):
            for row in session.dequeue(5):
                done += [r.message_id for r in session.call("complete", claim_id=row.claim_id)]
                break
            if len(done) == 60:
                break
        return done

    with ThreadPoolExecutor(3) as pool:
        enqueued = pool.submit(produce, queue.via(connect()))
        completed = pool.submit(consume, queue.via(connect()))
        pool.submit(advance, queue.via(connect())).result()
        ids = enqueued.result()
        assert sorted(completed.result()) == sorted(ids)
    assert len(set(ids)) == 60
    assert queue.counts() == (0, 0, 0, 0)
