"""complete_and_dequeue overlaps with sessions that want the old claim or the next messages."""

import contextlib
import time
from collections.abc import Callable

import pytest

from rowq import Message, NextMessages, Queue, QueueBusy, QueueNotFound
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_admin import start_to_drop
from tests.interleavings.test_expiry import expired_claim, states
from tests.interleavings.test_isolation import each_strict, result_or_transient_error
from tests.interleavings.test_late_committer import move_floor_beyond
from tests.interleavings.work import (
    claim_of,
    each_ending,
    everything,
    fill,
    maintain_later,
    take,
    work_off,
)
from tests.stored_times import pass_seconds

each_part = pytest.mark.parametrize("is_whole", [False, True], ids=["ids", "whole claim"])
each_size = pytest.mark.parametrize("size", [1, 3])
limits = pytest.mark.requires("limits")


def exchange(
    queue: str, claim: int, ids: list[int] | None = None, size: int = 1
) -> Callable[[Queue], NextMessages]:
    """Return a call that completes messages of a claim and leases up to `size` others."""
    return lambda own: own.complete_and_dequeue(queue, claim, ids, batch_size=size)


def ids_of(messages: list[Message]) -> list[int]:
    return [message.message_id for message in messages]


@pytest.mark.promise("P04", "P08")
@each_ending
@each_part
@each_size
@pytest.mark.parametrize("history_days", [0, 1])
def test_second_call_with_the_same_claim_waits_and_is_stale(
    sessions: Open, queue: str, history_days: int, size: int, is_whole: bool, ending: str
) -> None:
    first, second = sessions(2)
    first.queue.alter_queue(queue, history_days=history_days)
    claim, ids = claim_of(first, queue, size)
    new = fill(first, queue, 3 * size)
    asked = None if is_whole else ids
    mine = exchange(queue, claim, asked, size)(first.begin().queue)
    assert (ids_of(mine.messages), mine.is_stale) == (new[:size], False)
    calling = second.start(exchange(queue, claim, asked, size))
    calling.waits_for(first)
    first.end(ending)
    answer = calling.result()
    if ending == "commit":
        assert (answer.is_stale, answer.stale_ids) == (True, [] if is_whole else ids)
        assert ids_of(answer.messages) == new[size : 2 * size]
    else:
        assert not answer.is_stale
        assert ids_of(answer.messages) == new[:size]
    assert states(first, queue, ids) == {None}
    leased = 2 * size if ending == "commit" else size
    assert first.queue.queue_stats(queue)[0].leased == leased


