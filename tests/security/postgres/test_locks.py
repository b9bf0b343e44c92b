"""Another user's advisory locks do not block rowq."""

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.helpers.calls import call, call_one, dequeue_one, enqueue
from tests.security.postgres.conftest import Login, Session

pytestmark = pytest.mark.promise("P19")

TURN = 1919907697


@pytest.fixture
def as_role(owner: Session, login: Login) -> Iterator[Callable[..., Session]]:
    """Return a function that opens a session of a role with the given rowq roles."""
    del owner
    opened: list[Session] = []

    def connect(name: str, *granted: str) -> Session:
        opened.append(psycopg.connect(login(name, *granted), autocommit=True))
        return opened[-1]

    yield connect
    for session in opened:
        session.close()


def hold_all(session: Session) -> None:
    """Take every lock that maintain could use."""
    session.execute(f"select pg_advisory_lock({TURN}, number) from generate_series(-2, 20) number")


@pytest.mark.promise("P16", "P19")
@pytest.mark.parametrize("role", [(), ("rowq_producer",), ("rowq_monitor",)], ids=str)
def test_foreign_advisory_lock_does_not_block_maintain(
    owner: Session, as_role: Callable[..., Session], role: tuple[str, ...]
) -> None:
    hold_all(as_role("stranger", *role))
    consumer = as_role("consumer", "rowq_consumer")
    enqueue(owner, "q", "a")
    enqueue(owner, "q", "later", delay_seconds=0.01)
    call(consumer, "complete", queue_name="q", claim_id=dequeue_one(consumer, "q").claim_id)
    done = call_one(consumer, "maintain", queue_name="q")
    assert (done.elected, done.promoted, done.archived) == (True, 1, 1)
    enqueue(owner, "q", "lost")
    dequeue_one(consumer, "q", lease_seconds=1)
    dequeue_one(consumer, "q", lease_seconds=1)
    consumer.execute("select pg_sleep(1.1)")
    assert call_one(consumer, "maintain", queue_name="q").reaped == 2


@pytest.mark.promise("P16", "P19")
@pytest.mark.parametrize("role", [(), ("rowq_producer",), ("rowq_monitor",)], ids=str)
def test_foreign_lock_does_not_block_election(
    owner: Session, as_role: Callable[..., Session], role: tuple[str, ...]
) -> None:
    del owner
    as_role("stranger", *role).execute(
        "select pg_advisory_lock(1919907699, queue_id) from generate_series(-2, 20) queue_id"
    )
    consumer = as_role("consumer", "rowq_consumer")
    assert call_one(consumer, "elect_leader", queue_name="q").elected


def test_one_leader_is_elected(owner: Session, as_role: Callable[..., Session]) -> None:
    consumer = as_role("consumer", "rowq_consumer")
    consumer.execute("begin")
    assert call_one(consumer, "maintain", queue_name="q").elected
    assert not call_one(owner, "maintain", queue_name="q").elected
    assert not call_one(as_role("admin", "rowq_admin"), "maintain", queue_name="q").elected
    consumer.execute("rollback")
    assert call_one(owner, "maintain", queue_name="q").elected


def test_one_leader_is_elected_among_set_roles(
    owner: Session, as_role: Callable[..., Session], login: Login
) -> None:
    pooled = login("pooled")
    owner.execute("alter role pooled noinherit")
    owner.execute("grant rowq_consumer to pooled")
    with psycopg.connect(pooled) as first, psycopg.connect(pooled, autocommit=True) as second:
        for session in (first, second):
            session.execute("set role rowq_consumer")
        assert call_one(first, "maintain", queue_name="q").elected
        assert not call_one(second, "maintain", queue_name="q").elected
        assert not call_one(
            as_role("consumer", "rowq_consumer"), "maintain", queue_name="q"
        ).elected


