"""Rights on the nodes, and the role rowq_citus: excluded rights and logins."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg
import pytest

from rowq.tools.doctor import examine
from rowq.tools.migrate.errors import ForeignSchema
from sql.postgres.addons.citus.build import FORWARDER, every, forwarders
from sql.postgres.addons.citus.install import install, remove
from sql.postgres.addons.citus.nodes import Node, nodes_of, queues_on, session_on
from sql.postgres.addons.citus.status import cluster_status
from sql.postgres.addons.citus.tests.cluster import (
    BY_ITSELF,
    last,
    on_each,
    on_last,
    on_node,
    refuses_and_changes_nothing,
)
from sql.postgres.addons.citus.tests.conftest import Open
from tests.engines.base import Connection, wait_until
from tests.helpers.releases import NEWEST
from tests.static.sources import routines_of

CALLERS = ("rowq_producer", "rowq_consumer", "rowq_monitor", "rowq_admin")
ON_WRAPPERS = """
    select c.name, p.proname
    from unnest(%s::text[]) c (name)
    join pg_proc p
        on p.pronamespace = 'rowq'::regnamespace
        and has_function_privilege(c.name, p.oid, 'execute')
    where p.proname = any (%s)
    """
IN_OUR_SCHEMAS = """
    select coalesce(r.rolname, 'public'), 'function', p.proname, a.privilege_type
    from pg_proc p
    cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    left join pg_roles r on r.oid = a.grantee
    where p.pronamespace in ('rowq_citus'::regnamespace, %(more)s::regnamespace)
      and a.grantee <> p.proowner
    union all
    select coalesce(r.rolname, 'public'), 'schema', n.nspname, a.privilege_type
    from pg_namespace n
    cross join aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    left join pg_roles r on r.oid = a.grantee
    where n.nspname in ('rowq_citus', 'rowq_node')
      and a.grantee <> n.nspowner
    union all
    select coalesce(r.rolname, 'public'), 'table', c.relname, a.privilege_type
    from pg_class c
    cross join aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
    left join pg_roles r on r.oid = a.grantee
    where c.oid = 'rowq_citus.route'::regclass
      and a.grantee <> c.relowner
    """
OWNERS = """
    select n.nspname, p.proname, pg_get_userbyid(p.proowner), p.prosecdef
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('rowq_citus', 'rowq_node')
    """
DEFAULTS = """
    create role {role};
    alter default privileges grant execute on functions to {role};
    alter default privileges grant usage, create on schemas to {role};
    alter default privileges grant all on tables to {role}
    """


def forwarded() -> list[str]:
    """Return the names of all forwarded routines."""
    return [one.routine.name for one in every() if not one.why_here]


def test_roles_have_contract_rights_on_every_node(nodes: tuple[Node, ...], open_node: Open) -> None:
    contract = routines_of("postgres")
    due = {
        (f"rowq_{role}", name)
        for name in forwarded()
        for role in (*contract[name]["roles"], "admin")
        if f"rowq_{role}" in CALLERS
    }
    for node in nodes:
        session = open_node(node)
        found = session.execute(ON_WRAPPERS, [[*CALLERS, "public"], forwarded()]).fetchall()
        assert set(found) == due, node.name


def test_only_rowqs_roles_may_use_functions_behind_wrappers(
    nodes: tuple[Node, ...], open_node: Open
) -> None:
    for node in nodes:
        session = open_node(node)
        owners = session.execute(OWNERS).fetchall()
        definers = {name for schema, name, _, is_definer in owners if is_definer}
        assert {name: owner for schema, name, owner, _ in owners if schema == "rowq_citus"} == {
            name: "rowq_citus" if name in definers else "rowq_owner" for name in forwarders()
        }
        assert {owner for schema, _, owner, _ in owners if schema == "rowq_node"} == {"rowq_owner"}
        assert {name for schema, name, _, _ in owners if schema == "rowq_node"} == set(forwarded())
        given = set(session.execute(IN_OUR_SCHEMAS, {"more": "rowq_citus"}).fetchall())
        assert given == {
            *(
                ("rowq_owner" if name in definers else "rowq_citus", "function", name, "EXECUTE")
                for name in forwarders()
            ),
            ("rowq_citus", "schema", "rowq_citus", "USAGE"),
            ("rowq_citus", "schema", "rowq_node", "USAGE"),
            ("rowq_citus", "table", "route", "SELECT"),
            ("rowq_owner", "table", "route", "SELECT"),
        }, node.name


def test_default_privileges_reach_no_forwarder(empty_cluster: str) -> None:
    role = "rowq_test_given"
    with ExitStack() as stack:
        sessions = dict(on_each(empty_cluster, stack))
        for session in sessions.values():
            session.execute(BY_ITSELF)
            stack.callback(session.execute, f"drop owned by {role}; drop role {role}")
            session.execute(DEFAULTS.format(role=role))
        for _ in range(2):
            install(empty_cluster)
            for node, session in sessions.items():
                found = session.execute(IN_OUR_SCHEMAS, {"more": "rowq"}).fetchall()
                others = {row for row in found if row[0] in (role, "public")}
                assert others == set(), node.name


@pytest.mark.parametrize("schema", ["rowq_citus", "rowq_node"])
def test_direct_grants_are_revoked(empty_cluster: str, schema: str) -> None:
    install(empty_cluster)
    with ExitStack() as stack:
        _, session = list(on_each(empty_cluster, stack))[-1]
        session.execute(BY_ITSELF)
        session.execute(f"grant usage, create on schema {schema} to rowq_producer")
        name = "peek(text, integer)" if schema == "rowq_node" else "to_peek_1(text, integer)"
        session.execute(f"grant execute on function {schema}.{name} to public")
        install(empty_cluster)
        given = session.execute(IN_OUR_SCHEMAS, {"more": "rowq_node"}).fetchall()
        assert "public" not in {row[0] for row in given}
        assert ("rowq_producer", "schema", schema, "USAGE") not in given


WRONG_ROLE = {
    "alter role rowq_citus createrole": "may do more than forward calls",
    "alter role rowq_citus replication": "may do more than forward calls",
    "do $$ begin execute format("
    "'grant create on database %I to rowq_citus', current_database()); end $$": (
        "may create schemas"
    ),
    "grant pg_read_all_data to rowq_citus": "is a member of pg_read_all_data",
    "grant rowq_citus to rowq_monitor": "rowq_monitor can act as it",
    "create table public.kept (id integer); alter table public.kept owner to rowq_citus": (
        "owns table public.kept"
    ),
    "create table public.kept (id integer); grant select on public.kept to rowq_citus": (
        "has rights on table public.kept"
    ),
}
UNDO = """
    alter role rowq_citus nocreaterole noreplication;
    revoke pg_read_all_data from rowq_citus;
    revoke rowq_citus from rowq_monitor;
    drop table if exists public.kept;
    do $$ begin
        execute format('revoke create on database %I from rowq_citus', current_database());
    end $$
    """


HBA = "select setting from pg_settings where name = 'hba_file'"


def write(session: Connection, path: str, text: str) -> None:
    """Write a file of the server."""
    made = "select lo_from_bytea(0, convert_to(%s, 'utf8'))"
    (number,) = session.execute(made, [text]).fetchone() or (0,)
    session.execute("select lo_export(%s, %s)", [number, path])
    session.execute("select lo_unlink(%s)", [number])


def is_asked(url: str) -> bool:
    """Return whether a server requires rowq_citus' password."""
    try:
        psycopg.connect(url, user=FORWARDER).close()
    except psycopg.OperationalError as error:
        return "no password" in str(error)
    return False


