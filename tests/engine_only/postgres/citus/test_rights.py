"""Who may do what on the nodes of a cluster: what the contract says, and nothing else."""

from contextlib import ExitStack

import pytest

from rowq.postgres.citus.install import install
from rowq.postgres.citus.nodes import Node
from rowq.postgres.citus.scripts import carriers
from sql.generate.citus import every
from tests.engine_only.postgres.citus.conftest import Open
from tests.engine_only.postgres.citus.helpers import BY_ITSELF, on_each
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


def carried() -> list[str]:
    """Return the names of all routines that are carried."""
    return [one.routine.name for one in every() if not one.why_here]


def test_roles_may_call_what_the_contract_says_on_every_node(
    nodes: tuple[Node, ...], open_node: Open
) -> None:
    contract = routines_of("postgres")
    due = {
        (f"rowq_{role}", name)
        for name in carried()
        for role in (*contract[name]["roles"], "admin")
        if f"rowq_{role}" in CALLERS
    }
    for node in nodes:
        session = open_node(node)
        found = session.execute(ON_WRAPPERS, [[*CALLERS, "public"], carried()]).fetchall()
        assert set(found) == due, node.name


def test_nobody_but_our_roles_may_use_what_is_behind_the_wrappers(
    nodes: tuple[Node, ...], open_node: Open
) -> None:
    for node in nodes:
        session = open_node(node)
        owners = session.execute(OWNERS).fetchall()
        definers = {name for schema, name, _, is_definer in owners if is_definer}
        assert {name: owner for schema, name, owner, _ in owners if schema == "rowq_citus"} == {
            name: "rowq_citus" if name in definers else "rowq_owner" for name in carriers()
        }
        assert {owner for schema, _, owner, _ in owners if schema == "rowq_node"} == {"rowq_owner"}
        assert {name for schema, name, _, _ in owners if schema == "rowq_node"} == set(carried())
        given = set(session.execute(IN_OUR_SCHEMAS, {"more": "rowq_citus"}).fetchall())
        assert given == {
            *(
                ("rowq_owner" if name in definers else "rowq_citus", "function", name, "EXECUTE")
                for name in carriers()
            ),
            ("rowq_citus", "schema", "rowq_citus", "USAGE"),
            ("rowq_citus", "schema", "rowq_node", "USAGE"),
            ("rowq_citus", "table", "route", "SELECT"),
            ("rowq_owner", "table", "route", "SELECT"),
        }, node.name


def test_default_privileges_give_nobody_a_right(empty_cluster: str) -> None:
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
def test_what_somebody_was_given_is_taken_back(empty_cluster: str, schema: str) -> None:
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
