"""Predecessors: producers of blocked messages and sessions that end predecessors overlap."""

from collections.abc import Callable
from itertools import product
from typing import Any, TypeVar

import pytest

from rowq import NewMessage, Outcome, Queue, StaleClaim
from rowq.engines import engine_for_connection
from tests.helpers.dialects import dialect_of, preparing_dialect_of
from tests.interleavings.conftest import Open
from tests.interleavings.sessions import Session, Step, each_order, play
from tests.interleavings.work import maintain_later, play_transactions, work_off
from tests.stored_times import expire_claim, pass_seconds

pytestmark = pytest.mark.requires("predecessors")

ENDINGS = ["commit", "rollback"]

T = TypeVar("T")


def send(session: Session, queue: str, text: str, *after: int, dead: str | None = None) -> int:
    """Enqueue a message with predecessors and return its id."""
    enqueued = session.queue.enqueue(queue, text, predecessor_ids=after, on_predecessor_dead=dead)
    return enqueued.message_id


def settle(session: Session, queue: str) -> None:
    """Call maintain twice, so that deferred work is done."""
    for _ in range(2):
        maintain_later(session, queue)


def at_once(session: Session, call: Callable[[Queue], T]) -> T:
    """Return the result of a call; fail if it waits for an open transaction."""
    return session.start(call).result()


def is_settled(session: Session, queue: str) -> bool:
    """Return whether no message is blocked and no work is deferred."""
    stored = dialect_of(session.connection).stored(session.connection, queue)
    return not any(stored[table] for table in ("blocked", "successor", "deferred"))


@pytest.mark.promise("P15", "P22", "P25")
@pytest.mark.requires("groups")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
def test_cancel_does_not_lock_the_group_of_a_named_message(
    sessions: Open, queue: str, routine: str, ending: str
) -> None:
    """The producer has named the message, so cancelling it must not lock the group."""
    producer, other = sessions(2)
    ids = [other.queue.enqueue(queue, text, group_key="g").message_id for text in "123"]
    cancels = {
        "cancel": lambda own: own.cancel(queue, ids[1:]),
        "purge_queue": lambda own: own.purge_queue(queue),
    }
    steps = [
        Step("begin", producer, lambda _: producer.begin()),
        Step("name", producer, lambda _: send(producer, queue, "4", ids[1])),
        Step("cancel", other, cancels[routine]),
        Step("join", producer, lambda own: own.enqueue(queue, "5", group_key="g")),
        Step("end", producer, lambda _: producer.end(ending)),
    ]
    done = play(steps)
    assert not [answer for answer in done.values() if isinstance(answer, Exception)]
    settle(other, queue)


