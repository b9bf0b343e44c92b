"""A node that is away is left out of what looks at all nodes, and told of; who it is told to."""

from collections.abc import Iterator

import psycopg
import pytest

from rowq.tools.engines.postgres.citus.nodes import Node
from rowq.tools.metrics import Collector
from tests.engine_only.postgres.citus.conftest import Open
from tests.engines.base import TO_RUN, Connection
from tests.engines.postgres.citus import Cluster
from tests.helpers.calls import call, call_one
from tests.metrics.reading import scraped

GONE = ("08006", "57P01", "57P02", "57P03", "57P04", "57P05")


@pytest.fixture
def killed(citus: Cluster, pair: dict[str, str]) -> Iterator[tuple[Node, str]]:
    """Kill a node with a queue; return it, and the queue that is left."""
    if not citus.can_break:
        pytest.skip(f"a given cluster{TO_RUN}ROWQ_TEST_CITUS_BREAK, or Docker")
    node = next(one for one in citus.nodes if one.name in pair)
    kept = next(name for place, name in pair.items() if place != node.name)
    citus.kill(node)
    try:
        yield node, kept
    finally:
        citus.start(node)


def test_metrics_of_the_other_nodes_stay(killed: tuple[Node, str], routed_url: str) -> None:
    _, kept = killed
    told = scraped(Collector(routed_url))
    assert told.value("rowq_up") == 1
    assert told.value("rowq_messages", queue=kept, state="ready") == 0
    assert told.value("rowq_claims", queue=kept) == 0
    assert told.value("rowq_health", queue="", check="unreachable_node") == 2
    assert {labels["queue"] for labels in told.named("rowq_messages")} == {kept}


def test_what_is_said_of_a_node_has_no_account(
    killed: tuple[Node, str], connection: Connection
) -> None:
    node, kept = killed
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(str(notice.message_primary)))
    for routine in ("maintain", "queue_stats", "list_claims"):
        found = {row.queue_name for row in call(connection, routine)}
        assert routine == "list_claims" or found == {kept}
    assert [text for text in said if node.name in text] == [
        f"node {node.name} is left out: SQLSTATE 08006"
    ] * 3
    (row,) = (row for row in call(connection, "health") if row.check_name == "unreachable_node")
    assert (row.status, row.detail) == (
        "critical",
        f"{node.name}: does not answer, SQLSTATE 08006",
    )
    assert not [text for text in said if "rowq_citus" in text]


@pytest.mark.parametrize("state", GONE)
def test_a_node_that_ends_or_starts_is_away(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str], state: str
) -> None:
    """The node answers with the error of a server that ends, in place of health and maintain."""
    place, lost = next(iter(pair.items()))
    kept = next(name for name in pair.values() if name != lost)
    session = open_node(nodes[0])
    node = open_node(next(node for node in nodes if node.name == place))
    node.execute("set citus.enable_ddl_propagation to off")
    (body,) = node.execute(
        "select pg_get_functiondef('rowq_citus.groups()'::regprocedure)"
    ).fetchone()
    node.execute(
        "create or replace function rowq_citus.groups() returns integer[] language plpgsql"
        f" as $$ begin raise exception 'gone' using errcode = '{state}'; end $$"
    )
    try:
        assert {row.queue_name for row in call(session, "maintain")} == {kept}
        away = [row for row in call(session, "health") if row.check_name == "unreachable_node"]
        assert [row.detail for row in away] == [f"{place}: does not answer, SQLSTATE {state}"]
        with pytest.raises(psycopg.Error):
            call(session, "publish", topic="t", body="x")
    finally:
        node.execute(body)
    assert call_one(session, "queue_stats", queue_name=lost).ready == 0
