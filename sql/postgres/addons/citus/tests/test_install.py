"""Installation and upgrade of a cluster: errors, recovery, effects on callers.

A clone has a next release, in which a forwarded routine has one more parameter and column; its
add-on upgrades while callers know only the old release.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest

from rowq.tools import migrate
from rowq.tools.migrate.errors import MigrationError
from sql.generate.release import release
from sql.postgres.addons.citus.install import begun, install, remove, upgrade
from sql.postgres.addons.citus.nodes import nodes_of
from sql.postgres.addons.citus.status import cluster_status
from sql.postgres.addons.citus.tests.cluster import (
    BY_ITSELF,
    Cluster,
    address,
    last,
    move,
    on_each,
    on_last,
    on_node,
    place_of,
    refuses_and_changes_nothing,
)
from tests.engines.base import Connection, wait_until
from tests.helpers.calls import call_one
from tests.helpers.next_version import edit
from tests.helpers.releases import NEWEST, begin_next
from tests.release.test_next_version import Clone

FOREIGN = (
    "create schema {schema}",
    "create schema {schema} authorization rowq_owner;"
    "create function {schema}.{name}(text) returns text security definer"
    " language sql as 'select current_user'",
    "create schema {schema} authorization rowq_owner; create table {schema}.mine (id integer)",
)


@pytest.mark.parametrize("schema", ["rowq_citus", "rowq_node"])
def test_foreign_schema_is_refused_and_kept(empty_cluster: str, schema: str) -> None:
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


def test_foreign_function_in_rowqs_schemas_is_refused(empty_cluster: str) -> None:
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


def test_view_that_would_call_one_node_is_refused(empty_cluster: str) -> None:
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


def test_refusing_node_is_found_before_any_change(empty_cluster: str) -> None:
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


def test_misplaced_queue_is_found_before_any_change(empty_cluster: str) -> None:
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


def test_install_after_remove_finds_the_queues(empty_cluster: str) -> None:
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


def test_remove_drops_no_foreign_object(empty_cluster: str) -> None:
    install(empty_cluster)
    with on_last(empty_cluster) as session:
        session.execute("create view rowq_node.mine as select 1 as one")
        with refuses_and_changes_nothing(empty_cluster, "RQ802") as said:
            remove(empty_cluster)
        assert "view rowq_node.mine" in said()
        session.execute("drop view rowq_node.mine")
    remove(empty_cluster)


def test_added_node_answers_like_the_others(citus: Cluster) -> None:
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


def test_concurrent_command_is_refused(empty_cluster: str) -> None:
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute("select pg_advisory_lock(hashtext('rowq citus'))")
        for act in (install, remove):
            with refuses_and_changes_nothing(empty_cluster, "RQ806") as said:
                act(empty_cluster)
            assert "another command" in said()
            assert f"process {session.info.backend_pid} of {session.info.user}" in said()
    install(empty_cluster)


def test_error_between_steps_names_the_remedy(empty_cluster: str) -> None:
    steps = list(begun(empty_cluster).steps())
    # All nodes are migrated; the last one gets its forwarders last.
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
        assert str(refusal.value).endswith("To continue, run install again")
        session.execute("drop schema rowq_citus")
    install(empty_cluster)


PYTHON = str(Path(sys.prefix) / "bin" / "python")
ADDON = (PYTHON, "-m", "sql.postgres.addons.citus")
QUEUES = 6
STOPPED = """
import os, sys
from itertools import islice
from sql.postgres.addons.citus.install import begun
for step in islice(begun(sys.argv[1]).steps(), int(sys.argv[2])):
    step()
