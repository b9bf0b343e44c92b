"""Who acts as rowq_citus, as a caller may, does not come to the rights of rowq_owner by it."""

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.install import install
from rowq.tools.engines.postgres.citus.nodes import Node, nodes_of
from rowq.tools.engines.postgres.citus.places import queues_on
from rowq.tools.migrate.errors import ForeignSchema
from tests.engine_only.postgres.citus.conftest import Open
from tests.engine_only.postgres.citus.helpers import BY_ITSELF
from tests.engines.base import Connection

OURS = """
    select p.oid::regprocedure::text, p.prosecdef
    from pg_proc p
    where p.pronamespace in ('rowq'::regnamespace, 'rowq_node'::regnamespace,
        'rowq_citus'::regnamespace)
    """
DEFINERS = """
    select p.oid::regprocedure::text
    from pg_proc p
    where p.pronamespace = 'rowq_citus'::regnamespace
      and p.prosecdef
    """
# What a body names without a schema, it finds here first.
TRAP = """
    create schema trap;
    create function trap.spring() returns boolean language plpgsql
    as $$ begin raise exception 'trapped'; end $$;
    create domain trap.text as pg_catalog.text check (trap.spring());
    create function trap.concat(pg_catalog.text, pg_catalog.text, pg_catalog.text)
    returns pg_catalog.text language plpgsql
    as $$ begin raise exception 'trapped'; end $$;
    grant usage on schema trap to public;
    """
EACH = ("health()", "queue_stats()", "list_topics()", "list_claims()", "maintain()")


def test_as_rowq_citus_nothing_changes_but_what_runs_with_its_own_rights(
    nodes: tuple[Node, ...], open_node: Open
) -> None:
    session = open_node(nodes[-1])
    session.execute(BY_ITSELF)
    found = session.execute(OURS).fetchall()
    session.execute("set role rowq_citus")
    for name, is_definer in found:
        if name.startswith("rowq_citus.") and is_definer:
            continue
        for change in ("security invoker", "set search_path = trap, pg_catalog"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                session.execute(f"alter function {name} {change}")
    for schema in ("rowq", "rowq_node", "rowq_citus"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"create function {schema}.f() returns int language sql as 'select 1'")


def changed_by_rowq_citus(session: Connection) -> None:
    """Have all that rowq_citus owns run as its caller, with a trap before PostgreSQL's names."""
    session.execute(BY_ITSELF)
    session.execute(TRAP)
    names = [name for (name,) in session.execute(DEFINERS)]
    assert names
    session.execute("set role rowq_citus")
    for name in names:
        session.execute(f"alter function {name} security invoker")
        session.execute(f"alter function {name} set search_path = trap, pg_catalog")
    session.execute("reset role")


def outcome(session: Connection, call: str) -> str:
    """Call a routine, and return what is said when it fails.

    It runs as rowq_owner, who may not log in on other nodes.
    """
    try:
        session.execute(f"select * from rowq.{call}")
    except psycopg.Error as error:
        return str(error)
    return ""


def test_what_rowq_citus_owns_names_nothing_that_a_path_could_change(empty_cluster: str) -> None:
    install(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute("select rowq.create_queue('q')")
        changed_by_rowq_citus(session)
        session.execute("set search_path = trap, pg_catalog")
        with pytest.raises(psycopg.Error, match="trapped"):
            session.execute(
                "select concat('a'::pg_catalog.text, 'b'::pg_catalog.text, 'c'::pg_catalog.text)"
            )
        session.execute("reset search_path")
        for call in ("queue_stats('q')", *EACH):
            assert "trapped" not in outcome(session, call)


def test_a_superuser_s_look_at_queues_runs_nothing_of_the_owner_s(empty_cluster: str) -> None:
    install(empty_cluster)
    node = nodes_of(empty_cluster)[0]
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute(BY_ITSELF)
        session.execute("create table public.trace (who text); grant all on trace to public")
        session.execute("set role rowq_owner")
        session.execute("alter table rowq.queue rename to moved")
        session.execute(
            "create function rowq.spring() returns text language plpgsql"
            " as $$ begin insert into public.trace values (current_user); return 'q'; end $$"
        )
        session.execute("create view rowq.queue as select rowq.spring() as queue_name")
        with pytest.raises(ForeignSchema, match="RQ802"):
            queues_on(node)
        assert session.execute("select * from public.trace").fetchall() == []
