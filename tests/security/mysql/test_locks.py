"""Locks that any account may take block neither maintain nor waiters nor migrations."""

import time

import pymysql
import pytest

from rowq.tools import migrate
from rowq.tools.engines.mysql import install
from rowq.tools.migrate.release import release_for
from tests.engines.base import Connection, Server
from tests.engines.mysql.accounts import Accounts, open_account
from tests.helpers.calls import bodies, call_one, dequeue, enqueue
from tests.security.mysql.test_numbers import queue_id_of
from tests.stored_times import expire_claim

pytestmark = pytest.mark.pitfall("mysql 14")

PURPOSES = ("maintain", "wait", "archive", "migrate")


def take_names(session: Connection, part: int) -> None:
    """Take the named locks that rowq might use."""
    for purpose in PURPOSES:
        for name in (f"rowq.{purpose}", f"rowq.{purpose}.{part}"):
            assert session.execute("select get_lock(%s, 0)", [name]).fetchone() == (1,)


@pytest.mark.promise("P09", "P16", "P19")
def test_named_lock_does_not_block_maintain(
    connection: Connection, users: Accounts, queue: str
) -> None:
    take_names(users["no_role"], queue_id_of(connection, queue))
    enqueue(connection, queue, "taken back")
    [row] = dequeue(connection, queue)
    expire_claim(connection, row.claim_id)
    kept = call_one(users["consumer"], "maintain", queue_name=queue)
    assert (kept.elected, kept.reaped) == (True, 1)


@pytest.mark.promise("P16", "P17")
def test_named_lock_does_not_block_a_waiter(
    connection: Connection, users: Accounts, queue: str
) -> None:
    take_names(users["no_role"], queue_id_of(connection, queue))
    started = time.monotonic()
    enqueue(connection, queue, "at once", delay_seconds=0.5)
    answer = call_one(users["consumer"], "dequeue_wait", queue_name=queue, wait_seconds=20)
    assert [message["body"] for message in answer.messages] == ["at once"]
    assert time.monotonic() - started < 5


@pytest.mark.promise("P16")
def test_named_lock_does_not_block_a_migration(server: Server, empty_database: str) -> None:
    with (
        server.connect(empty_database) as admin,
        open_account(admin, empty_database) as opened,
        opened() as other,
    ):
        take_names(other, 1)
        started = time.monotonic()
        assert migrate.migrate(empty_database).applied
        migrate.migrate(empty_database)
        assert time.monotonic() - started < 30
        # An account without rights cannot read the names of taken locks.
        with pytest.raises(Exception, match="denied"):
            other.execute("select lock_name from rowq.migration_lock")


@pytest.mark.promise("P19")
def test_two_migrations_do_not_run_concurrently(server: Server, empty_database: str) -> None:
    migrate.migrate(empty_database)
    lock = release_for("mysql").text("lock.sql")
    with server.connect(empty_database) as first, server.connect(empty_database) as second:
        install.Connection(first).execute(lock)
        with pytest.raises(pymysql.Error, match="RQ806"):
            install.Connection(second).execute(lock.replace(", 60)", ", 0)"))
        first.execute("do release_lock(@rowq_lock)")
        install.Connection(second).execute(lock)


@pytest.mark.promise("P09", "P19")
def test_open_maintain_of_a_consumer_blocks_no_delivery(
    connection: Connection, users: Accounts, queue: str
) -> None:
    attacker = users["consumer"]
    attacker.begin()
    assert call_one(attacker, "maintain", queue_name=queue).elected
    assert not call_one(connection, "maintain", queue_name=queue).elected
    enqueue(connection, queue, "a", "b")
    assert bodies(dequeue(connection, queue, 10)) == ["a", "b"]
    attacker.rollback()
    assert call_one(connection, "maintain", queue_name=queue).elected
