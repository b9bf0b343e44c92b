"""explain_message beside open transactions: late and held messages, and no lock of its own."""

import pytest

from rowq.engines import engine_for_connection
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session
from tests.interleavings.test_late_committer import move_floor_beyond
from tests.interleavings.work import each_ending, everything, maintain_later

pytestmark = pytest.mark.promise("P42")

SEES_HELD = {"postgres", "sqlserver"}
"""Engines that find the holder of a ready message without a lock."""


def reasons(session: Session, queue: str, message_id: int) -> list[str]:
    """Return the words of the reasons of a message."""
    return [row.reason for row in session.queue.explain_message(queue, message_id)]


def test_late_message_waits_for_the_next_maintain(sessions: Open, queue: str) -> None:
    late, other = sessions(2)
    message_id = late.begin().queue.enqueue(queue, 0).message_id
    assert reasons(other, queue, message_id) == ["unknown"]
    move_floor_beyond(other, queue, message_id)
    late.commit()
    assert reasons(other, queue, message_id) == ["late", "next", "no_worker"]
    maintain_later(other, queue)
    assert reasons(other, queue, message_id) == ["next", "no_worker"]


@each_ending
def test_held_message_names_the_session_where_it_shows(
    sessions: Open, queue: str, ending: str
) -> None:
    holder, other = sessions(2)
    message_id = other.queue.enqueue(queue, 0).message_id
    holder.begin().queue.dequeue_fast(queue)
    found = other.queue.explain_message(queue, message_id)
    engine = engine_for_connection(other.connection).name
    if engine == "postgres":
        [[pid]] = holder.execute("select pg_backend_pid()")
        assert found[0].detail == f"session {pid} has it in an open transaction; that must end"
    assert (found[0].reason == "held") == (engine in SEES_HELD)
    holder.end(ending)
    assert reasons(other, queue, message_id)[0] == ("leased" if ending == "commit" else "next")


def test_explain_message_locks_nothing_in_an_open_transaction(sessions: Open, queue: str) -> None:
    reader, other = sessions(2)
    ids = [other.queue.enqueue(queue, 0, group_key=key).message_id for key in ("g", "g", None)]
    ids.append(other.queue.enqueue(queue, 0, predecessor_ids=[ids[0]]).message_id)
    reader.begin()
    for message_id in ids:
        assert reasons(reader, queue, message_id)
    assert sorted(everything(other, queue)) == sorted([ids[0], ids[2]])
    assert other.queue.cancel(queue, ids[1:2])[0].outcome == "cancelled"
    reader.commit()