def calls_from_each(url: str, texts: list[str]) -> Iterator[str]:
    """Run statements on each node, and yield the errors."""
    for node in nodes_of(url):
        try:
            with psycopg.connect(on_node(url, node), autocommit=True) as caller:
                for text in texts:
                    caller.execute(text)
        except psycopg.Error as refusal:
            yield str(refusal)


@contextmanager
def asks_for_passwords(session: Connection) -> Iterator[None]:
    """Let a node require rowq_citus' password within a block."""
    (path,) = session.execute(HBA).fetchone() or ("",)
    (before,) = session.execute("select pg_read_file(%s)", [path]).fetchone() or ("",)
    rule = "host all rowq_citus all scram-sha-256\n"
    write(session, path, f"{rule}{before}")
    session.execute("select pg_reload_conf()")
    try:
        yield
    finally:
        write(session, path, before)
        session.execute("select pg_reload_conf()")


def test_rowq_citus_with_other_rights_is_refused(empty_cluster: str) -> None:
    install(empty_cluster)
    with on_last(empty_cluster) as session:
        for statements, why in WRONG_ROLE.items():
            try:
                session.execute(statements)
                with refuses_and_changes_nothing(empty_cluster, "RQ803") as said:
                    install(empty_cluster)
                assert why in said()
                assert last(empty_cluster).name in said()
                assert "A DBA must run: " in said()
            finally:
                session.execute(UNDO)