@pytest.mark.pitfall("postgres 25", "sqlserver 24")
@pytest.mark.promise("P25", "P26", "P27")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize(("producer_end", "worker_end"), list(product(ENDINGS, repeat=2)))
@each_order("p1 p2 p3", "w1 w2 w3")
def test_successor_resumes_if_enqueue_and_complete_overlap(
    sessions: Open, queue: str, order: str, producer_end: str, worker_end: str, archive_days: int
) -> None:
    producer, worker, other = sessions(3)
    other.queue.alter_queue(queue, archive_days=archive_days)
    first = send(other, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    transactions = {
        "p": (producer, lambda _: send(producer, queue, "second", first), producer_end),
        "w": (worker, lambda own: own.complete(queue, claim), worker_end),
    }
    play_transactions(order, transactions)
    settle(other, queue)
    if worker_end == "rollback":
        assert work_off(other, queue) == [], "the first is still leased"
        other.queue.complete(queue, claim)
        settle(other, queue)
    assert work_off(other, queue) == (["second"] if producer_end == "commit" else [])
    settle(other, queue)
    assert is_settled(other, queue)


@pytest.mark.pitfall("postgres 25")
@pytest.mark.promise("P27")
@pytest.mark.parametrize("dead", ["hold", "continue", "fail"])
@pytest.mark.parametrize(("producer_end", "worker_end"), list(product(ENDINGS, repeat=2)))
@each_order("p1 p2 p3", "w1 w2 w3")
def test_successor_follows_its_rule_if_enqueue_and_death_overlap(
    sessions: Open, queue: str, order: str, producer_end: str, worker_end: str, dead: str
) -> None:
    producer, worker, other = sessions(3)
    first = send(other, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    transactions = {
        "p": (producer, lambda _: send(producer, queue, "second", first, dead=dead), producer_end),
        "w": (worker, lambda own: own.fail_now(queue, claim), worker_end),
    }
    play_transactions(order, transactions)
    settle(other, queue)
    if worker_end == "rollback":
        assert work_off(other, queue) == [], "the first is still leased"
        other.queue.fail_now(queue, claim)
        settle(other, queue)
    stats = other.queue.queue_stats(queue)[0]
    added = int(producer_end == "commit")
    expected = {"hold": (0, added, 1), "continue": (added, 0, 1), "fail": (0, 0, 1 + added)}
    assert (stats.ready, stats.blocked, stats.dead) == expected[dead]
    other.queue.cancel(queue, [first])
    settle(other, queue)
    assert work_off(other, queue) == (["second"] if added and dead != "fail" else [])
    assert is_settled(other, queue)


@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize(("first_end", "second_end"), list(product(ENDINGS, repeat=2)))
@each_order("a1 a2 a3", "b1 b2 b3")
def test_successor_resumes_if_two_predecessors_end_at_once(
    sessions: Open, queue: str, order: str, first_end: str, second_end: str
) -> None:
    first, second, other = sessions(3)
    ids = [send(other, queue, text) for text in "123"]
    send(other, queue, "last", *ids)
    claims = [other.queue.dequeue_fast(queue)[0].claim_id for _ in range(3)]
    transactions = {
        "a": (first, lambda own: own.complete(queue, claims[1]), first_end),
        "b": (second, lambda own: own.complete(queue, claims[2]), second_end),
    }
    play_transactions(order, transactions)
    settle(other, queue)
    ends = zip(claims, ("rollback", first_end, second_end), strict=True)
    for claim in (claim for claim, end in ends if end == "rollback"):
        assert work_off(other, queue) == []
        other.queue.complete(queue, claim)
        settle(other, queue)
    assert work_off(other, queue) == ["last"]
    settle(other, queue)
    assert is_settled(other, queue)


@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("routine", ["cancel", "purge_queue"])
@pytest.mark.parametrize("also", [[], ["beside"]], ids=["alone", "two wait"])
def test_complete_skips_a_successor_that_is_being_cancelled(
    sessions: Open, queue: str, routine: str, ending: str, also: list[str]
) -> None:
    worker, producer = sessions(2)
    first = send(producer, queue, "first")
    second = send(producer, queue, "second", first)
    for text in also:
        send(producer, queue, text, first)
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    producer.begin()
    if routine == "cancel":
        assert producer.queue.cancel(queue, [second])[0].outcome == "cancelled"
    else:
        producer.queue.purge_queue(queue, max_messages=1)
    worker.queue.complete(queue, claim)
    assert work_off(worker, queue) == also
    producer.end(ending)
    settle(worker, queue)
    assert work_off(worker, queue) == (["second"] if ending == "rollback" else [])
    settle(worker, queue)
    assert is_settled(worker, queue)


@pytest.mark.promise("P25")
@pytest.mark.parametrize("ending", ENDINGS)
def test_cancel_skips_a_message_that_is_resuming(sessions: Open, queue: str, ending: str) -> None:
    worker, producer = sessions(2)
    first = send(producer, queue, "first")
    second = send(producer, queue, "second", first)
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    worker.begin().queue.complete(queue, claim)
    assert producer.queue.cancel(queue, [second])[0].outcome == "leased"
    worker.end(ending)
    if ending == "rollback":
        worker.queue.complete(queue, claim)
    assert work_off(worker, queue) == ["second"]
    assert is_settled(worker, queue)


@pytest.mark.promise("P25", "P26")
@pytest.mark.parametrize(("first_end", "second_end"), list(product(ENDINGS, repeat=2)))
def test_two_producers_may_name_one_predecessor_without_waiting(
    sessions: Open, queue: str, first_end: str, second_end: str
) -> None:
    first, second, worker = sessions(3)
    named = send(worker, queue, "named")
    send(first.begin(), queue, "a", named)
    send(second.begin(), queue, "b", named)
    first.end(first_end)
    second.end(second_end)
    settle(worker, queue)
    expected = [text for text, end in (("a", first_end), ("b", second_end)) if end == "commit"]
    (message,) = worker.queue.dequeue_fast(queue, 10)
    assert message.data == "named"
    worker.queue.complete(queue, message.claim_id)
    settle(worker, queue)
    assert sorted(work_off(worker, queue)) == expected
    assert is_settled(worker, queue)


@pytest.mark.promise("P26")
def test_producers_naming_in_opposite_orders_do_not_deadlock(sessions: Open, queue: str) -> None:
    first, second, worker = sessions(3)
    one, two = send(worker, queue, "1"), send(worker, queue, "2")
    send(first.begin(), queue, "a", one)
    send(second.begin(), queue, "b", two)
    send(first, queue, "c", two)
    send(second, queue, "d", one)
    first.commit()
    second.commit()
    settle(worker, queue)
    done = work_off(worker, queue)
    settle(worker, queue)
    done += work_off(worker, queue)
    assert sorted(done) == ["1", "2", "a", "b", "c", "d"]
    assert is_settled(worker, queue)


@pytest.mark.promise("P04", "P26")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("settings", [{}, {"result_seconds": 60, "history_days": 1}], ids=str)
def test_complete_does_not_wait_for_a_producer_naming_a_message(
    sessions: Open, queue: str, settings: dict[str, Any], archive_days: int, ending: str
) -> None:
    producer, worker, other = sessions(3)
    other.queue.alter_queue(queue, archive_days=archive_days, **settings)
    first = send(other, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(producer.begin(), queue, "second", first)
    completed = at_once(worker, lambda own: own.complete(queue, claim))
    assert completed[0].outcome == "completed"
    with pytest.raises(StaleClaim):
        worker.queue.complete(queue, claim)
    maintain_later(other, queue)
    assert work_off(other, queue) == [], "it is not delivered again"
    assert other.queue.cancel(queue, [first])[0].outcome in {"leased", "not_found"}
    producer.end(ending)
    settle(other, queue)
    assert work_off(other, queue) == (["second"] if ending == "commit" else [])
    settle(other, queue)
    assert is_settled(other, queue)
    assert not dialect_of(other.connection).bodies(other.connection, queue)


@pytest.mark.promise("P04", "P12", "P22", "P25", "P26")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("gone", [[], [1]], ids=["all", "holes"])
def test_batch_completes_while_a_producer_names_one_message(
    sessions: Open, queue: str, gone: list[int], key: str | None, ending: str
) -> None:
    producer, worker, other = sessions(3)
    ids = [
        other.queue.enqueue(
            queue, text, dedup_key=key if text == "d" else None, group_key=key and f"group {text}"
        ).message_id
        for text in "abcd"
    ]
    send(other, queue, "waits already", ids[2])
    if key:
        other.queue.enqueue(queue, "of the group", group_key="group d")
    if gone:
        other.queue.cancel(queue, [ids[position] for position in gone])
    messages = worker.queue.dequeue_fast(queue, 10)
    send(producer.begin(), queue, "waits", messages[-1].message_id)
    send(producer, queue, "waits for c", ids[2])
    outcomes = at_once(worker, lambda own: own.complete(queue, messages[0].claim_id))
    assert [(row.message_id, row.outcome) for row in outcomes] == [
        (message.message_id, "completed") for message in messages
    ]
    resumed = ["waits already"] + (["of the group"] if key else [])
    assert sorted(work_off(other, queue)) == sorted(resumed), "committed successors resume at once"
    for number in range(4):
        assert other.queue.enqueue(queue, "again", dedup_key=f"key {number}").outcome == "enqueued"
    assert other.queue.enqueue(queue, "again", dedup_key="key").outcome == "enqueued"
    assert len(work_off(other, queue)) == 5
    producer.end(ending)
    settle(other, queue)
    expected = ["waits", "waits for c"] if ending == "commit" else []
    assert sorted(work_off(other, queue)) == expected
    settle(other, queue)
    assert is_settled(other, queue)
    assert not dialect_of(other.connection).bodies(other.connection, queue)


def finish_after(session: Session, queue: str, again: str | None) -> list[tuple[str, int]]:
    """Return each message once by `again`, then complete it; return texts and attempts."""
    found = []
    while messages := session.queue.dequeue_fast(queue):
        [message] = messages
        if message.attempt > 1 or again is None:
            completed = at_once(session, completing(queue, message.claim_id))
            assert completed[0].outcome == "completed"
            found.append((message.data, message.attempt))
        elif again == "reap":
            expire_claim(session.connection, message.claim_id)
            assert at_once(session, lambda own: own.reap(queue)).reaped == 1
        else:
            at_once(session, retrying(queue, message.claim_id))
            session.queue.promote(queue)
    return found


def completing(queue: str, claim: int) -> Callable[[Queue], list[Outcome]]:
    return lambda own: own.complete(queue, claim)


def retrying(queue: str, claim: int) -> Callable[[Queue], Any]:
    return lambda own: own.retry_later(queue, claim, delay_seconds=0)


@pytest.mark.promise("P04", "P09", "P26")
@pytest.mark.parametrize("archive_days", [0, 1])
@pytest.mark.parametrize("again", [None, "reap", "retry_later"])
def test_prepared_transaction_naming_messages_repeats_none(
    sessions: Open, queue: str, again: str | None, archive_days: int
) -> None:
    """Preparing needs no right, and the locks outlive the session."""
    producer, worker = sessions(2)
    worker.queue.alter_queue(queue, archive_days=archive_days)
    dialect = preparing_dialect_of(worker.connection)
    sent = [send(worker, queue, text) for text in "abcde"]
    dialect.begin_prepared(producer.connection, queue)
    waiting = [NewMessage(data="waits", predecessor_ids=[each]) for each in sent]
    producer.queue.enqueue_batch(queue, waiting)
    dialect.prepare(producer.connection, queue)
    producer.connection.close()
    try:
        done = finish_after(worker, queue, again)
        assert sorted(done) == [(text, 2 if again else 1) for text in "abcde"]
        settle(worker, queue)
        assert work_off(worker, queue) == [], "none is delivered again"
        assert worker.queue.list_dead(queue) == []
        assert worker.queue.list_claims(queue) == []
    finally:
        dialect.commit_prepared(worker.connection, queue)
    settle(worker, queue)
    assert work_off(worker, queue) == ["waits"] * len(sent)
    settle(worker, queue)
    assert is_settled(worker, queue)


ENDS: dict[str, Callable[[Session, str, int], Any]] = {
    "cancel": lambda own, queue, first: own.queue.cancel(queue, [first]),
    "purge_queue": lambda own, queue, _: own.queue.purge_queue(queue),
    "discard_dead": lambda own, queue, _: own.queue.discard_dead(queue),
    "expire": lambda own, queue, _: own.queue.maintain(queue),
}
"""Calls that end a message that is not leased."""


@pytest.mark.promise("P26", "P36")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("end", ENDS)
def test_ending_a_message_does_not_wait_for_a_producer_naming_it(
    sessions: Open, queue: str, end: str, ending: str
) -> None:
    producer, worker = sessions(2)
    first = worker.queue.enqueue(queue, "first", expire_seconds=600).message_id
    if end == "discard_dead":
        worker.queue.fail_now(queue, worker.queue.dequeue_fast(queue)[0].claim_id)
    elif end == "expire":
        pass_seconds(worker.connection, queue, 601)
    send(producer.begin(), queue, "second", first)
    at_once(worker, lambda _: ENDS[end](worker, queue, first))
    if end == "expire" and not dialect_of(worker.connection).expires_predecessors:
        assert worker.queue.queue_stats(queue)[0].ready == 1, "it expires after the producer"
    else:
        assert work_off(worker, queue) == [], "it has ended"
    producer.end(ending)
    settle(worker, queue)
    assert work_off(worker, queue) == (["second"] if ending == "commit" else [])
    settle(worker, queue)
    assert is_settled(worker, queue)
    assert not dialect_of(worker.connection).bodies(worker.connection, queue)


@pytest.mark.promise("P26", "P34")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("routine", ["release", "reap"])
def test_cancelled_message_ends_beside_a_producer_naming_it(
    sessions: Open, queue: str, routine: str, ending: str
) -> None:
    producer, worker = sessions(2)
    first = send(worker, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    assert worker.queue.cancel(queue, [first], include_leased=True)[0].outcome == "requested"
    send(producer.begin(), queue, "second", first)
    if routine == "release":
        released = at_once(worker, lambda own: own.release(queue, claim))
        assert released[0].outcome == "cancelled"
    else:
        expire_claim(worker.connection, claim)
        assert at_once(worker, lambda own: own.reap(queue)).reaped == 0
    assert work_off(worker, queue) == []
    producer.end(ending)
    settle(worker, queue)
    assert work_off(worker, queue) == (["second"] if ending == "commit" else [])
    settle(worker, queue)
    assert is_settled(worker, queue)
    assert not dialect_of(worker.connection).bodies(worker.connection, queue)


@pytest.mark.promise("P25", "P26")
def test_ended_message_with_a_deferred_delete_may_be_named_again(
    sessions: Open, queue: str
) -> None:
    producer, later, worker = sessions(3)
    first = send(worker, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(producer.begin(), queue, "second", first)
    at_once(worker, lambda own: own.complete(queue, claim))
    send(later.begin(), queue, "third", first)
    producer.commit()
    settle(worker, queue)
    later.commit()
    settle(worker, queue)
    assert sorted(work_off(worker, queue)) == ["second", "third"]
    settle(worker, queue)
    assert is_settled(worker, queue)


@pytest.mark.promise("P06")
@pytest.mark.parametrize("isolation", [None, "read committed", "repeatable read"])
def test_dequeue_does_not_wait_for_a_producer_naming_a_message(
    sessions: Open, queue: str, isolation: str | None
) -> None:
    producer, worker = sessions(2)
    first, second, third = (send(worker, queue, text) for text in "123")
    worker.queue.cancel(queue, [second])
    for message in (first, third):
        send(producer.begin() if message == first else producer, queue, "later", message)
    if isolation:
        worker.begin(isolation)
    messages = worker.queue.dequeue_fast(queue, 10)
    assert [message.data for message in messages] == ["1", "3"], "no range of ids"
    if isolation:
        worker.commit()
    producer.rollback()


@pytest.mark.promise("P27")
def test_reap_does_not_wait_for_a_producer_of_a_successor(sessions: Open, queue: str) -> None:
    producer, worker = sessions(2)
    worker.queue.alter_queue(queue, max_attempts=1)
    first = send(worker, queue, "first")
    expire_claim(worker.connection, worker.queue.dequeue_fast(queue)[0].claim_id)
    send(producer.begin(), queue, "second", first, dead="continue")
    assert worker.queue.maintain(queue)[0].died == 1
    producer.commit()
    settle(worker, queue)
    assert work_off(worker, queue) == ["second"]
    assert is_settled(worker, queue)


@pytest.mark.promise("P27")
@pytest.mark.parametrize("dead", ["continue", "fail"])
def test_successor_being_added_follows_the_death_by_reap(
    sessions_apart: Open, queue_name: str, dead: str
) -> None:
    producer, holder, other = sessions_apart(3)
    dialect = dialect_of(holder.connection)
    other.queue.create_queue(queue_name, max_attempts=1)
    first = send(other, queue_name, "first")
    expire_claim(other.connection, other.queue.dequeue_fast(queue_name)[0].claim_id)
    dialect.lock_table(holder.connection, "blocked")
    adding = producer.start(lambda _: send(producer, queue_name, "second", first, dead=dead))
    adding.waits_for(holder)
    assert other.queue.reap(queue_name).died == 1
    dialect.unlock_table(holder.connection)
    adding.result()
    settle(other, queue_name)
    assert work_off(other, queue_name) == (["second"] if dead == "continue" else [])
    assert is_settled(other, queue_name)


@pytest.mark.pitfall("postgres 25")
@pytest.mark.promise("P19", "P26")
@pytest.mark.parametrize("ending", ENDINGS)
def test_archive_does_not_wait_for_a_producer_of_a_successor(
    sessions: Open, queue: str, ending: str
) -> None:
    producer, worker = sessions(2)
    worker.queue.alter_queue(queue, archive_days=1)
    earlier = send(worker, queue, "earlier")
    send(worker, queue, "used before", earlier)
    assert work_off(worker, queue) == ["earlier", "used before"]
    first = send(worker, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    send(producer.begin(), queue, "second", first)
    worker.queue.complete(queue, claim)
    assert worker.queue.archive(queue).archived == 2, "all except the named message"
    producer.end(ending)
    settle(worker, queue)
    assert work_off(worker, queue) == (["second"] if ending == "commit" else [])
    settle(worker, queue)
    assert is_settled(worker, queue)


@pytest.mark.promise("P27")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("then", ["reset", "cancel", "discard_dead"])
def test_successor_resumes_if_its_dead_predecessor_is_moved(
    sessions: Open, queue: str, then: str, ending: str
) -> None:
    admin, producer, worker = sessions(3)
    first = send(admin, queue, "first")
    admin.queue.fail_now(queue, admin.queue.dequeue_fast(queue)[0].claim_id)
    send(admin, queue, "second", first)
    getattr(admin.begin().queue, then)(queue, [first])
    send(producer, queue, "third", first)
    early = work_off(worker, queue)
    admin.end(ending)
    settle(worker, queue)
    rest = early + work_off(worker, queue)
    if ending == "rollback":
        assert rest == []
        assert worker.queue.queue_stats(queue)[0].blocked == 2
    else:
        settle(worker, queue)
        rest += work_off(worker, queue)
        assert sorted(rest) == sorted((["first"] if then == "reset" else []) + ["second", "third"])
        settle(worker, queue)
        assert is_settled(worker, queue)


@pytest.mark.promise("P02", "P25", "P26")
@pytest.mark.parametrize("table", ["message", "successor", "blocked", "ready"])
def test_worker_killed_in_complete_resumes_no_successor(
    sessions_apart: Open, queue_name: str, table: str
) -> None:
    worker, holder, other = sessions_apart(3)
    dialect = dialect_of(holder.connection)
    other.queue.create_queue(queue_name, max_attempts=3)
    send(other, queue_name, "second", send(other, queue_name, "first"))
    claim = worker.queue.dequeue_fast(queue_name)[0].claim_id
    dialect.lock_table(holder.connection, table)
    finishing = worker.start(lambda own: own.complete(queue_name, claim))
    finishing.waits_for(holder)
    worker.server.kill_session(worker.id)
    dialect.unlock_table(holder.connection)
    assert other.queue.dequeue_fast(queue_name) == [], "it is still leased"
    expire_claim(other.connection, claim)
    maintain_later(other, queue_name)
    assert work_off(other, queue_name) == ["first", "second"]
    assert is_settled(other, queue_name)


@pytest.mark.promise("P27")
@pytest.mark.parametrize("table", ["dead", "blocked", "successor"])
def test_worker_killed_while_propagating_a_death_changes_nothing(
    sessions_apart: Open, queue_name: str, table: str
) -> None:
    worker, holder, other = sessions_apart(3)
    dialect = dialect_of(holder.connection)
    other.queue.create_queue(queue_name)
    first = send(other, queue_name, "first")
    second = send(other, queue_name, "second", first, dead="fail")
    send(other, queue_name, "third", second, dead="fail")
    claim = worker.queue.dequeue_fast(queue_name)[0].claim_id
    dialect.lock_table(holder.connection, table)
    failing = worker.start(lambda own: own.fail_now(queue_name, claim))
    failing.waits_for(holder)
    worker.server.kill_session(worker.id)
    dialect.unlock_table(holder.connection)
    stats = other.queue.queue_stats(queue_name)[0]
    assert (stats.leased, stats.blocked, stats.dead) == (1, 2, 0)
    other.queue.fail_now(queue_name, claim)
    assert other.queue.queue_stats(queue_name)[0].dead == 3
    assert is_settled(other, queue_name)


@pytest.mark.promise("P26")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_complete_under_an_old_snapshot_resumes_newer_successors(
    sessions: Open, queue: str, isolation: str
) -> None:
    strict, producer = sessions(2)
    first = send(producer, queue, "first")
    send(producer, queue, "shown", first)
    claim = strict.queue.dequeue_fast(queue)[0].claim_id
    strict.begin(isolation).execute("select count(*) from rowq.queue")
    send(producer, queue, "not shown", first)
    try:
        strict.queue.complete(queue, claim)
        strict.commit()
    except Exception as error:
        if not engine_for_connection(strict.connection).is_transient(error):
            raise
        strict.rollback()
        producer.queue.complete(queue, claim)
    settle(producer, queue)
    assert sorted(work_off(producer, queue)) == ["not shown", "shown"]
    assert is_settled(producer, queue)


@pytest.mark.promise("P27")
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("dead", ["continue", "fail"])
def test_successor_added_under_an_old_snapshot_follows_the_death(
    sessions: Open, queue: str, dead: str, isolation: str
) -> None:
    strict, worker = sessions(2)
    first = send(worker, queue, "first")
    claim = worker.queue.dequeue_fast(queue)[0].claim_id
    strict.begin(isolation).execute("select count(*) from rowq.queue")
    worker.queue.fail_now(queue, claim)
    send(strict, queue, "second", first, dead=dead)
    strict.commit()
    settle(worker, queue)
    stats = worker.queue.queue_stats(queue)[0]
    assert (stats.ready, stats.dead) == ((1, 1) if dead == "continue" else (0, 2))
    assert is_settled(worker, queue)
