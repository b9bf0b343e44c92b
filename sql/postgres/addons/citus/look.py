"""What is refused before a node of a cluster is changed; looking changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from rowq.errors import CannotConnect
from rowq.tools.engines.postgres.status import refusal
from rowq.tools.migrate.errors import (
    MigrationError,
    RoutedDatabase,
    SchemaInUse,
    SchemaNewer,
    refusals,
)
from sql.postgres.addons.citus.build import script, signatures
from sql.postgres.addons.citus.nodes import (
    Node,
    carries,
    misplaced_as_seen,
    queues_on,
    session_on,
)
from sql.postgres.addons.citus.status import node_status

_HAS_ROUTE = "select pg_catalog.to_regclass('rowq_citus.route') is not null"
_SCHEMA = """
    set local citus.enable_ddl_propagation = on;
    create schema if not exists rowq_citus;
"""
_DEPENDENTS = r"""
    select
        p.proname,
        pg_get_function_identity_arguments(p.oid),
        pg_get_function_result(p.oid),
        string_agg(distinct pg_describe_object(
            case when w.oid is null then d.classid else 'pg_class'::regclass end,
            coalesce(w.ev_class, d.objid), 0), ', ')
    from pg_proc p
    join pg_depend d on d.refclassid = 'pg_proc'::regclass and d.refobjid = p.oid
    left join pg_rewrite w on d.classid = 'pg_rewrite'::regclass and w.oid = d.objid
    where p.pronamespace = to_regnamespace('rowq')
      and p.prosrc ~ format('rowq_citus\.(to|each)_%%s_[0-9]+\(', p.proname)
      and p.proname = any (%s)
    group by p.oid
    order by p.proname
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What a node is like before it is changed.

    Attributes:
        installed: number of its newest migration, 0 for none.
        carries: whether it carries calls to others.
    """

    installed: int
    carries: bool


@contextmanager
def named(node: Node, then: str = "") -> Iterator[None]:
    """Let refusals in a block say which node they are about, and what to do then."""
    try:
        yield
    except MigrationError as error:
        first, *remedy = str(error).splitlines()
        if node.name not in first:
            number, _, rest = first.partition(": ")
            first = f"{number}: {node.name}: {rest}"
        raise type(error)(first, "\n".join([*remedy, *filter(None, [then])]) or None) from error
    except CannotConnect as error:
        raise CannotConnect("\n".join(filter(None, [f"{node.name}: {error}", then]))) from error


def before_install(nodes: tuple[Node, ...]) -> dict[str, Found]:
    """Look at all nodes before rowq is installed or upgraded on them; return what each is like.

    Args:
        nodes: the coordinator first.

    Raises:
        MigrationError: a node would refuse, or its queues would not be reached.
        CannotConnect: a node could not be reached.
    """
    found = {}
    for node in nodes:
        with named(node):
            found[node.name] = _before_install(node)
    _refuse_misplaced(nodes, found)
    return found


def before_removal(nodes: tuple[Node, ...]) -> None:
    """Look at all nodes before each answers for itself again.

    Raises:
        MigrationError: a node would refuse.
        CannotConnect: a node could not be reached.
    """
    for node in nodes:
        with named(node), session_on(node) as connection:
            _check(connection)
            for _, _, _, names in _dependents(connection):
                raise SchemaInUse(
                    f"{SchemaInUse.number} schema_in_use: {names} would ask this node alone",
                    "Drop it, and create it again afterwards.",
                )


def _before_install(node: Node) -> Found:
    found = node_status(node.url)
    if found.newer:
        raise SchemaNewer(
            f"{SchemaNewer.number} schema_newer: it has migration {found.newer[-1]}, which this"
            " rowq does not know",
            "Use the rowq that installed it, or a newer one.",
        )
    missing = [drift.routine for drift in found.drift if drift.problem == "missing"]
    if missing and not found.pending:
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: {', '.join(missing)} is missing",
            "The add-on's status shows what else is not as it was installed.",
        )
    with session_on(node) as connection:
        _check(connection)
        for name, parameters, columns, names in _dependents(connection):
            if signatures()[name] != (parameters, columns):
                raise SchemaInUse(
                    f"{SchemaInUse.number} schema_in_use: {names} uses {name}, which gets other"
                    " parameters or columns",
                    "Drop it, and create it again afterwards.",
                )
        return Found(found.installed, carries(connection))


def _check(connection: Any) -> None:
    with connection.transaction(), refusals(psycopg.Error, refusal):
        connection.execute(script("check.sql"))


def _dependents(connection: Any) -> list[tuple[str, str, str, str]]:
    """Return what depends on wrappers: name, parameters and columns of these, and its names."""
    rows = connection.execute(_DEPENDENTS, [list(signatures())]).fetchall()
    return [(name, parameters, columns, names) for name, parameters, columns, names in rows]


def _refuse_misplaced(nodes: tuple[Node, ...], found: dict[str, Found]) -> None:
    """Refuse to carry calls away from queues that a node has got before calls were carried."""
    new = [node for node in nodes if found[node.name].installed and not found[node.name].carries]
    if not any(queues_on(node) for node in new):
        return
    with session_on(nodes[0]) as connection:
        connection.execute("begin")
        if not connection.execute(_HAS_ROUTE).fetchone()[0]:
            # Citus gives the same shards to the same nodes each time.
            connection.execute(_SCHEMA)
            connection.execute(script("distribute.sql"))
        lost = {node.name: misplaced_as_seen(connection, nodes, node) for node in new}
        connection.execute("rollback")
    for node in new:
        for name, place in lost[node.name].items():
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: queue {name} is on {node.name}, and"
                f" calls would go to {place}",
                "Let it drain and drop it, and create it anew afterwards;"
                f" {len(lost[node.name])} such queues are there.",
            )
