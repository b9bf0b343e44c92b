"""Concurrent calls that finish parts of one claim."""

import pytest

from rowq import Queue, StaleClaim
from tests.interleavings.conftest import Open
from tests.interleavings.test_expiry import DONE, FINISHES, STATE, expired_claim, states
from tests.interleavings.work import claim_of, each_ending


def complete(queue: Queue, name: str, claim: int, ids: list[int] | None) -> dict[int, str]:
    """Complete messages and return their outcomes by message."""
    return {outcome.message_id: outcome.outcome for outcome in queue.complete(name, claim, ids)}


@pytest.mark.promise("P04", "P08")
@each_ending
@pytest.mark.parametrize(
    ("first_part", "second_part"),
    [
        pytest.param([0, 1], [2, 3], id="that is all of it"),
        pytest.param([0, 1], [2], id="with a rest"),
        pytest.param([0, 1], [1, 2], id="with an overlap"),
        pytest.param([0, 1], [0, 1], id="the same part"),
        pytest.param([0, 1, 2, 3], [1, 2], id="everything, then a part"),
        pytest.param([1, 2], [0, 1, 2, 3], id="a part, then everything"),
        pytest.param([1], [2], id="one and another"),
        pytest.param([1], [1], id="the same one"),
        pytest.param([0, 1, 2], [3], id="the last one after all others"),
    ],
)
def test_concurrent_partial_completes_finish_messages_once(
    sessions: Open, queue: str, first_part: list[int], second_part: list[int], ending: str
) -> None:
    first, second = sessions(2)
    claim, ids = claim_of(first, queue, 4)
    ours, theirs = [ids[place] for place in first_part], [ids[place] for place in second_part]
    first.begin()
    assert complete(first.queue, queue, claim, ours) == dict.fromkeys(ours, "completed")
    completing = second.start(lambda own: complete(own, queue, claim, theirs))
    completing.waits_for(first)
    first.end(ending)
    completed = set(ours) if ending == "commit" else set()
    outcomes = completing.result()
    assert outcomes == {
        message_id: "stale" if message_id in completed else "completed" for message_id in theirs
    }

    rest = [message_id for message_id in ids if message_id not in completed | set(theirs)]
    if rest:
        assert complete(first.queue, queue, claim, None) == dict.fromkeys(rest, "completed")
    with pytest.raises(StaleClaim):
        first.queue.complete(queue, claim)
    assert [first.queue.get_message(queue, message_id) for message_id in ids] == [None] * 4


@pytest.mark.promise("P08")
def test_complete_waits_for_an_open_partial_complete(sessions: Open, queue: str) -> None:
    first, second = sessions(2)
    claim, ids = claim_of(first, queue, 4)
    first.begin()
    complete(first.queue, queue, claim, ids[:2])
    completing = second.start(lambda own: complete(own, queue, claim, None))
    completing.waits_for(first)
    first.commit()
    assert completing.result() == dict.fromkeys(ids[2:], "completed")


@pytest.mark.promise("P08")
def test_heartbeat_during_partial_complete_extends_the_rest(sessions: Open, queue: str) -> None:
    worker, heart = sessions(2)
    claim, ids = claim_of(worker, queue, 3)
    worker.begin()
    complete(worker.queue, queue, claim, ids[:1])
    beating = heart.start(lambda own: own.extend_lease(queue, claim, lease_seconds=600))
    beating.waits_for(worker)
    worker.commit()
    assert beating.result().claim_id == claim
    rest = [worker.queue.get_message(queue, message_id) for message_id in ids[1:]]
    assert {detail.lease_until for detail in rest if detail} == {beating.result().lease_until}


