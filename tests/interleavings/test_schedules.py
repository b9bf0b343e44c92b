"""Sessions that run, change and drop schedules at the same time."""

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
def test_two_sessions_run_a_tick_once(sessions: Open, queue: str, order: str, ending: str) -> None:
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


@pytest.mark.promise("P30", "P31")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_schedule_is_passed_over_while_it_is_being_changed(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, keeper = sessions(2)
    schedule(keeper, queue)
    schedule(keeper, queue, "other")
    admin.begin().queue.alter_schedule(queue, "often", is_paused=True)
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == ["other"]
    admin.end(ending)
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == (["often"] if ending == "rollback" else [])


@pytest.mark.promise("P30")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_change_waits_for_who_is_running_the_schedule(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, keeper = sessions(2)
    schedule(keeper, queue)
    keeper.begin().queue.maintain(queue)
    change = admin.start(lambda own: own.alter_schedule(queue, "often", is_paused=True))
    change.waits_for(keeper)
    keeper.end(ending)
    change.result()
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == (["often"] if ending == "commit" else [])


@pytest.mark.promise("P30")
def test_a_dropped_schedule_is_run_by_nobody(sessions: Open, queue: str) -> None:
    admin, keeper = sessions(2)
    schedule(keeper, queue)
    admin.begin().queue.drop_schedule(queue, "often")
    keeper.queue.maintain(queue)
    admin.commit()
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == []


@pytest.mark.promise("P06", "P22", "P30")
@pytest.mark.parametrize("overlap", [True, False])
def test_a_tick_waits_a_moment_at_most_for_who_has_opened_its_group(
    sessions: Open, queue: str, overlap: bool
) -> None:
    producer, keeper = sessions(2)
    schedule(keeper, queue, group_key="group", overlap=overlap)
    schedule(keeper, queue, "other")
    producer.begin().queue.enqueue(queue, "first", group_key="group")
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == ["other"]
    if keeper.server.engine in {"postgres", "mysql"}:
        sent = dialect_of(keeper.connection).stored(keeper.connection, queue)["message"]
        assert sent == 1, "the tick is there, and joins its group later"
    producer.commit()
    pass_seconds(keeper.connection, queue, 1)
    keeper.queue.maintain(queue)
    assert work_off(keeper, queue) == ["first", "often"]


@pytest.mark.promise("P30")
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_queue_is_dropped_while_a_schedule_of_it_comes(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, dropper = sessions(2)
    admin.begin().queue.create_schedule(queue, "often", interval_seconds=3600)
    drop = dropper.start(lambda own: own.drop_queue(queue))
    try:
        # PostgreSQL waits for some milliseconds: a loaded machine may see the refusal alone.
        wait_until(
            lambda: drop.future.done() or dropper.id in dropper.server.waiting_sessions(),
            "the drop waits for the schedule, or is refused",
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
def test_two_sessions_create_one_schedule(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    made = first.begin().queue.create_schedule(queue, "often", interval_seconds=3600)
    assert made.outcome == "created"
    again = second.start(lambda own: own.create_schedule(queue, "often", interval_seconds=60))
    again.waits_for(first)
    first.commit()
    assert again.result().outcome == "exists"
    assert [one.interval_seconds for one in first.queue.list_schedules(queue)] == [3600]
