"""Installing on a cluster: what is refused before any node is changed, and what comes back."""

import re
from contextlib import ExitStack

import psycopg
import pytest

from rowq.tools import migrate
from rowq.tools.engines.postgres.citus.install import begun, install, remove, upgrade
from rowq.tools.engines.postgres.citus.nodes import nodes_of
from rowq.tools.engines.postgres.citus.status import cluster_status
from rowq.tools.migrate.errors import MigrationError
from tests.engine_only.postgres.citus.helpers import (
    last,
    move,
    on_each,
    on_last,
    place_of,
    refuses_and_changes_nothing,
)
from tests.engines.postgres.citus import Cluster, address, on_node
from tests.helpers.calls import call_one

CARRIERS = "select count(*) from pg_proc where pronamespace = 'rowq_citus'::regnamespace"
FOREIGN = (
    "create schema {schema}",
    "create schema {schema} authorization rowq_owner;"
    "create function {schema}.{name}(text) returns text security definer"
    " language sql as 'select current_user'",
    "create schema {schema} authorization rowq_owner; create table {schema}.mine (id integer)",
)


@pytest.mark.parametrize("schema", ["rowq_citus", "rowq_node"])
def test_a_schema_that_was_there_is_left_alone(empty_cluster: str, schema: str) -> None:
    name = "peek" if schema == "rowq_node" else "at_peek_1"
    migrate.migrate(on_node(empty_cluster, last(empty_cluster)))
    with on_last(empty_cluster) as session:
        for what in FOREIGN:
            session.execute(what.format(schema=schema, name=name))
            with refuses_and_changes_nothing(empty_cluster, "RQ802") as said:
                install(empty_cluster)
            assert last(empty_cluster).name in said()
            assert schema in said()
            session.execute(f"drop schema {schema} cascade")


def test_a_function_in_our_schemas_is_not_taken_over(empty_cluster: str) -> None:
    install(empty_cluster)
    with on_last(empty_cluster) as session:
        for schema, name in (("rowq_node", "planted"), ("rowq_citus", "at_peek_1")):
            made = f"{schema}.{name}(integer)"
            session.execute(f"create function {made} returns text language sql as 'select 1::text'")
            for act in (upgrade, remove):
                with refuses_and_changes_nothing(empty_cluster, "RQ802") as said:
                    act(empty_cluster)
                assert name in said()
            session.execute(f"drop function {made}")
    assert upgrade(empty_cluster)


def test_a_view_that_would_ask_one_node_is_refused(empty_cluster: str) -> None:
    node = last(empty_cluster)
    migrate.migrate(on_node(empty_cluster, node))
    with on_last(empty_cluster) as session:
        made = "create view public.seen as select * from rowq.queue_stats()"
        session.execute(made)
        with refuses_and_changes_nothing(empty_cluster, "RQ808") as said:
            install(empty_cluster)
        assert "view public.seen" in said()
        assert node.name in said()
        session.execute("drop view public.seen")
        install(empty_cluster)
        session.execute(made)
        session.execute("select rowq.create_queue('orders')")
        assert install(empty_cluster)
        assert session.execute("select queue_name from public.seen").fetchall() == [("orders",)]
        with refuses_and_changes_nothing(empty_cluster, "RQ808") as said:
            remove(empty_cluster)
        assert "view public.seen" in said()
        session.execute("drop view public.seen")
    remove(empty_cluster)


def test_a_node_that_would_refuse_is_found_before_any_is_changed(empty_cluster: str) -> None:
    with on_last(empty_cluster) as session:
        migrate.migrate(on_node(empty_cluster, last(empty_cluster)))
        session.execute(
            "insert into rowq.migration (migration_hash, migration_id, applied_at_utc)"
            " values ('x', 'pg-0099-later', clock_timestamp())"
        )
        with refuses_and_changes_nothing(empty_cluster, "RQ804") as said:
            install(empty_cluster)
        assert last(empty_cluster).name in said()
        session.execute("delete from rowq.migration where migration_id = 'pg-0099-later'")
        session.execute("drop function rowq.list_topics(text)")
        with refuses_and_changes_nothing(empty_cluster, "RQ809") as said:
            install(empty_cluster)
        assert "list_topics is missing" in said()


def test_a_queue_at_the_wrong_place_is_found_before_any_node_is_changed(empty_cluster: str) -> None:
    node = last(empty_cluster)
    migrate.migrate(on_node(empty_cluster, node))
    with on_last(empty_cluster) as session:
        names = [f"orders_{number}" for number in range(20)]
        for name in names:
            session.execute("select rowq.create_queue(%s)", [name])
        with refuses_and_changes_nothing(empty_cluster, "RQ809") as said:
            install(empty_cluster)
        assert f"is on {node.name}" in said()
        # What is refused now is what would be so: those that are left are found afterwards.
        while lost := re.search(r"queue (\w+) is on", refusal_of(empty_cluster)):
            session.execute("select rowq.drop_queue(%s)", [lost[1]])
    install(empty_cluster)
    assert all(not one.problems for one in cluster_status(empty_cluster))
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        kept = session.execute("select queue_name from rowq.queue_stats()").fetchall()
        assert 0 < len(kept) < len(names)
        assert {place_of(session, name) for (name,) in kept} == {node.name}