def test_rowq_citus_with_a_foreign_password_is_refused(empty_cluster: str) -> None:
    install(empty_cluster)
    remove(empty_cluster)
    with on_last(empty_cluster) as session:
        is_used = (
            "select 1 from pg_shdepend where refobjid = 'rowq_citus'::regrole and deptype = 'o'"
        )
        if session.execute(is_used).fetchone():
            pytest.skip(
                "another database of this server forwards calls; to run it: this file alone"
            )
        can_log_in = "select rolcanlogin from pg_roles where rolname = 'rowq_citus'"
        assert session.execute(can_log_in).fetchone() == (False,)
        try:
            session.execute("alter role rowq_citus login password 'known'")
            with refuses_and_changes_nothing(empty_cluster, "RQ803") as said:
                install(empty_cluster)
            assert "with a password" in said()
        finally:
            session.execute("alter role rowq_citus password null")
    install(empty_cluster)
    # After calls are forwarded, an administrator may set a password for calls between nodes.
    with on_last(empty_cluster) as session:
        session.execute("alter role rowq_citus password 'ours'")
        try:
            install(empty_cluster)
        finally:
            session.execute("alter role rowq_citus password null")


def test_calls_between_nodes_need_the_roles_password(empty_cluster: str) -> None:
    install(empty_cluster)
    texts = [f"select rowq.create_queue('orders_{number}')" for number in range(9)]
    with ExitStack() as stack:
        sessions = dict(on_each(empty_cluster, stack))
        for session in sessions.values():
            session.execute(BY_ITSELF)
            session.execute("set password_encryption = 'scram-sha-256'")
            session.execute("alter role rowq_citus password 'between'")
            stack.callback(session.execute, "alter role rowq_citus password null")
            stack.enter_context(asks_for_passwords(session))
        place = on_node(empty_cluster, last(empty_cluster))
        wait_until(partial(is_asked, place), "rowq_citus is asked for its password", 10)
        why = list(calls_from_each(empty_cluster, texts))
        assert len(why) == len(sessions)
        assert all("password" in text for text in why)
        for session in sessions.values():
            session.execute(
                "insert into pg_dist_authinfo (nodeid, rolename, authinfo)"
                " values (0, 'rowq_citus', 'password=between')"
            )
        assert [one.installed for one in install(empty_cluster)] == [NEWEST] * len(sessions)
        assert list(calls_from_each(empty_cluster, texts)) == []
        assert sum(one.queues for one in cluster_status(empty_cluster)) == len(texts)


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
# Unqualified names in a body resolve here first.
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


def test_rowq_citus_can_change_only_its_own_functions(
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
    """Let all functions of rowq_citus run as their caller, with a trap first in their path."""
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
    """Call a routine and return its error text.

    It runs as rowq_owner, which cannot log in on other nodes.
    """
    try:
        session.execute(f"select * from rowq.{call}")
    except psycopg.Error as error:
        return str(error)
    return ""


def test_functions_of_rowq_citus_ignore_search_path(empty_cluster: str) -> None:
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


def test_superusers_status_runs_no_code_of_the_owner(empty_cluster: str) -> None:
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


KINDS = ("name", "oid", "integer", "bigint", "text", "pg_catalog.noderole")
OPERATORS = ("=", "<>", "<", ">", "||")


def set_traps(session: Connection) -> None:
    """Put failing operators and functions before those of PostgreSQL."""
    session.execute("set search_path = pg_catalog")
    session.execute("set citus.enable_ddl_propagation to off")
    session.execute("create schema trap")
    for kind in KINDS:
        session.execute(
            f"create function trap.spring({kind}, {kind}) returns boolean language plpgsql"
            " as $$ begin raise exception 'trapped'; end $$"
        )
        for operator in OPERATORS:
            session.execute(
                f"create operator trap.{operator} (function = trap.spring,"
                f" leftarg = {kind}, rightarg = {kind})"
            )
    for name in ("to_regclass(text)", "current_setting(text, boolean)", "format(text, text, text)"):
        session.execute(
            f"create function trap.{name} returns text language plpgsql"
            " as $$ begin raise exception 'trapped'; end $$"
        )
    (name,) = session.execute("select current_database()").fetchone()
    session.execute(f'alter database "{name}" set search_path = trap, pg_catalog, public')


@pytest.fixture
def trapped(empty_cluster: str) -> tuple[str, tuple[Node, ...]]:
    """Return the URL and nodes of a cluster with traps in its databases' paths."""
    install(empty_cluster)
    nodes = nodes_of(empty_cluster)
    for node in nodes:
        with psycopg.connect(on_node(empty_cluster, node), autocommit=True) as session:
            set_traps(session)
    return empty_cluster, nodes


def test_commands_run_no_planted_operator(trapped: tuple[str, tuple[Node, ...]]) -> None:
    url, nodes = trapped
    with psycopg.connect(url, autocommit=True) as session:
        for text in ("select 1 = 1", "select 'a'::text || 'b'::text"):
            with pytest.raises(psycopg.Error, match="trapped"):
                session.execute(text)
    assert {one.problems for one in cluster_status(url)} == {()}
    for node in nodes:
        with session_on(node) as session:
            assert session.execute("select 1 = 1").fetchone() == (True,)
        checks = list(examine(on_node(url, node)))
        assert [check for check in checks if "trapped" in check.detail] == []
    assert [node.applied for node in install(url)] == [()] * len(nodes)
