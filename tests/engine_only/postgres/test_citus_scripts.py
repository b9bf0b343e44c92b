"""What carries calls on a cluster, on one server without Citus: every call comes back to it."""

import psycopg
import pytest

from rowq import migrate
from rowq.postgres.citus.scripts import CARRY, ROUTE, UNROUTE, script
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import TO_RUN, Connection
from tests.helpers.calls import call, call_one, refused

CATALOG = """
    select p.oid::regprocedure::text, p.oid, p.prosrc, p.proacl::text, p.proowner,
           obj_description(p.oid), p.prosecdef, p.proconfig
    from pg_proc p
    where p.pronamespace = 'rowq'::regnamespace
    order by 1
    """
# What asks Citus, answered as by a cluster of this node.
ALONE = """
    create or replace function rowq_citus.is_here(p_name text) returns boolean
    language sql as $$ select p_name !~ '^elsewhere' $$;
    create or replace function rowq_citus.groups() returns integer[]
    language sql as $$ select array[0] $$;
    create or replace function rowq_citus.nodes()
    returns table (node_key text, node_group integer, node_name text, node_groups integer[])
    language sql as $$ values ('n1', 0, 'here:1', array[0]) $$
    """


def run(connection: Connection, *names: str) -> None:
    with connection.transaction():
        for name in names:
            connection.execute(script(name))


@pytest.fixture
def alone(open_owner: Open) -> Connection:
    """Return a session in a database whose calls are carried to itself."""
    session = open_owner()
    is_superuser = "select rolsuper from pg_roles where rolname = current_user"
    if session.execute(is_superuser).fetchone() != (True,):
        pytest.skip(f"this account may not make roles' functions{TO_RUN}a superuser's URL")
    run(session, CARRY)
    session.execute(ALONE)
    return session


def test_what_was_routed_can_be_taken_back_with_the_rights_of_meanwhile(alone: Connection) -> None:
    before = alone.execute(CATALOG).fetchall()
    run(alone, ROUTE)
    with pytest.raises(psycopg.Error, match="RQ809"):
        run(alone, ROUTE)
    assert alone.execute(CATALOG).fetchall() != before
    run(alone, UNROUTE)
    run(alone, UNROUTE)
    assert [row[:3] for row in alone.execute(CATALOG)] == [row[:3] for row in before]
    run(alone, CARRY, ROUTE, UNROUTE)
    after = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in after] == [(*row[:3], *row[4:]) for row in before]
    assert [sorted(row[3].strip("{}").split(",")) for row in after] == [
        sorted(row[3].strip("{}").split(",")) for row in before
    ]


def test_calls_are_carried_and_a_null_name_is_refused(alone: Connection) -> None:
    run(alone, ROUTE)
    call_one(alone, "create_queue", queue_name="q")
    call_one(alone, "enqueue", queue_name="q", body="x")
    alone.execute("select rowq.enqueue('q', '{}'::jsonb)")
    call_one(alone, "bind_topic", queue_name="q", topic_pattern="#")
    assert len(call(alone, "publish", topic="a", body="x")) == 1
    claim = call(alone, "dequeue_fast", queue_name="q", batch_size=3)
    assert len(claim) == 3
    assert len(call(alone, "complete", queue_name="q", claim_id=claim[0].claim_id)) == 3
    assert [row.queue_name for row in call(alone, "maintain")] == ["q"]
    assert [row.queue_name for row in call(alone, "queue_stats")] == ["q"]
    assert {row.detail.partition(": ")[0] for row in call(alone, "health")} == {"here:1"}
    assert refused(alone, "RQ711", "enqueue", queue_name=None, body="x")
    assert refused(alone, "RQ706", "enqueue", queue_name="elsewhere", body="x")
    assert refused(alone, "RQ701", "dequeue_fast", queue_name="nowhere")


def test_a_node_is_as_shipped_and_is_not_migrated_alone(
    alone: Connection, empty_database: str
) -> None:
    run(alone, ROUTE)
    found = migrate.status(empty_database)
    assert (found.drift, found.notices) == ((), ())
    for act in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.RoutedDatabase, match="RQ809"):
            act(empty_database)
    alone.execute("alter function rowq.peek(text, integer) reset search_path")
    assert [drift.routine for drift in migrate.status(empty_database).drift] == ["peek"]