@pytest.mark.promise("P02", "P08", "P09")
@each_ending
@each_part
def test_call_waits_for_an_open_reap_of_its_claim(
    sessions: Open, queue: str, is_whole: bool, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    new = fill(worker, queue, 2)
    assert reaper.begin().queue.reap(queue).reaped == 2
    calling = worker.start(exchange(queue, claim, None if is_whole else ids))
    calling.waits_for(reaper)
    reaper.end(ending)
    answer = calling.result()
    assert answer.is_stale == (ending == "commit")
    if ending == "commit":
        # Reaped messages come first, with their second attempt.
        assert [(message.message_id, message.attempt) for message in answer.messages] == [
            (ids[0], 2)
        ]
        assert everything(reaper, queue) == [ids[1], *new]
    else:
        assert ids_of(answer.messages) == new[:1]
        assert reaper.queue.reap(queue).reaped == 0
        assert everything(reaper, queue) == new[1:]


@pytest.mark.promise("P02", "P03", "P09")
@each_ending
@each_part
def test_reap_skips_the_claim_of_an_open_call(
    sessions: Open, queue: str, is_whole: bool, ending: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue)
    new = fill(worker, queue, 1)
    exchange(queue, claim, None if is_whole else ids)(worker.begin().queue)
    assert reaper.queue.reap(queue).reaped == 0
    worker.end(ending)
    assert reaper.queue.reap(queue).reaped == (0 if ending == "commit" else 2)
    assert everything(reaper, queue) == ([] if ending == "commit" else [*ids, *new])


@pytest.mark.promise("P34")
@pytest.mark.requires("cancel")
@each_ending
def test_call_waits_for_an_open_cancel_and_completes(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 2)
    new = fill(worker, queue, 1)
    other.begin().queue.cancel(queue, ids[:1], include_leased=True)
    calling = worker.start(exchange(queue, claim))
    calling.waits_for(other)
    other.end(ending)
    assert ids_of(calling.result().messages) == new
    assert states(other, queue, ids) == {None}


@pytest.mark.promise("P03", "P34")
@pytest.mark.requires("cancel", "genuine")
@each_ending
def test_cancel_skips_the_messages_of_an_open_call(sessions: Open, queue: str, ending: str) -> None:
    worker, other = sessions(2)
    claim, ids = claim_of(worker, queue, 1)
    ids += fill(worker, queue, 1)
    exchange(queue, claim)(worker.begin().queue)

    def cancel() -> list[str]:
        outcomes = other.queue.cancel(queue, ids, include_leased=True)
        return [outcome.outcome for outcome in outcomes]

    assert cancel() == ["leased", "leased"]
    worker.end(ending)
    expected = ["not_found", "requested"] if ending == "commit" else ["requested", "cancelled"]
    assert cancel() == expected


@pytest.mark.promise("P06")
@pytest.mark.requires("genuine")
@each_size
def test_calls_skip_messages_that_the_other_leases(sessions: Open, queue: str, size: int) -> None:
    first, second = sessions(2)
    claims = [claim_of(session, queue, size)[0] for session in (first, second)]
    new = fill(first, queue, 2 * size)
    mine = exchange(queue, claims[0], size=size)(first.begin().queue)
    theirs = second.start(exchange(queue, claims[1], size=size)).result()
    assert (ids_of(mine.messages), ids_of(theirs.messages)) == (new[:size], new[size:])
    first.rollback()
    mine = exchange(queue, claims[0], size=size)(first.queue)
    assert (ids_of(mine.messages), mine.is_stale) == (new[:size], False)


@pytest.mark.promise("P01", "P14")
@each_ending
def test_call_does_not_see_an_open_enqueue(sessions: Open, queue: str, ending: str) -> None:
    worker, producer = sessions(2)
    claim, _ = claim_of(worker, queue, 1)
    late = producer.begin().queue.enqueue(queue, 0).message_id
    new = fill(worker, queue, 1)
    answer = exchange(queue, claim)(worker.queue)
    assert ids_of(answer.messages) == new
    move_floor_beyond(worker, queue, late)
    producer.end(ending)
    maintain_later(worker, queue)
    answer = exchange(queue, answer.messages[0].claim_id, size=5)(worker.queue)
    assert ids_of(answer.messages) == ([late] if ending == "commit" else [])


@pytest.mark.promise("P22", "P25", "P26")
@pytest.mark.requires("predecessors", "groups")
@each_ending
@each_size
def test_call_does_not_wait_for_producers_of_successors_and_groups(
    sessions: Open, queue: str, size: int, ending: str
) -> None:
    worker, producer, other = sessions(3)
    for _ in range(size):
        worker.queue.enqueue(queue, 0, group_key="a")
        worker.queue.alter_queue(queue, group_limit=size)
    messages = worker.queue.dequeue_fast(queue, size)
    ids = ids_of(messages)
    after = producer.begin().queue.enqueue(queue, 0, predecessor_ids=ids).message_id
    behind = other.begin().queue.enqueue(queue, 0, group_key="a").message_id
    new = fill(worker, queue, size, priority=9)
    answer = worker.start(exchange(queue, messages[0].claim_id, size=size)).result()
    assert (ids_of(answer.messages), answer.is_stale) == (new, False)
    producer.end(ending)
    other.end(ending)
    for _ in range(2):
        maintain_later(worker, queue)
    assert sorted(everything(worker, queue)) == ([after, behind] if ending == "commit" else [])
    stored = dialect_of(worker.connection).stored(worker.connection, queue)
    assert (stored["deferred"], stored["blocked"], stored["successor"]) == (0, 0, 0)


@pytest.mark.promise("P21")
@pytest.mark.requires("groups")
@each_ending
def test_next_of_the_group_goes_to_the_same_call(sessions: Open, queue: str, ending: str) -> None:
    worker, other = sessions(2)
    ids = [worker.queue.enqueue(queue, 0, group_key="a").message_id for _ in range(3)]
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    assert ids_of(exchange(queue, claim)(worker.begin().queue).messages) == ids[1:2]
    assert everything(other, queue) == []
    worker.end(ending)
    assert everything(other, queue) == []
    if ending == "rollback":
        assert ids_of(exchange(queue, claim)(worker.queue).messages) == ids[1:2]


@pytest.mark.promise("P28")
@pytest.mark.requires("limits")
@each_ending
def test_call_completes_while_the_limit_lock_is_held(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, holder, other = sessions(3)
    claim, ids = claim_of(worker, queue, 2)
    new = fill(worker, queue, 9)
    worker.queue.alter_queue(queue, max_leased=6)
    assert take(holder.begin(), queue, 2) == new[:2]
    answer = worker.start(exchange(queue, claim, size=9)).result()
    assert (answer.messages, answer.is_stale) == ([], False)
    assert states(other, queue, ids) == {None}
    holder.end(ending)
    assert len(take(other, queue, 9)) == (4 if ending == "commit" else 6)


@pytest.mark.promise("P28")
@pytest.mark.requires("limits")
@each_ending
def test_open_call_holds_the_limit_lock_and_the_freed_capacity(
    sessions: Open, queue: str, ending: str
) -> None:
    first, second = sessions(2)
    claims = [claim_of(first, queue, 2)[0] for _ in range(2)]
    new = fill(first, queue, 9)
    first.queue.alter_queue(queue, max_leased=4)
    mine = exchange(queue, claims[0], size=9)(first.begin().queue)
    assert ids_of(mine.messages) == new[:2]
    # The second call completes, and its capacity is free for the next one.
    theirs = second.start(exchange(queue, claims[1], size=9)).result()
    assert (theirs.messages, theirs.is_stale) == ([], False)
    first.end(ending)
    expected = new[2:4] if ending == "commit" else new[:2]
    assert take(second, queue, 9) == expected


@pytest.mark.promise("P12", "P28")
@pytest.mark.requires("limits")
def test_holder_of_the_limit_lock_may_wait_for_the_call(sessions: Open, queue: str) -> None:
    """The call waits for the limit lock for a limited time only, so no deadlock is possible."""
    worker, holder = sessions(2)
    worker.queue.enqueue(queue, 0, dedup_key="key")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    fill(worker, queue, 9)
    worker.queue.alter_queue(queue, max_leased=6)
    assert len(take(holder.begin(), queue, 2)) == 2
    calling = worker.start(exchange(queue, claim))
    sending = holder.start(lambda own: own.enqueue(queue, 0, dedup_key="key").outcome)
    answer = calling.result()
    assert (answer.messages, answer.is_stale) == ([], False)
    assert sending.result() in {"enqueued", "duplicate"}
    holder.commit()


@pytest.mark.promise("P18", "P28")
@each_part
@each_size
@pytest.mark.parametrize("change", ["pause", "resume", pytest.param("limit", marks=limits)])
def test_call_that_waited_for_its_claim_uses_changed_settings(
    sessions: Open, queue: str, size: int, is_whole: bool, change: str
) -> None:
    worker, holder, admin = sessions(3)
    claim, ids = claim_of(worker, queue, 2)
    new = fill(worker, queue, 9)
    if change == "resume":
        admin.queue.pause_queue(queue)
    holder.begin().queue.extend_lease(queue, claim)
    calling = worker.start(exchange(queue, claim, None if is_whole else ids, size))
    calling.waits_for(holder)
    if change == "pause":
        admin.queue.pause_queue(queue)
    elif change == "resume":
        admin.queue.resume_queue(queue)
    else:
        admin.queue.alter_queue(queue, max_leased=1)
    leased = {"pause": 0, "resume": size, "limit": 1}[change]
    time.sleep(0.02)
    holder.commit()
    answer = calling.result()
    assert (ids_of(answer.messages), answer.is_stale) == (new[:leased], False)
    assert states(admin, queue, ids) == {None}


@pytest.mark.promise("P02", "P18")
@each_ending
@each_part
@each_size
def test_lease_is_counted_from_after_the_wait_for_the_claim(
    sessions: Open, queue: str, size: int, is_whole: bool, ending: str
) -> None:
    worker, holder, other = sessions(3)
    claim, ids = claim_of(worker, queue, 2)
    new = fill(worker, queue, 9)
    holder.begin().queue.extend_lease(queue, claim)
    calling = worker.start(exchange(queue, claim, None if is_whole else ids, size))
    calling.waits_for(holder)
    time.sleep(0.02)
    [before] = other.queue.dequeue_fast(queue)
    holder.end(ending)
    answer = calling.result()
    assert (ids_of(answer.messages), answer.is_stale) == (new[1 : size + 1], False)
    assert min(message.lease_until for message in answer.messages) > before.lease_until


@pytest.mark.promise("P11", "P21")
@pytest.mark.requires("groups")
def test_calls_that_promote_into_each_others_groups_do_not_deadlock(
    sessions: Open, queue: str
) -> None:
    one, two, admin = sessions(3)
    for group in "ab":
        admin.queue.enqueue(queue, group, group_key=group)
    claims = [admin.queue.dequeue_fast(queue)[0].claim_id for _ in "ab"]
    for group in "ba":
        admin.queue.enqueue(queue, f"late {group}", group_key=group, delay_seconds=10)
    pass_seconds(admin.connection, queue, 11)
    fill(admin, queue, 2)
    calls = []
    for session, claim in zip((one, two), claims, strict=True):
        (message,) = exchange(queue, claim)(session.begin().queue).messages
        calls.append(exchange(queue, message.claim_id))
    # Each transaction has ended the last message of a group. Nothing is ready any more, so each
    # promotes a message of the other one's group.
    running = [session.start(call) for session, call in zip((one, two), calls, strict=True)]
    found = [message.data for call in running for message in call.result().messages]
    one.commit()
    two.commit()
    pass_seconds(admin.connection, queue, 1)
    maintain_later(admin, queue)
    assert sorted(found + work_off(admin, queue)) == ["late a", "late b"]


@pytest.mark.promise("P02")
@pytest.mark.parametrize("max_leased", [0, 9])
@pytest.mark.requires("limits")
def test_drop_queue_gives_way_to_a_worker_in_a_transaction(
    sessions: Open, queue: str, max_leased: int
) -> None:
    worker, admin = sessions(2)
    admin.queue.alter_queue(queue, max_leased=max_leased)
    claim, _ = claim_of(worker, queue, 1)
    fill(worker, queue, 2)
    (message,) = exchange(queue, claim)(worker.begin().queue).messages
    dropping = start_to_drop(admin, worker, queue)
    (message,) = exchange(queue, message.claim_id)(worker.queue).messages
    assert exchange(queue, message.claim_id)(worker.queue).messages == []
    worker.commit()
    with contextlib.suppress(QueueBusy):
        assert dropping.result().outcome == "dropped"


@pytest.mark.promise("P02", "P08")
@each_ending
def test_call_waits_for_an_open_drop_of_its_queue(sessions: Open, queue: str, ending: str) -> None:
    worker, admin = sessions(2)
    claim, ids = claim_of(worker, queue, 1)
    new = fill(worker, queue, 1)
    admin.begin().queue.drop_queue(queue, force=True)
    calling = worker.start(exchange(queue, claim))
    calling.waits_for(admin)
    admin.end(ending)
    if ending == "commit":
        with contextlib.suppress(QueueNotFound):
            answer = calling.result()
            assert (answer.messages, answer.is_stale) == ([], True)
        admin.queue.create_queue(queue)
        assert states(admin, queue, ids + new) == {None}
    else:
        assert ids_of(calling.result().messages) == new


@pytest.mark.promise("P03", "P08")
@each_strict
@each_part
def test_strict_call_is_stale_or_fails_transiently(
    sessions: Open, queue: str, is_whole: bool, isolation: str
) -> None:
    strict, other = sessions(2)
    claim, ids = claim_of(other, queue, 1)
    new = fill(other, queue, 2)
    strict.begin(isolation).execute("select 1")
    other.queue.release(queue, claim)
    call = exchange(queue, claim, None if is_whole else ids)
    answer = result_or_transient_error(strict, call)
    if answer:
        assert (ids_of(answer.messages), answer.is_stale) == (ids, True)
        strict.rollback()
    assert everything(other, queue) == ids + new


@pytest.mark.promise("P04", "P06")
@each_strict
def test_strict_calls_finish_every_message_once(sessions: Open, queue: str, isolation: str) -> None:
    first, second = sessions(2)
    ids = fill(first, queue, 20)
    claims: dict[Session, int] = {first: 0, second: 0}
    seen: list[int] = []
    for turn in range(60):
        session = (first, second)[turn % 2]
        session.begin(isolation).execute("select 1")
        answer = result_or_transient_error(session, exchange(queue, claims[session], size=2))
        if answer:
            session.commit()
            assert answer.is_stale == (claims[session] == 0)
            seen += ids_of(answer.messages)
            claims[session] = answer.messages[0].claim_id if answer.messages else 0
    assert sorted(seen) == ids
    assert states(first, queue, ids) == {None}
