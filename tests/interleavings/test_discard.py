"""discard_dead overlaps with reset, cancel and discard_dead."""

from collections.abc import Callable
from typing import Any

import pytest

from rowq import Queue
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_expiry import states
from tests.interleavings.work import claim_of, each_ending, everything, maintain_later

pytestmark = pytest.mark.requires("genuine")

Move = Callable[[Queue, str, list[int]], Any]
MOVES: dict[str, Move] = {
    "reset": lambda own, queue, ids: [one.outcome for one in own.reset(queue, ids)],
    "cancel": lambda own, queue, ids: [one.outcome for one in own.cancel(queue, ids)],
    "discard_dead": lambda own, queue, ids: own.discard_dead(queue, ids).removed,
}
DONE = {"reset": ["reset"], "cancel": ["cancelled"], "discard_dead": 1}
SKIPPED = {"reset": ["not_found"], "cancel": ["leased"], "discard_dead": 0}

each_move = pytest.mark.parametrize("move", MOVES)


def dead_of(session: Session, queue: str, count: int) -> list[int]:
    """Return the ids of new dead messages."""
    claim, ids = claim_of(session, queue, count)
    session.queue.fail_now(queue, claim)
    return ids


@each_ending
@each_move
@pytest.mark.promise("P06")
def test_discard_dead_skips_a_message_that_is_being_moved(
    sessions: Open, queue: str, move: str, ending: str
) -> None:
    first, second = sessions(2)
    moved, other = dead_of(first, queue, 2)
    assert MOVES[move](first.begin().queue, queue, [moved]) == DONE[move]
    assert second.queue.discard_dead(queue).removed == 1
    first.end(ending)
    assert states(second, queue, [other]) == {None}
    if ending == "rollback":
        assert states(second, queue, [moved]) == {"dead"}
        assert second.queue.discard_dead(queue).removed == 1
    else:
        assert states(second, queue, [moved]) == {"ready" if move == "reset" else None}
        assert second.queue.discard_dead(queue, [moved]).removed == 0
        assert everything(second, queue) == ([moved] if move == "reset" else [])


@each_ending
@each_move
@pytest.mark.promise("P06")
def test_other_calls_skip_a_message_that_is_being_discarded(
    sessions: Open, queue: str, move: str, ending: str
) -> None:
    first, second = sessions(2)
    [message_id] = dead_of(first, queue, 1)
    assert first.begin().queue.discard_dead(queue, [message_id]).removed == 1
    assert MOVES[move](second.queue, queue, [message_id]) == SKIPPED[move]
    first.end(ending)
    if ending == "rollback":
        assert MOVES[move](second.queue, queue, [message_id]) == DONE[move]
    assert states(second, queue, [message_id]) == {
        "ready" if (move, ending) == ("reset", "rollback") else None
    }


@each_ending
@pytest.mark.promise("P12")
def test_dedup_key_is_free_while_its_dead_owner_is_discarded(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, producer = sessions(2)
    dead = admin.queue.enqueue(queue, 0, dedup_key="a").message_id
    admin.queue.fail_now(queue, admin.queue.dequeue_fast(queue)[0].claim_id)
    assert admin.begin().queue.discard_dead(queue).removed == 1
    assert producer.queue.enqueue(queue, 1, dedup_key="a").outcome == "enqueued"
    admin.end(ending)
    assert producer.queue.enqueue(queue, 2, dedup_key="a").outcome == "duplicate"
    assert states(producer, queue, [dead]) == {"dead" if ending == "rollback" else None}


@pytest.mark.promise("P03")
def test_discard_dead_skips_a_message_that_was_reset(sessions: Open, queue: str) -> None:
    admin, other = sessions(2)
    ids = dead_of(admin, queue, 3)
    seen = [dead.message_id for dead in admin.queue.list_dead(queue)]
    other.queue.reset(queue, ids[:1])
    claim = other.queue.dequeue_fast(queue)[0].claim_id
    assert admin.queue.discard_dead(queue, seen).removed == 2
    assert [one.outcome for one in other.queue.complete(queue, claim)] == ["completed"]
    maintain_later(other, queue)
    assert other.queue.queue_stats(queue)[0].dead == 0
