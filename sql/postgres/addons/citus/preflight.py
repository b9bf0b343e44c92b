"""Checks of all nodes before any is changed."""

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
from sql.postgres.addons.citus.nodes import Node, forwards, misplaced_as_seen, queues_on, session_on
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
    """The state of a node before a change.

    Attributes:
        installed: its newest migration's number, or 0.
        forwards: whether it forwards calls to others.
    """

    installed: int
    forwards: bool


@contextmanager
def named(node: Node, then: str = "") -> Iterator[None]:
    """Add the node's name, and what to do next, to errors of a block."""
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
    """Check all nodes before an installation or upgrade; return their states.

    Args:
        nodes: the coordinator first.

    Raises:
        MigrationError: a node would refuse, or calls would not reach its queues.
        CannotConnect: a node cannot be reached.
    """
    found = {}
    for node in nodes:
        with named(node):
            found[node.name] = _before_install(node)
    _refuse_misplaced(nodes, found)
    return found


def before_removal(nodes: tuple[Node, ...]) -> None:
    """Check all nodes before forwarding is removed.

    Raises:
        MigrationError: a node would refuse.
        CannotConnect: a node cannot be reached.
    """
    for node in nodes:
        with named(node), session_on(node) as connection:
            _check(connection)
            for _, _, _, names in _dependents(connection):
                raise SchemaInUse(
                    f"{SchemaInUse.number} schema_in_use: {names} would call this node only",
                    "Drop it, and create it again afterwards.",
                )


def _before_install(node: Node) -> Found:
    found = node_status(node.url)
    if found.newer:
        raise SchemaNewer(
            f"{SchemaNewer.number} schema_newer: migration {found.newer[-1]} is unknown to this"
            " rowq",
            "Use the rowq that installed it, or a newer one.",
        )
    missing = [drift.routine for drift in found.drift if drift.problem == "missing"]
    if missing and not found.pending:
        raise RoutedDatabase(
            f"{RoutedDatabase.number} routed_database: {', '.join(missing)} is missing",
            "The add-on's status lists all differences.",
        )
    with session_on(node) as connection:
        _check(connection)
        for name, parameters, columns, names in _dependents(connection):
            if signatures()[name] != (parameters, columns):
                raise SchemaInUse(
                    f"{SchemaInUse.number} schema_in_use: {names} uses {name}, whose parameters"
                    " or columns change",
                    "Drop it, and create it again afterwards.",
                )
        return Found(found.installed, forwards(connection))


def _check(connection: Any) -> None:
    with connection.transaction(), refusals(psycopg.Error, refusal):
        connection.execute(script("check.sql"))


def _dependents(connection: Any) -> list[tuple[str, str, str, str]]:
    """Return wrappers with dependents: name, parameters, columns, names of the dependents."""
    rows = connection.execute(_DEPENDENTS, [list(signatures())]).fetchall()
    return [(name, parameters, columns, names) for name, parameters, columns, names in rows]


def _refuse_misplaced(nodes: tuple[Node, ...], found: dict[str, Found]) -> None:
    """Refuse to forward calls away from queues created before forwarding."""
    new = [node for node in nodes if found[node.name].installed and not found[node.name].forwards]
    if not any(queues_on(node) for node in new):
        return
    with session_on(nodes[0]) as connection:
        connection.execute("begin")
        if not connection.execute(_HAS_ROUTE).fetchone()[0]:
            # Citus places the same shards on the same nodes each time.
            connection.execute(_SCHEMA)
            connection.execute(script("distribute.sql"))
        lost = {node.name: misplaced_as_seen(connection, nodes, node) for node in new}
        connection.execute("rollback")
    for node in new:
        for name, place in lost[node.name].items():
            raise RoutedDatabase(
                f"{RoutedDatabase.number} routed_database: queue {name} is on {node.name}, and"
                f" calls would go to {place}",
                "Drain and drop it, and create it again afterwards;"
                f" there are {len(lost[node.name])} such queues.",
            )
