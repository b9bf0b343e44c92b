"""What carries calls on a cluster, on one server without Citus: every call comes back to it."""

import pytest

from rowq.tools import migrate
from rowq.tools.engines.postgres.citus.scripts import (
    ASIDE,
    BEHIND,
    CARRY,
    CHECK,
    RIGHTS,
    ROUTE,
    UNROUTE,
    script,
    signatures,
)
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import TO_RUN, Connection
from tests.helpers.calls import call, call_one, refused

CATALOG = """
    select p.oid::regprocedure::text, p.oid, p.prosrc, p.proacl::text, p.proowner,
           obj_description(p.oid), p.prosecdef, p.proconfig,
           array(select a::text from unnest(p.proacl) a order by 1)
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

SIGNATURES = r"""
    select p.proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid)
    from pg_proc p
    join pg_proc o on o.proname = p.proname and o.pronamespace = 'rowq_node'::regnamespace
    where p.pronamespace = 'rowq'::regnamespace
      and p.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', p.proname)
    """
ROUTED = (CHECK, ASIDE, BEHIND, ROUTE, RIGHTS)
UNROUTED = (CHECK, ASIDE, UNROUTE)


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
    run(session, CHECK, CARRY, RIGHTS)
    session.execute(ALONE)
    session.execute("alter function rowq_citus.nodes() owner to rowq_citus")
    return session


def test_what_was_routed_can_be_taken_back_with_the_rights_of_meanwhile(alone: Connection) -> None:
    before = alone.execute(CATALOG).fetchall()
    run(alone, *ROUTED)
    wrapped = alone.execute(CATALOG).fetchall()
    run(alone, *ROUTED)
    again = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in again] == [(*row[:3], *row[4:]) for row in wrapped]
    assert alone.execute(CATALOG).fetchall() != before
    run(alone, *UNROUTED)
    run(alone, *UNROUTED)
    assert [row[:3] for row in alone.execute(CATALOG)] == [row[:3] for row in before]
    run(alone, CHECK, CARRY, *ROUTED[1:], ASIDE, UNROUTE)
    after = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in after] == [(*row[:3], *row[4:]) for row in before]


def test_carriers_that_are_made_again_leave_the_rights_of_meanwhile(alone: Connection) -> None:
    run(alone, *ROUTED)
    alone.execute("revoke execute on function rowq.peek(text, integer) from rowq_monitor")
    alone.execute("grant execute on function rowq.health() to rowq_producer")
    meanwhile = alone.execute(CATALOG).fetchall()
    run(alone, CHECK, CARRY, RIGHTS)
    assert alone.execute(CATALOG).fetchall() == meanwhile
    alone.execute(ALONE)
    run(alone, *ROUTED)
    again = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in again] == [(*row[:3], *row[4:]) for row in meanwhile]


def test_the_scripts_know_what_the_catalog_says_of_wrappers(alone: Connection) -> None:
    run(alone, *ROUTED)
    found = alone.execute(SIGNATURES).fetchall()
    assert {name: (arguments, result) for name, arguments, result in found} == signatures()


def test_calls_are_carried_and_a_null_name_is_refused(alone: Connection) -> None:
    run(alone, *ROUTED)
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
    run(alone, *ROUTED)
    found = migrate.status(empty_database)
    assert (found.drift, found.notices) == ((), ())
    for act in (migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.RoutedDatabase, match="RQ809"):
            act(empty_database)
    alone.execute("alter function rowq.peek(text, integer) reset search_path")
    assert [drift.routine for drift in migrate.status(empty_database).drift] == ["peek"]
