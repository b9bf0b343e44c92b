"""Concurrent sessions that run, change and drop schedules."""

from typing import Any

import pytest

from tests.engines.base import wait_until
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session, Step, orders, play
from tests.interleavings.work import work_off
from tests.stored_times import pass_seconds

ENDINGS = ["commit", "rollback"]


def schedule(session: Session, queue: str, name: str = "often", **settings: Any) -> None:
    """Create a schedule whose first tick is due."""
    session.queue.create_schedule(queue, name, name, interval_seconds=3600, **settings)
    pass_seconds(session.connection, queue, 3600)


@pytest.mark.promise("P30")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("order", orders("a1 a2 a3", "b1"))
def test_tick_runs_once_in_two_sessions(
    sessions: Open, queue: str, order: str, ending: str
) -> None:
    first, second, other = sessions(3)
    schedule(other, queue)
    steps = {
        "a1": Step("a1", first, lambda _: first.begin()),
        "a2": Step("a2", first, lambda own: own.maintain(queue)),
        "a3": Step("a3", first, lambda _: first.end(ending)),
        "b1": Step("b1", second, lambda own: own.maintain(queue)),
    }
    done = play([steps[name] for name in order.split()])
    assert not [answer for answer in done.values() if isinstance(answer, Exception)]
    other.queue.maintain(queue)
    assert work_off(other, queue) == ["often"]


@pytest.mark.promise("P30", "P48")
@pytest.mark.parametrize("ending", ENDINGS)
def test_run_from_the_end_is_added_once(sessions: Open, queue: str, ending: str) -> None:
    first, second, other = sessions(3)
    schedule(other, queue, counts_from="end")
    first.begin().queue.maintain(queue)
    second.queue.maintain(queue)
    first.end(ending)
    for _ in range(2):
        pass_seconds(other.connection, queue, 2)
        other.queue.maintain(queue)
    [shown] = other.queue.list_schedules(queue)
    assert work_off(other, queue) == ["often"]
    for _ in range(2):
        pass_seconds(other.connection, queue, 2)
        other.queue.maintain(queue)
    [ended] = other.queue.list_schedules(queue)
    assert ended.last_message_id == shown.last_message_id
    assert work_off(other, queue) == []


@pytest.mark.promise("P30", "P31")
@pytest.mark.parametrize("ending", ENDINGS)
def test_maintain_skips_schedule_being_altered(sessions: Open, queue: str, ending: str) -> None:
    admin, leader = sessions(2)
    schedule(leader, queue)
    schedule(leader, queue, "other")
    admin.begin().queue.alter_schedule(queue, "often", is_paused=True)
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == ["other"]
    admin.end(ending)
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == (["often"] if ending == "rollback" else [])


@pytest.mark.promise("P30")
@pytest.mark.parametrize("ending", ENDINGS)
def test_alter_schedule_waits_for_open_maintain(sessions: Open, queue: str, ending: str) -> None:
    admin, leader = sessions(2)
    schedule(leader, queue)
    leader.begin().queue.maintain(queue)
    change = admin.start(lambda own: own.alter_schedule(queue, "often", is_paused=True))
    change.waits_for(leader)
    leader.end(ending)
    change.result()
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == (["often"] if ending == "commit" else [])


@pytest.mark.promise("P30")
def test_dropped_schedule_does_not_run(sessions: Open, queue: str) -> None:
    admin, leader = sessions(2)
    schedule(leader, queue)
    admin.begin().queue.drop_schedule(queue, "often")
    leader.queue.maintain(queue)
    admin.commit()
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == []


@pytest.mark.promise("P06", "P22", "P30")
@pytest.mark.parametrize("overlap", [True, False])
def test_tick_waits_briefly_for_producer_in_its_group(
    sessions: Open, queue: str, overlap: bool
) -> None:
    producer, leader = sessions(2)
    schedule(leader, queue, group_key="group", overlap=overlap)
    schedule(leader, queue, "other")
    producer.begin().queue.enqueue(queue, "first", group_key="group")
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == ["other"]
    if leader.server.engine in {"postgres", "mysql"}:
        count = dialect_of(leader.connection).stored(leader.connection, queue)["message"]
        assert count == 1, "the message exists, and joins its group later"
    producer.commit()
    pass_seconds(leader.connection, queue, 1)
    leader.queue.maintain(queue)
    assert work_off(leader, queue) == ["first", "often"]


@pytest.mark.promise("P30")
@pytest.mark.parametrize("ending", ENDINGS)
def test_drop_queue_waits_for_open_create_schedule(sessions: Open, queue: str, ending: str) -> None:
    admin, dropper = sessions(2)
    admin.begin().queue.create_schedule(queue, "often", interval_seconds=3600)
    drop = dropper.start(lambda own: own.drop_queue(queue))
    try:
        # PostgreSQL waits a few milliseconds: a loaded machine may see only the error.
        wait_until(
            lambda: drop.future.done() or dropper.id in dropper.server.waiting_sessions(),
            "drop_queue waits or is refused",
        )
        assert not drop.future.done() or drop.future.exception() is not None
    finally:
        admin.end(ending)
    refusal = drop.future.exception(20)
    if refusal is not None:
        dropper.queue.drop_queue(queue)
    dropper.queue.create_queue(queue)
    assert dropper.queue.list_schedules(queue) == []


@pytest.mark.promise("P15")
def test_create_schedule_waits_for_same_name(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    made = first.begin().queue.create_schedule(queue, "often", interval_seconds=3600)
    assert made.outcome == "created"
    again = second.start(lambda own: own.create_schedule(queue, "often", interval_seconds=60))
    again.waits_for(first)
    first.commit()
    assert again.result().outcome == "exists"
    assert [one.interval_seconds for one in first.queue.list_schedules(queue)] == [3600]
