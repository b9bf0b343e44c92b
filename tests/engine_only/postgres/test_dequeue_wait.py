"""dequeue_wait holds no snapshot and no lock between polls."""

import threading

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.queues import CheckedQueue


def start_waiting(queue: CheckedQueue) -> threading.Thread:
    thread = threading.Thread(target=lambda: queue.call_one("dequeue_wait", wait_seconds=60))
    thread.start()
    return thread


@pytest.mark.promise("P02", "P20")
def test_dequeue_wait_returns_as_many_messages_as_json_holds(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    owner.execute(
        "select rowq.enqueue(%s, 'b', p_headers =>"
        " pg_catalog.jsonb_build_object('k', pg_catalog.repeat('🐘', 65000)))"
        " from pg_catalog.generate_series(1, 300)",
        [own_queue.name],
    )
    first = own_queue.call_one("dequeue_wait", batch_size=300).messages
    assert 200 < len(first) < 300
    second = own_queue.call_one("dequeue_wait", batch_size=300).messages
    ids = [message["message_id"] for message in (*first, *second)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 300


@pytest.mark.pitfall("postgres 9")
@pytest.mark.promise("P13", "P17")
def test_waiting_session_does_not_hold_the_horizon(
    server: Server, owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    waiter = open_owner()
    thread = start_waiting(own_queue.via(waiter))
    waiting = """
        select backend_xmin, backend_xid, pg_current_xact_id()::xid
        from pg_stat_activity where pid = %s and wait_event = 'PgSleep'
        """
    horizons = set()

    def moved() -> bool:
        row = owner.execute(waiting, [server.session_id(waiter)]).fetchone()
        if row is not None:
            assert row[1] is None, "it holds a transaction number while it waits"
            assert row[0] is None or int(row[2]) - int(row[0]) < 1000
            horizons.add(row[0])
        return len(horizons) >= 5

    wait_until(moved, "five different horizons are seen during one wait")
    own_queue.enqueue("ends the wait")
    thread.join()


@pytest.mark.pitfall("postgres 9")
@pytest.mark.promise("P13", "P17")
def test_vacuum_removes_dead_rows_while_a_session_waits(
    server: Server, owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    waiter = open_owner()
    thread = start_waiting(own_queue.via(waiter))
    started = "select 1 from pg_stat_activity where pid = %s and wait_event = 'PgSleep'"
    wait_until(
        lambda: owner.execute(started, [server.session_id(waiter)]).fetchone() is not None,
        "the wait begins",
    )
    owner.execute("create table public.t as select generate_series(1, 1000) as n")
    owner.execute("delete from public.t")

    def removed() -> bool:
        owner.execute("vacuum public.t")
        row = owner.execute("select pg_relation_size('public.t')").fetchone()
        return bool(row[0] == 0)

    wait_until(removed, "vacuum removes the dead rows", seconds=20)
    assert thread.is_alive()
    own_queue.enqueue("ends the wait")
    thread.join()


@pytest.mark.promise("P17")
def test_waiting_session_holds_no_table_lock(
    server: Server, owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    waiter = open_owner()
    thread = start_waiting(own_queue.via(waiter))
    held = """
        select count(*) filter (where l.locktype = 'relation') from pg_stat_activity a
        left join pg_locks l on l.pid = a.pid and l.relation::regclass::text like 'rowq.%%'
        where a.pid = %s and a.wait_event = 'PgSleep' having count(*) > 0
        """
    seen = []

    def often_enough() -> bool:
        if row := owner.execute(held, [server.session_id(waiter)]).fetchone():
            seen.append(row[0])
        return len(seen) >= 10

    wait_until(often_enough, "the session is seen waiting")
    assert set(seen) == {0}
    own_queue.enqueue("ends the wait")
    thread.join()
