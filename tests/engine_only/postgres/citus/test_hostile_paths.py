"""What somebody has put into the search_path of a database does not run as who looks after it."""

import psycopg
import pytest

from rowq.tools.doctor import Status, examine
from rowq.tools.engines.postgres.citus.install import install
from rowq.tools.engines.postgres.citus.nodes import Node, nodes_of, session_on
from rowq.tools.engines.postgres.citus.status import cluster_status
from tests.engines.base import Connection
from tests.engines.postgres.citus import on_node

KINDS = ("name", "oid", "integer", "bigint", "text", "pg_catalog.noderole")
OPERATORS = ("=", "<>", "<", ">", "||")


def set_traps(session: Connection) -> None:
    """Put operators and functions before those of PostgreSQL, which end whatever calls them."""
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
    """Return the URL and the nodes of a cluster whose databases have traps in their path."""
    install(empty_cluster)
    nodes = nodes_of(empty_cluster)
    for node in nodes:
        with psycopg.connect(on_node(empty_cluster, node), autocommit=True) as session:
            set_traps(session)
    return empty_cluster, nodes


def test_no_trap_springs_for_who_looks_after_a_cluster(
    trapped: tuple[str, tuple[Node, ...]],
) -> None:
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
        assert [check.status for check in checks if check.check_name == "nodes"] == [Status.OK]
    assert [node.applied for node in install(url)] == [()] * len(nodes)