def refusal_of(url: str) -> str:
    """Return why an installation is refused; empty where it is not."""
    try:
        begun(url)
    except MigrationError as refusal:
        return str(refusal)
    return ""


def test_after_a_removal_and_an_installation_queues_are_where_they_were(
    empty_cluster: str,
) -> None:
    install(empty_cluster)
    names = [f"orders_{number}" for number in range(12)]
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        for name in names:
            session.execute("select rowq.create_queue(%s)", [name])
            session.execute("select rowq.enqueue(%s, 'x')", [name])
        workers = [node for node in nodes_of(empty_cluster) if not node.is_coordinator]
        places = {name: place_of(session, name) for name in names}
        assert len(set(places.values())) == len(workers)
        remove(empty_cluster)
        for node in nodes_of(empty_cluster):
            with psycopg.connect(on_node(empty_cluster, node), autocommit=True) as alone:
                own = [name for name, place in places.items() if place == node.name]
                found = alone.execute("select queue_name from rowq.queue_stats()").fetchall()
                assert sorted(found) == sorted((name,) for name in own)
                assert migrate.status(on_node(empty_cluster, node)).drift == ()
                left = (
                    "select count(*) from pg_proc where pronamespace = 'rowq_citus'::regnamespace"
                )
                assert alone.execute(left).fetchone() == (0,)
                assert alone.execute("select to_regnamespace('rowq_node')").fetchone() == (None,)
        install(empty_cluster)
        for name in names:
            assert place_of(session, name) == places[name]
            assert call_one(session, "queue_stats", queue_name=name).ready == 1
    assert all(not one.problems for one in cluster_status(empty_cluster))


def test_a_removal_takes_nobody_s_objects_along(empty_cluster: str) -> None:
    install(empty_cluster)
    with on_last(empty_cluster) as session:
        session.execute("create view rowq_node.mine as select 1 as one")
        with refuses_and_changes_nothing(empty_cluster, "RQ802") as said:
            remove(empty_cluster)
        assert "view rowq_node.mine" in said()
        session.execute("drop view rowq_node.mine")
    remove(empty_cluster)


def test_a_node_that_was_added_answers_as_the_others(citus: Cluster) -> None:
    url = citus.fresh_database(but=1)
    try:
        install(url)
        added = citus.nodes[-1]
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("select rowq.create_queue('orders')")
            session.execute("select citus_add_node(%s, %s)", address(added))
            install(url)
            assert all(not one.problems for one in cluster_status(url))
            moved = session.execute(
                "select p.shardid, n.nodename, n.nodeport from pg_dist_placement p"
                " join pg_dist_shard s using (shardid) join pg_dist_node n using (groupid)"
                " where s.logicalrelid = 'rowq_citus.route'::regclass and p.shardid <>"
                " get_shard_id_for_distribution_column('rowq_citus.route', 'orders'::text)"
                " order by 1"
            ).fetchall()[::2]
            for shard, node_host, node_port in moved:
                move(session, shard, (node_host, node_port), address(added))
            install(url)
            for number in range(100):
                name = f"q{number}"
                if place_of(session, name) == added.name:
                    break
            session.execute("select rowq.create_queue(%s)", [name])
        with ExitStack() as stack:
            for node, own in on_each(url, stack):
                assert call_one(own, "enqueue", queue_name=name, body="x").outcome == "enqueued"
                found = own.execute("select queue_name from rowq.queue_stats()").fetchall()
                assert found == [("orders",), (name,)], node.name
        assert all(not one.problems for one in cluster_status(url))
    finally:
        citus.drop_database(url)


def test_one_command_at_a_time_changes_a_cluster(empty_cluster: str) -> None:
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute("select pg_advisory_lock(hashtext('rowq citus'))")
        for act in (install, remove):
            with refuses_and_changes_nothing(empty_cluster, "RQ806") as said:
                act(empty_cluster)
            assert "another rowq citus" in said()
            assert f"process {session.info.backend_pid} of {session.info.user}" in said()
    install(empty_cluster)


def test_what_is_refused_on_the_way_says_how_to_go_on(empty_cluster: str) -> None:
    steps = list(begun(empty_cluster).steps())
    # As many nodes are migrated, and the last one is the last to get carriers.
    nodes = len(nodes_of(empty_cluster))
    for step in steps[: 2 * nodes - 1]:
        step()
    with on_last(empty_cluster) as session:
        session.execute("create schema rowq_citus")
        with pytest.raises(migrate.ForeignSchema) as refusal:
            steps[2 * nodes - 1]()
        assert str(refusal.value).startswith(
            f"RQ802 foreign_schema: {last(empty_cluster).name}: database "
        )
        assert str(refusal.value).endswith("To go on, run: rowq citus install")
        session.execute("drop schema rowq_citus")
    install(empty_cluster)