@pytest.mark.promise("P08")
@each_ending
@pytest.mark.parametrize("second_part", [None, [1, 2]], ids=["everything", "a part"])
@pytest.mark.parametrize("first_part", [None, [0, 1]], ids=["everything", "a part"])
@pytest.mark.parametrize(
    ("first_finish", "second_finish"),
    [
        pair
        for other in ("retry_later", "fail_now", "release", "snooze")
        for pair in (("complete", other), (other, "complete"))
    ],
)
def test_concurrent_finishes_apply_once_per_message(
    sessions: Open,
    queue: str,
    first_finish: str,
    second_finish: str,
    first_part: list[int] | None,
    second_part: list[int] | None,
    ending: str,
) -> None:
    first, second = sessions(2)
    claim, ids = claim_of(first, queue, 4)
    ours = [ids[place] for place in first_part] if first_part else ids
    theirs = [ids[place] for place in second_part] if second_part else None
    first.begin()
    FINISHES[first_finish](first.queue, queue, claim, ours if first_part else None)
    finishing = second.start(lambda own: FINISHES[second_finish](own, queue, claim, theirs))
    finishing.waits_for(first)
    first.end(ending)

    taken = dict.fromkeys(ours, STATE[first_finish]) if ending == "commit" else {}
    rest = [message_id for message_id in ids if message_id not in taken]
    if theirs is None and not rest:
        with pytest.raises(StaleClaim):
            finishing.result()
    else:
        found = {outcome.message_id: outcome.outcome for outcome in finishing.result()}
        named = rest if theirs is None else theirs
        done = DONE[second_finish]
        assert found == {number: "stale" if number in taken else done for number in named}
        rest = [message_id for message_id in rest if message_id not in named]
    expected = {**dict.fromkeys(ids, STATE[second_finish]), **dict.fromkeys(rest, "leased")}
    for message_id, state in {**expected, **taken}.items():
        assert states(first, queue, [message_id]) == {state}


@pytest.mark.promise("P08")
@pytest.mark.parametrize("part", [None, [0, 1]], ids=["everything", "a part"])
@pytest.mark.parametrize("finish", FINISHES)
def test_finish_waits_for_an_open_heartbeat(
    sessions: Open, queue: str, finish: str, part: list[int] | None
) -> None:
    worker, heart = sessions(2)
    claim, ids = claim_of(worker, queue, 3)
    named = [ids[place] for place in part] if part else None
    heart.begin().queue.extend_lease(queue, claim, lease_seconds=600)
    finishing = worker.start(lambda own: FINISHES[finish](own, queue, claim, named))
    finishing.waits_for(heart)
    heart.commit()
    assert {outcome.outcome for outcome in finishing.result()} == {DONE[finish]}
    assert states(worker, queue, named or ids) == {STATE[finish]}
    if named:
        assert states(worker, queue, ids[2:]) == {"leased"}


@pytest.mark.promise("P02", "P09")
@pytest.mark.parametrize("finish", FINISHES)
def test_reap_returns_the_unfinished_rest_of_a_claim(
    sessions: Open, queue: str, finish: str
) -> None:
    worker, reaper = sessions(2)
    claim, ids = expired_claim(worker, queue, 4)
    worker.begin()
    FINISHES[finish](worker.queue, queue, claim, ids[1:3])
    assert reaper.queue.reap(queue).reaped == 0
    worker.commit()
    assert reaper.queue.reap(queue).reaped == 2
    assert states(reaper, queue, ids[1:3]) == {STATE[finish]}
    assert states(reaper, queue, [ids[0], ids[3]]) == {"ready"}


@pytest.mark.promise("P03", "P15")
def test_cancel_skips_a_message_of_an_open_dequeue(sessions: Open, queue: str) -> None:
    producer, consumer = sessions(2)
    message = producer.queue.enqueue(queue, 0).message_id
    consumer.begin().queue.dequeue_fast(queue)
    assert [outcome.outcome for outcome in producer.queue.cancel(queue, [message])] == ["leased"]
    consumer.rollback()
    assert [outcome.outcome for outcome in producer.queue.cancel(queue, [message])] == ["cancelled"]
    assert consumer.queue.dequeue_fast(queue) == []


@pytest.mark.promise("P07")
def test_dequeue_skips_a_message_being_cancelled(sessions: Open, queue: str) -> None:
    producer, consumer = sessions(2)
    message = producer.queue.enqueue(queue, 0).message_id
    producer.begin().queue.cancel(queue, [message])
    assert consumer.queue.dequeue_fast(queue) == []
    producer.rollback()
    assert [message.message_id for message in consumer.queue.dequeue_fast(queue)] == [message]


@pytest.mark.promise("P08", "P15")
def test_cancel_does_not_wait_for_an_open_reset(sessions: Open, queue: str) -> None:
    producer, admin = sessions(2)
    claim, ids = claim_of(admin, queue, 1)
    admin.queue.fail_now(queue, claim)
    admin.begin()
    assert [outcome.outcome for outcome in admin.queue.reset(queue, ids)] == ["reset"]
    assert [outcome.outcome for outcome in producer.queue.cancel(queue, ids)] == ["leased"]
    admin.commit()
    assert [outcome.outcome for outcome in producer.queue.cancel(queue, ids)] == ["cancelled"]
    assert admin.queue.reset(queue) == []