def test_unelected_session_checks_lock_owners_once(
    owner: Session, as_role: Callable[..., Session]
) -> None:
    owner.execute("select rowq.create_queue('q' || n) from generate_series(1, 9) n")
    consumer = as_role("consumer", "rowq_consumer")
    consumer.execute("begin")
    assert all(row.elected for row in call(consumer, "maintain"))
    owner.execute("set track_functions = 'all'; begin")
    assert [row.elected for row in call(owner, "maintain")] == [False] * 10
    looks = """
        select calls from pg_stat_xact_user_functions where funcname = 'internal_maintained_queues'
    """
    assert owner.execute(looks).fetchall() == [(1,)]


def test_maintain_waits_1_second_for_archive_lock(
    owner: Session, as_role: Callable[..., Session]
) -> None:
    first = as_role("first", "rowq_consumer")
    second = as_role("second", "rowq_consumer")
    enqueue(owner, "q", "a", "b")
    call(first, "complete", queue_name="q", claim_id=dequeue_one(first, "q").claim_id)
    first.execute("begin")
    assert call_one(first, "archive", queue_name="q").archived == 1
    call(second, "complete", queue_name="q", claim_id=dequeue_one(second, "q").claim_id)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        call(second, "archive", queue_name="q")
    first.execute("commit")
    assert call_one(second, "archive", queue_name="q").archived == 1


@pytest.mark.promise("P16", "P19")
def test_lock_of_a_prepared_transaction_elects_no_leader(
    owner: Session, as_role: Callable[..., Session]
) -> None:
    consumer, stranger = as_role("consumer", "rowq_consumer"), as_role("stranger")
    stranger.execute("begin")
    locks = f"select pg_advisory_xact_lock({TURN}, number) from generate_series(-2, 20) number"
    stranger.execute(locks)
    stranger.execute("prepare transaction 'rowq_test_locks'")
    stranger.close()
    try:
        assert call_one(consumer, "maintain", queue_name="q").elected
    finally:
        owner.execute("rollback prepared 'rowq_test_locks'")


def test_maintain_waits_once_for_the_archive_of_all_queues(
    owner: Session, as_role: Callable[..., Session]
) -> None:
    consumer = as_role("consumer", "rowq_consumer")
    queues = ["q", "q2", "q3", "q4"]
    for name in queues:
        call(owner, "create_queue", queue_name=name, archive_days=1)
        enqueue(owner, name, "a")
        enqueue(owner, name, "later", delay_seconds=0.01)
        call(consumer, "complete", queue_name=name, claim_id=dequeue_one(consumer, name).claim_id)
    owner.execute("begin; lock table rowq.archive in share mode; select pg_sleep(0.05)")
    started = time.monotonic()
    done = call(consumer, "maintain")
    assert 0.9 < time.monotonic() - started < 2
    assert [(row.elected, row.promoted, row.archived) for row in done] == [(True, 1, 0)] * 4
    owner.execute("rollback")
    assert [row.archived for row in call(consumer, "maintain")] == [1] * 4


def test_maintain_waits_1_second_for_open_partition_drop(
    owner: Session, as_role: Callable[..., Session]
) -> None:
    consumer = as_role("consumer", "rowq_consumer")
    enqueue(owner, "q", "a", "b")
    call(consumer, "complete", queue_name="q", claim_id=dequeue_one(consumer, "q").claim_id)
    assert call_one(consumer, "archive", queue_name="q").archived == 1
    call(consumer, "complete", queue_name="q", claim_id=dequeue_one(consumer, "q").claim_id)
    owner.execute("begin; lock table rowq.archive in access exclusive mode")
    done = call_one(consumer, "maintain", queue_name="q")
    assert (done.elected, done.archived) == (True, 0)
    with pytest.raises(psycopg.errors.LockNotAvailable):
        call(consumer, "archive", queue_name="q")
    owner.execute("rollback")
    assert call_one(consumer, "maintain", queue_name="q").archived == 1
