"""Groups: producers, workers and other sessions overlap."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from rowq import NewMessage, Queue
from rowq.engines import engine_for_connection
from tests.helpers.dialects import dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session, each_order
from tests.interleavings.work import maintain_later, play_transactions, work_off
from tests.stored_times import expire_claim, pass_seconds, tick

pytestmark = pytest.mark.requires("groups")

ENDINGS = ["commit", "rollback"]
ENDS: dict[str, Callable[[Queue, str, int], Any]] = {
    "complete": lambda own, queue, claim: own.complete(queue, claim),
    "fail_now": lambda own, queue, claim: own.fail_now(queue, claim),
    "retry_later": lambda own, queue, claim: own.retry_later(queue, claim),
}
"""Calls that end a message if the queue allows one attempt."""


def send(session: Session, queue: str, *texts: str, group: str = "a") -> list[int]:
    """Enqueue messages of a group and return their ids."""
    return [session.queue.enqueue(queue, text, group_key=group).message_id for text in texts]


def lease(session: Session, queue: str, count: int = 10) -> list[str]:
    """Dequeue up to `count` messages, each to a claim of its own; return what they say."""
    found: list[str] = []
    while len(found) < count and (messages := session.queue.dequeue_fast(queue)):
        found.append(messages[0].data)
    return found


def is_closed(session: Session, queue: str) -> bool:
    """Return whether no group has slots, waiting messages or deferred work."""
    stored = dialect_of(session.connection).stored(session.connection, queue)
    return not any(stored[table] for table in ("group_slot", "group_waiting", "deferred"))


@pytest.mark.pitfall("postgres 23")
@pytest.mark.promise("P21", "P24")
@pytest.mark.parametrize(("producer_end", "worker_end"), list(product(ENDINGS, repeat=2)))
@each_order("p1 p2 p3", "w1 w2 w3")
def test_group_continues_if_producer_and_complete_overlap(
    sessions: Open, queue: str, order: str, producer_end: str, worker_end: str
) -> None:
    producer, worker, other = sessions(3)
    send(other, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    transactions = {
        "p": (producer, lambda own: own.enqueue(queue, "second", group_key="a"), producer_end),
        "w": (worker, lambda own: own.complete(queue, claim), worker_end),
    }
    play_transactions(order, transactions)
    if worker_end == "rollback":
        assert lease(other, queue) == [], "the first is still leased"
        other.queue.complete(queue, claim)
    maintain_later(other, queue)
    expected = ["second"] if producer_end == "commit" else []
    assert work_off(other, queue) == expected
    maintain_later(other, queue)
    assert is_closed(other, queue)


@pytest.mark.promise("P21")
@pytest.mark.parametrize("finish", list(ENDS))
def test_finish_does_not_wait_for_a_producer_of_the_group(
    sessions: Open, queue: str, finish: str
) -> None:
    producer, worker = sessions(2)
    worker.queue.alter_queue(queue, max_attempts=1)
    send(worker, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(producer.begin(), queue, "second")
    ENDS[finish](worker.queue, queue, claim)
    assert lease(worker, queue) == [], "it is not committed yet"
    producer.commit()
    maintain_later(worker, queue)
    (second,) = worker.queue.dequeue_fast(queue)
    send(producer.begin(), queue, "third")
    ENDS[finish](worker.queue, queue, second.claim_id)
    assert lease(worker, queue) == [], "it is not committed yet"
    producer.commit()
    assert lease(worker, queue) == ["third"], "an empty dequeue has run the deferred work"


@pytest.mark.promise("P24")
def test_reap_does_not_wait_for_a_producer_of_the_group(sessions: Open, queue: str) -> None:
    producer, worker = sessions(2)
    worker.queue.alter_queue(queue, max_attempts=1)
    send(worker, queue, "first")
    expire_claim(worker.connection, worker.queue.dequeue_fast(queue)[0].claim_id)
    send(producer.begin(), queue, "second")
    assert worker.queue.maintain(queue)[0].died == 1
    producer.commit()
    maintain_later(worker, queue)
    assert worker.queue.queue_stats(queue)[0].ready == 1


@pytest.mark.promise("P21", "P22")
@pytest.mark.parametrize(("first_end", "second_end"), list(product(ENDINGS, repeat=2)))
@each_order("a1 a2 a3", "b1 b2 b3")
def test_two_producers_may_add_the_first_slot_at_once(
    sessions: Open, queue: str, order: str, first_end: str, second_end: str
) -> None:
    first, second, worker = sessions(3)
    transactions = {
        "a": (first, lambda own: own.enqueue(queue, "a", group_key="a"), first_end),
        "b": (second, lambda own: own.enqueue(queue, "b", group_key="a"), second_end),
    }
    play_transactions(order, transactions)
    ends = {"a": first_end, "b": second_end}
    expected = {name for name, end in ends.items() if end == "commit"}
    assert worker.queue.queue_stats(queue)[0].ready == min(1, len(expected))
    assert set(work_off(worker, queue)) == expected
    assert is_closed(worker, queue)


@pytest.mark.promise("P21")
def test_producer_waits_only_for_the_one_that_adds_the_slot(sessions: Open, queue: str) -> None:
    first, second, third = sessions(3)
    send(first.begin(), queue, "1")
    later = second.start(lambda own: own.enqueue(queue, "2", group_key="a"))
    later.waits_for(first)
    send(third, queue, "elsewhere", group="b")
    first.commit()
    later.result()
    send(first.begin(), queue, "3")
    send(second, queue, "4")
    first.commit()
    assert work_off(third, queue) == ["1", "elsewhere", "2", "3", "4"]
    assert is_closed(third, queue)


@pytest.mark.promise("P21")
def test_batches_with_reversed_group_keys_do_not_deadlock(sessions: Open, queue: str) -> None:
    first, second, holder = sessions(3)
    forward = [NewMessage(data=0, group_key=f"key {number:02}") for number in range(20)]
    send(holder.begin(), queue, "held", group="key 05")
    forwards = first.start(lambda own: own.enqueue_batch(queue, forward))
    forwards.waits_for(holder)
    backwards = second.start(lambda own: own.enqueue_batch(queue, forward[::-1]))
    backwards.waits_for(first)
    holder.rollback()
    forwards.result()
    backwards.result()
    stats = holder.queue.queue_stats(queue)[0]
    assert (stats.ready, stats.blocked) == (20, 20)
    assert len(work_off(holder, queue)) == 40
    assert is_closed(holder, queue)


@pytest.mark.pitfall("postgres 24")
@pytest.mark.promise("P21", "P24")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("behind", [[], ["3"]], ids=["last", "one of two"])
@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
def test_complete_does_not_overtake_a_message_being_cancelled(
    sessions: Open, queue: str, routine: str, behind: list[str], ending: str
) -> None:
    worker, producer = sessions(2)
    _, second, *_ = send(producer, queue, "1", "2", *behind)
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    producer.begin()
    if routine == "cancel":
        producer.queue.cancel(queue, [second])
    else:
        producer.queue.purge_queue(queue, max_messages=1)
    worker.queue.complete(queue, claim)
    assert lease(worker, queue) == [], "a message that may stay must not be overtaken"
    producer.end(ending)
    maintain_later(worker, queue)
    assert work_off(worker, queue) == (["2"] if ending == "rollback" else []) + behind
    maintain_later(worker, queue)
    assert is_closed(worker, queue)


@pytest.mark.promise("P24")
@pytest.mark.parametrize("ending", ENDINGS)
def test_cancel_skips_a_message_that_is_getting_a_slot(
    sessions: Open, queue: str, ending: str
) -> None:
    worker, producer = sessions(2)
    _, second = send(producer, queue, "1", "2")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    worker.begin().queue.complete(queue, claim)
    assert producer.queue.cancel(queue, [second])[0].outcome == "leased"
    worker.end(ending)
    if ending == "rollback":
        worker.queue.complete(queue, claim)
    assert work_off(worker, queue) == ["2"]
    assert is_closed(worker, queue)


@pytest.mark.promise("P22", "P24")
@pytest.mark.parametrize(("first_end", "second_end"), list(product(ENDINGS, repeat=2)))
@pytest.mark.parametrize("behind", [[], ["3"], ["3", "4"], ["3", "4", "5"]], ids=len)
def test_two_slots_pass_on_in_overlapping_transactions(
    sessions: Open, queue: str, behind: list[str], first_end: str, second_end: str
) -> None:
    first, second, other = sessions(3)
    other.queue.alter_queue(queue, group_limit=2)
    send(other, queue, "1", "2", *behind)
    claims = [own.queue.dequeue_fast(queue)[0].claim_id for own in (first, second)]
    first.begin().queue.complete(queue, claims[0])
    second.begin().queue.complete(queue, claims[1])
    first.end(first_end)
    second.end(second_end)
    maintain_later(other, queue)
    ended = [first_end, second_end].count("commit")
    assert len(lease(other, queue)) == min(ended, len(behind))
    pass_seconds(other.connection, queue, 60)
    maintain_later(other, queue)
    left = work_off(other, queue)
    kept = [text for text, end in (("1", first_end), ("2", second_end)) if end == "rollback"]
    assert sorted(left) == sorted(kept + behind)
    maintain_later(other, queue)
    assert is_closed(other, queue)


@pytest.mark.promise("P21")
@pytest.mark.parametrize("completes", ["before", "after"])
def test_message_committed_late_still_gets_the_slot(
    sessions: Open, queue: str, completes: str
) -> None:
    late, producer, worker = sessions(3)
    send(producer, queue, "1")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(late.begin(), queue, "late")
    send(producer, queue, "2")
    if completes == "before":
        worker.queue.complete(queue, claim)
        claim = worker.queue.dequeue_fast(queue)[0].claim_id
        send(producer, queue, "3")
    late.commit()
    send(producer, queue, "4")
    worker.queue.complete(queue, claim)
    rest = work_off(worker, queue)
    assert rest == (["late", "3", "4"] if completes == "before" else ["late", "2", "4"])
    assert is_closed(worker, queue)


@pytest.mark.promise("P07", "P21")
@pytest.mark.parametrize("ending", ENDINGS)
def test_open_claim_holds_its_slot_until_its_transaction_ends(
    sessions: Open, queue: str, ending: str
) -> None:
    holder, other = sessions(2)
    send(other, queue, "1", "2")
    (message,) = holder.begin().queue.dequeue_fast(queue)
    assert lease(other, queue) == []
    holder.queue.complete(queue, message.claim_id)
    assert lease(other, queue) == []
    holder.end(ending)
    assert work_off(other, queue) == (["1", "2"] if ending == "rollback" else ["2"])
    assert is_closed(other, queue)


@pytest.mark.promise("P02", "P22", "P24")
@pytest.mark.parametrize("behind", [[], ["2"]], ids=["empty", "one waits"])
@pytest.mark.parametrize("table", ["message", "group_waiting", "group_slot", "ready"])
def test_worker_killed_in_complete_leaves_its_group_unchanged(
    sessions_apart: Open, queue_name: str, table: str, behind: list[str]
) -> None:
    worker, holder, other = sessions_apart(3)
    dialect = dialect_of(holder.connection)
    other.queue.create_queue(queue_name, max_attempts=3)
    send(other, queue_name, "1", *behind)
    claim = worker.queue.dequeue_fast(queue_name)[0].claim_id
    dialect.lock_table(holder.connection, table)
    finishing = worker.start(lambda own: own.complete(queue_name, claim))
    untouched = set() if behind else {"ready"}
    if not dialect.readers_wait:
        untouched.add("group_slot" if behind else "group_waiting")
    if table in untouched:
        finishing.result()
        dialect.unlock_table(holder.connection)
        assert work_off(other, queue_name) == behind
        assert is_closed(other, queue_name)
        return
    finishing.waits_for(holder)
    worker.server.kill_session(worker.id)
    dialect.unlock_table(holder.connection)
    assert lease(other, queue_name) == [], "it is still leased"
    expire_claim(other.connection, claim)
    maintain_later(other, queue_name)
    assert work_off(other, queue_name) == ["1", *behind]
    assert is_closed(other, queue_name)


@pytest.mark.promise("P02", "P21", "P24")
@pytest.mark.parametrize("kill", [False, True], ids=["rolled back", "killed"])
@pytest.mark.parametrize("finish", list(ENDS))
def test_uncommitted_finish_passes_no_slot_on(
    sessions: Open, queue: str, finish: str, kill: bool
) -> None:
    worker, other = sessions(2)
    other.queue.alter_queue(queue, max_attempts=1)
    send(other, queue, "1", "2")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    ENDS[finish](worker.begin().queue, queue, claim)
    if kill:
        worker.server.kill_session(worker.id)
    else:
        worker.rollback()
    assert lease(other, queue) == []
    other.queue.complete(queue, claim)
    assert work_off(other, queue) == ["2"]


@pytest.mark.promise("P21", "P24")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("then", ["reset", "cancel", "discard_dead"])
@pytest.mark.parametrize("setting", ["continue", "hold"])
def test_group_resumes_if_its_dead_message_is_moved(
    sessions: Open, queue: str, setting: str, then: str, ending: str
) -> None:
    admin, worker = sessions(2)
    admin.queue.alter_queue(queue, group_after_dead=setting)
    (dead,) = send(admin, queue, "1")
    send(admin, queue, "2", "3")
    admin.queue.fail_now(queue, admin.queue.dequeue_fast(queue)[0].claim_id)
    getattr(admin.begin().queue, then)(queue, [dead])
    early = lease(worker, queue)
    admin.end(ending)
    maintain_later(worker, queue)
    rest = early + lease(worker, queue)
    if setting == "continue":
        assert rest == ["2"]
    elif ending == "rollback":
        assert rest == []
    else:
        assert rest == (["1"] if then == "reset" else ["2"])


@pytest.mark.promise("P22", "P24")
@pytest.mark.parametrize("ending", ENDINGS)
def test_raised_limit_adds_slots_while_messages_move(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, worker, producer = sessions(3)
    send(producer, queue, "1", "2", "3", "4")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    admin.begin().queue.alter_queue(queue, group_limit=3)
    send(producer, queue, "5")
    worker.queue.complete(queue, claim)
    admin.end(ending)
    maintain_later(worker, queue)
    assert len(lease(worker, queue)) == (3 if ending == "commit" else 1)


@pytest.mark.promise("P22", "P24")
@pytest.mark.parametrize("ending", ENDINGS)
def test_lowered_limit_removes_slots_while_messages_move(
    sessions: Open, queue: str, ending: str
) -> None:
    admin, worker, producer = sessions(3)
    admin.queue.alter_queue(queue, group_limit=3)
    send(producer, queue, "1", "2", "3", "4", "5", "6", "7")
    claims = [worker.queue.dequeue_fast(queue)[0].claim_id for _ in range(3)]
    admin.begin().queue.alter_queue(queue, group_limit=1)
    worker.queue.complete(queue, claims[0])
    admin.end(ending)
    for claim in claims[1:]:
        worker.queue.complete(queue, claim)
    if ending == "commit":
        assert lease(worker, queue) == ["4"], "it already had its slot"
    else:
        assert lease(worker, queue) == ["4", "5", "6"]
    pass_seconds(worker.connection, queue, 60)
    maintain_later(worker, queue)
    assert work_off(worker, queue) == ["4", "5", "6", "7"]
    assert is_closed(worker, queue)


@pytest.mark.promise("P24")
def test_raised_limit_does_not_wait_for_a_producer(sessions: Open, queue: str) -> None:
    admin, producer, worker = sessions(3)
    send(worker, queue, "1", "2", "3")
    admin.queue.alter_queue(queue, group_limit=2)
    send(producer.begin(), queue, "new")  # It holds the second slot.
    maintain_later(worker, queue)
    assert lease(worker, queue) == ["1"]
    producer.rollback()
    maintain_later(worker, queue)
    assert lease(worker, queue) == ["2"]


@pytest.mark.promise("P11", "P24")
@pytest.mark.parametrize("ending", ENDINGS)
def test_promote_waits_only_briefly_for_a_producer_of_the_group(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, worker = sessions(2)
    worker.queue.enqueue(queue, "delayed", group_key="a", delay_seconds=5)
    worker.queue.enqueue(queue, "other", group_key="b", delay_seconds=6)
    pass_seconds(worker.connection, queue, 10)
    send(producer.begin(), queue, "new")
    assert worker.queue.promote(queue).promoted <= 1
    producer.end(ending)
    pass_seconds(worker.connection, queue, 1)
    worker.queue.promote(queue)
    expected = ["delayed", "new", "other"] if ending == "commit" else ["delayed", "other"]
    assert sorted(work_off(worker, queue)) == expected
    assert is_closed(worker, queue)


@pytest.mark.pitfall("oracle 27")
@pytest.mark.promise("P21", "P24")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("finish", list(ENDS))
@pytest.mark.parametrize("behind", [[], ["2"]], ids=["empty", "one waits"])
def test_finish_under_an_old_snapshot_defers_its_slot(
    sessions: Open, queue: str, behind: list[str], finish: str, isolation: str
) -> None:
    strict, other = sessions(2)
    other.queue.alter_queue(queue, max_attempts=1)
    send(other, queue, "1", *behind)
    claim = strict.queue.dequeue_fast(queue)[0].claim_id
    strict.begin(isolation).execute("select count(*) from rowq.queue")
    send(other, queue, "later")
    ENDS[finish](strict.queue, queue, claim)
    strict.commit()
    maintain_later(other, queue)
    assert work_off(other, queue) == [*behind, "later"]
    assert is_closed(other, queue)


@pytest.mark.promise("P21")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("state", ["new", "open", "closed"])
def test_producer_under_an_old_snapshot_joins_or_must_retry(
    sessions: Open, queue: str, state: str, isolation: str
) -> None:
    strict, other = sessions(2)
    if state != "new":
        send(other, queue, "1")
    strict.begin(isolation).execute("select count(*) from rowq.queue")
    if state == "closed":
        work_off(other, queue)
    else:
        send(other, queue, "2")
    try:
        send(strict, queue, "strict")
        strict.commit()
        sent = ["strict"]
    except Exception as error:
        if not engine_for_connection(strict.connection).is_transient(error):
            raise
        strict.rollback()
        sent = []
    before = {"new": ["2"], "open": ["1", "2"], "closed": []}[state]
    assert work_off(other, queue) == before + sent
    assert is_closed(other, queue)


@pytest.mark.promise("P21", "P24")
def test_promotion_under_an_old_snapshot_is_left_to_others(sessions: Open, queue: str) -> None:
    strict, other = sessions(2)
    other.queue.enqueue(queue, "delayed", group_key="a", delay_seconds=5)
    pass_seconds(other.connection, queue, 10)
    strict.begin("repeatable read").execute("select count(*) from rowq.queue")
    send(other, queue, "1")
    early = strict.queue.dequeue_fast(queue)
    sees_newer = dialect_of(strict.connection).sees_newer
    assert [message.data for message in early] == (["1"] if sees_newer else [])
    if early:
        assert lease(strict, queue) == []
    strict.commit()
    for message in early:
        other.queue.complete(queue, message.claim_id)
    pass_seconds(other.connection, queue, 1)
    assert work_off(other, queue) == (["delayed"] if early else ["1", "delayed"])
    assert is_closed(other, queue)


@pytest.mark.promise("P24")
def test_deferred_slot_is_not_rewritten_while_producer_is_idle(sessions: Open, queue: str) -> None:
    producer, worker = sessions(2)
    send(worker, queue, "1")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(producer.begin(), queue, "2")
    worker.queue.complete(queue, claim)
    query = f"select {dialect_of(worker.connection).row_version} from rowq.deferred"
    before = worker.execute(query).fetchall()
    assert len(before) >= 1
    for _ in range(3):
        maintain_later(worker, queue)
        assert lease(worker, queue) == []
    assert worker.execute(query).fetchall() == before
    producer.commit()


@pytest.mark.promise("P24", "P19")
def test_deferred_slots_of_an_idle_producer_block_no_group(sessions: Open, queue: str) -> None:
    idle, other, worker = sessions(3)
    groups = ("held", "held 2", "free")
    for group in groups:
        send(worker, queue, f"first of {group}", group=group)
    claims = [worker.queue.dequeue_fast(queue)[0].claim_id for _ in groups]
    idle.begin()
    for group in groups[:2]:
        send(idle, queue, f"second of {group}", group=group)
    send(other.begin(), queue, "second of free", group="free")
    for claim in claims:
        worker.queue.complete(queue, claim)
    other.commit()
    for _ in range(2):
        tick(worker.connection, queue)
        worker.queue.maintain(queue, batch_size=2)
    assert dialect_of(worker.connection).stored(worker.connection, queue)["ready"] == 1
    assert lease(worker, queue) == ["second of free"]
    idle.rollback()
    maintain_later(worker, queue)
    worker.queue.maintain(queue)