os._exit(9)
"""
STEPS = """
import sys
from sql.postgres.addons.citus.install import begun
print(len(list(begun(sys.argv[1]).steps())))
"""
LEFT = """
    select p.proname
    from pg_proc p
    where p.pronamespace = 'rowq_citus'::regnamespace
      and p.proname ~ '_[0-9]+$'
      and p.proname !~ %s
    """
SIGNATURES = """
    select n.nspname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid)
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    where p.proname = 'list_topics'
    """


@pytest.fixture(scope="session")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    """Return a clone with a next release: list_topics limits and numbers its rows."""
    clone = Clone(tmp_path_factory.mktemp("next"))
    migrations = clone.root / "migrations" / "postgres"
    release(migrations)
    drop = "drop function if exists rowq.list_topics(text);"
    begin_next(migrations, "wider", statement=(drop, "select 1;"))
    edit(
        clone.root / "sql" / "contract.toml",
        'parameters = [{ name = "queue_name", default = "null" }]\n'
        'columns = ["queue_name", "topic_pattern"]\n',
        'parameters = [{ name = "queue_name", default = "null" },'
        ' { name = "max_count", default = "100" }]\n'
        'columns = ["queue_name", "position", "topic_pattern"]\n',
    )
    routine = clone.root / "sql" / "postgres" / "routines" / "list_topics.sql"
    edit(
        routine,
        "(p_queue_name text default null)\nreturns table (queue_name text, topic_pattern text)",
        "(\n    p_queue_name text default null,\n    p_max_count  integer default 100\n)\n"
        'returns table (queue_name text, "position" integer, topic_pattern text)',
    )
    edit(
        routine,
        "select q.queue_name, b.topic_pattern\n",
        "select q.queue_name, 1, b.topic_pattern\n",
    )
    edit(
        routine,
        '"C", b.topic_pattern collate "C";',
        '"C", b.topic_pattern collate "C"\n    limit p_max_count;',
    )
    clone.generate()
    return clone


def calls(name: str) -> Iterator[str]:
    """Yield calls of both releases, for one queue and for all."""
    yield f"select rowq.enqueue('{name}', 'x')"
    yield (
        f"select rowq.complete('{name}', d.claim_id)"
        f" from (select distinct claim_id from rowq.dequeue_fast('{name}', 2)) d"
    )
    yield f"select queue_name, topic_pattern from rowq.list_topics('{name}')"
    yield "select queue_name, topic_pattern from rowq.list_topics()"
    yield "select rowq.publish('t', 'x')"
    yield f"select ready from rowq.queue_stats('{name}')"
    yield f"select rowq.peek('{name}', 1)"
    yield "select rowq.health()"


def work(url: str, until: Event, failed: list[str], done: Counter[str]) -> None:
    """Repeat all calls and record failures."""
    with psycopg.connect(url, autocommit=True) as session:
        for number in count():
            for text in calls(f"orders_{number % QUEUES}"):
                if until.is_set():
                    return
                try:
                    session.execute(text)
                except psycopg.Error as error:
                    failed.append(f"{url}: {text}: {error}")
                done[url] += 1


def prepare(url: str) -> None:
    """Install the current release, with queues on several nodes."""
    install(url)
    with psycopg.connect(url, autocommit=True) as session:
        for number in range(QUEUES):
            session.execute("select rowq.create_queue(%s)", [f"orders_{number}"])
            session.execute("select rowq.bind_topic(%s, 't')", [f"orders_{number}"])
        assert len({place_of(session, f"orders_{number}") for number in range(QUEUES)}) > 1


def nothing_old_is_left(url: str, clone: Clone) -> None:
    """Check that each node has only the next release."""
    with ExitStack() as stack:
        for node, session in on_each(url, stack):
            assert session.execute(LEFT, [f"_{NEWEST + 1}$"]).fetchall() == [], node.name
            assert set(session.execute(SIGNATURES).fetchall()) == {
                (
                    schema,
                    "p_queue_name text, p_max_count integer",
                    'TABLE(queue_name text, "position" integer, topic_pattern text)',
                )
                for schema in ("rowq", "rowq_node")
            }
            rows = session.execute("select * from rowq.list_topics(p_max_count => 2)").fetchall()
            assert {row[1] for row in rows} == {1}
            for text in calls("orders_0"):
                session.execute(text)
    clone.does(*ADDON, "status", "--url", url)


@pytest.mark.timeout(900)
def test_upgrade_fails_no_call_of_existing_routines(
    empty_cluster: str, next_release: Clone
) -> None:
    prepare(empty_cluster)
    urls = [on_node(empty_cluster, node) for node in nodes_of(empty_cluster)]
    until, failed, done = Event(), list[str](), Counter[str]()
    threads = [Thread(target=work, args=(url, until, failed, done)) for url in urls]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: min(done[url] for url in urls) > 20, "calls are made", 60)
        said = next_release.does(*ADDON, "upgrade", "--url", empty_cluster)
        assert said.count("installed migration") == len(urls)
        after = done.copy()
        wait_until(lambda: min(done[u] - after[u] for u in urls) > 20, "calls are made", 60)
    finally:
        until.set()
        for thread in threads:
            thread.join()
    assert failed == []
    nothing_old_is_left(empty_cluster, next_release)


@pytest.mark.timeout(900)
def test_upgrade_continues_after_a_stop_at_any_step(
    empty_cluster: str, next_release: Clone
) -> None:
    prepare(empty_cluster)
    with ExitStack() as stack:
        sessions: list[Connection] = [one for _, one in on_each(empty_cluster, stack)]
        view = "create view public.seen as select * from rowq.{}()"
        sessions[-1].execute(BY_ITSELF)
        sessions[-1].execute(view.format("list_topics"))
        refused = next_release.run(*ADDON, "upgrade", "--url", empty_cluster)
        assert "RQ808" in refused.stderr
        assert "view public.seen uses list_topics" in refused.stderr
        sessions[-1].execute("drop view public.seen")
        sessions[-1].execute(view.format("queue_stats"))

        steps = int(next_release.does(PYTHON, "-c", STEPS, empty_cluster))
        assert steps > 3 * len(sessions)
        for number in range(1, steps):
            done = next_release.run(PYTHON, "-c", STOPPED, empty_cluster, str(number))
            assert done.returncode == 9, done.stderr
            for session in sessions:
                for text in calls(f"orders_{number % QUEUES}"):
                    session.execute(text)
        next_release.does(*ADDON, "upgrade", "--url", empty_cluster)
        nothing_old_is_left(empty_cluster, next_release)
        seen = sessions[-1].execute("select count(*) from public.seen").fetchone()
        assert seen == (QUEUES,)
