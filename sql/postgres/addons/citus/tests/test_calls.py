"""Queues on a Citus cluster: the queue's node answers on every connection."""

from contextlib import nullcontext, suppress
from pathlib import Path

import psycopg
import pytest

import rowq
from rowq.tools import migrate
from sql.postgres.addons.citus.install import install, remove, upgrade
from sql.postgres.addons.citus.nodes import Node, nodes_of
from sql.postgres.addons.citus.status import cluster_status
from sql.postgres.addons.citus.tests.cluster import Cluster, on_node
from sql.postgres.addons.citus.tests.conftest import Open
from tests.engines.base import TO_RUN, Connection, wait_until
from tests.helpers.calls import call, call_one, refused
from tests.helpers.queues import new_queue
from tests.helpers.releases import change_everything, copied_without_history, use_released

FORMS = {
    "a list": "select rowq.enqueue('{0}', 'x')",
    "a table": "select * from rowq.enqueue('{0}', 'x')",
    "a scalar subquery": "select (select outcome from rowq.enqueue('{0}', 'x'))",
    "a with clause": "with w as (select * from rowq.enqueue('{0}', 'x')) select * from w",
    "a lateral join": "select r.outcome from (values ('{0}')) v (q), rowq.enqueue(v.q, 'x') r",
    "an insert": "insert into pg_temp.mine select message_id from rowq.enqueue('{0}', 'x')",
    "a perform": "do $$ begin perform rowq.enqueue('{0}', 'x'); end $$",
    "an assignment": "do $$ declare v record; begin v := rowq.enqueue('{0}', 'x'); end $$",
    "a subtransaction": (
        "do $$ begin begin perform rowq.enqueue('{0}', 'x'); raise 'no';"
        " exception when others then perform rowq.enqueue('{0}', 'x'); end; end $$"
    ),
    "a function of the caller's": "select pg_temp.send('{0}')",
    "a trigger": "insert into pg_temp.told values ('{0}')",
    "an execute": "do $$ begin execute 'select rowq.enqueue($1, ''x'')' using '{0}'::text; end $$",
}
MADE = """
    create temp table mine (message_id bigint);
    create temp table told (queue_name text);
    create function pg_temp.send(p_name text) returns text language sql
    as $$ select outcome from rowq.enqueue(p_name, 'x') $$;
    create function pg_temp.tell() returns trigger language plpgsql
    as $$ begin perform rowq.enqueue(new.queue_name, 'x'); return new; end $$;
    create trigger tell after insert on told for each row execute function pg_temp.tell();
    """


@pytest.mark.parametrize("is_together", [False, True], ids=["alone", "in a transaction"])
def test_every_form_of_call_reaches_the_queues_node(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str], is_together: bool
) -> None:
    sent = dict.fromkeys(pair.values(), 0)
    for node in nodes:
        session = open_node(node)
        session.execute("set citus.enable_ddl_propagation to off")
        session.execute(MADE)
        # A generic plan has no value to forward a call by.
        session.execute("prepare kept (text) as select * from rowq.enqueue($1, 'x')")
        for name in pair.values():
            for text in FORMS.values():
                with session.transaction() if is_together else nullcontext():
                    session.execute(text.format(name))
                sent[name] += 1
            for _ in range(8):
                session.execute(f"execute kept ('{name}')")
                sent[name] += 1
    for place, name in pair.items():
        node = next(node for node in nodes if node.name == place)
        session = open_node(node)
        session.execute("set rowq.here = 'on'")
        assert call_one(session, "queue_stats", queue_name=name).ready == sent[name]


FORWARDED = """
    select
        o.proname, o.oid::regprocedure::text,
        pg_get_function_arguments(o.oid) = pg_get_function_arguments(w.oid),
        pg_get_function_result(o.oid) = pg_get_function_result(w.oid),
        o.proowner = w.proowner and o.prosecdef and w.prosecdef,
        obj_description(o.oid) = obj_description(w.oid),
        array(select a::text from unnest(o.proacl) a where a::text !~ '^rowq_citus' order by 1)
        = array(select a::text from unnest(w.proacl) a where a::text !~ '^rowq_citus' order by 1)
    from pg_proc o
    join pg_proc w on w.proname = o.proname and w.proargtypes = o.proargtypes
    where o.pronamespace = 'rowq_node'::regnamespace
      and w.pronamespace = 'rowq'::regnamespace
    order by 1
    """
NULL_NAMES = """
    select format('select * from rowq.%s(null%s)', p.proname, repeat(', null', p.pronargs - 1))
    from pg_proc p
    where p.pronamespace = 'rowq_node'::regnamespace
      and p.proargnames[1] = 'p_queue_name'
      and p.pronargs > p.pronargdefaults
    order by 1
    """


def started_at(connection: Connection) -> object:
    """Return the server's start time, which a crash changes."""
    return connection.execute("select pg_postmaster_start_time()").fetchone()


def test_wrapper_equals_its_routine_on_every_node(nodes: tuple[Node, ...], open_node: Open) -> None:
    for node in nodes:
        rows = open_node(node).execute(FORWARDED).fetchall()
        assert len(rows) > 40
        assert [row for row in rows if not all(row[2:])] == [], node.name


def test_null_name_is_refused_without_a_crash(nodes: tuple[Node, ...], open_node: Open) -> None:
    for node in nodes:
        session = open_node(node)
        before = started_at(session)
        calls = [text for (text,) in session.execute(NULL_NAMES)]
        assert len(calls) > 30
        for text in calls:
            with pytest.raises(psycopg.Error) as refusal:
                session.execute(text)
            assert refusal.value.sqlstate == "RQ711", text
        assert started_at(session) == before


def test_ids_of_a_queue_come_from_one_node(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str]
) -> None:
    for name in pair.values():
        sessions = [open_node(node) for node in nodes]
        ids = [
            call_one(session, "enqueue", queue_name=name, body="x").message_id
            for session in sessions * 3
        ]
        assert ids == list(range(ids[0], ids[0] + len(ids)))
        for session in sessions:
            got = call(session, "dequeue_fast", queue_name=name, batch_size=3)
            assert [row.message_id for row in got] == ids[:3]
            assert len(call(session, "complete", queue_name=name, claim_id=got[0].claim_id)) == 3
            ids = ids[3:]


@pytest.mark.parametrize("is_kept", [True, False])
def test_transaction_over_two_nodes_is_atomic(
    connection: Connection, pair: dict[str, str], is_kept: bool
) -> None:
    with suppress(psycopg.Rollback), connection.transaction():
        for name in pair.values():
            call_one(connection, "enqueue", queue_name=name, body="x")
        if not is_kept:
            raise psycopg.Rollback
    ready = [call_one(connection, "queue_stats", queue_name=name).ready for name in pair.values()]
    assert ready == [int(is_kept)] * 2


def test_topic_reaches_queues_on_every_node(
    connection: Connection, nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str]
) -> None:
    names = sorted(pair.values())
    for name in names:
        call_one(connection, "bind_topic", queue_name=name, topic_pattern=f"t.{names[0]}")
    for node in nodes:
        session = open_node(node)
        done = call(session, "publish", topic=f"t.{names[0]}", body="x")
        assert [row.queue_name for row in done] == names
        batch = [{"topic": f"t.{names[0]}", "body": "x"}] * 2
        done = call(session, "publish_batch", messages=batch)
        assert [(row.queue_name, row.position) for row in done] == [
            (name, place) for name in names for place in (1, 2)
        ]
    for name in names:
        assert call_one(connection, "queue_stats", queue_name=name).ready == 3 * len(nodes)
        call_one(connection, "unbind_topic", queue_name=name, topic_pattern=f"t.{names[0]}")


def test_call_without_a_name_calls_every_node(
    nodes: tuple[Node, ...], open_node: Open, pair: dict[str, str]
) -> None:
    for node in nodes:
        session = open_node(node)
        assert set(pair.values()) <= {row.queue_name for row in call(session, "queue_stats")}
        assert set(pair.values()) <= {row.queue_name for row in call(session, "maintain")}
        details = [row.detail for row in call(session, "health")]
        assert all(any(detail.startswith(place) for detail in details) for place in pair)
        alone = set(pair.values()) - {pair.get(node.name)}
        session.execute("set rowq.here = 'on'")
        assert not alone & {row.queue_name for row in call(session, "queue_stats")}


def test_list_claims_misses_none_between_pages(
    connection: Connection, pair: dict[str, str]
) -> None:
    for name in pair.values():
        for _ in range(4):
            call_one(connection, "enqueue", queue_name=name, body="x")
            call_one(connection, "dequeue_fast", queue_name=name)
    found: list[tuple[str, int]] = []
    after = 0
    while page := call(connection, "list_claims", after_claim_id=after, max_claims=3):
        found += [(row.queue_name, row.claim_id) for row in page]
        after = page[-1].claim_id
    mine = [one for one in found if one[0] in pair.values()]
    assert len(mine) == len(set(mine)) == 8
    refused(connection, "RQ711", "list_claims", max_claims=0)


def test_waiting_works_on_every_node(
    nodes: tuple[Node, ...], routed_url: str, pair: dict[str, str]
) -> None:
    for node in nodes:
        with rowq.connect(on_node(routed_url, node)) as queue:
            for name in pair.values():
                queue.alter_queue(name, result_seconds=60)
                sent = queue.enqueue(name, {"id": 1})
                (message,) = queue.dequeue_wait(name, wait_seconds=1)
                assert (message.message_id, message.data) == (sent.message_id, {"id": 1})
                queue.complete(name, message.claim_id, results=[{"ok": True}])
                answer = queue.wait_for_result(name, sent.message_id, wait_seconds=1)
                assert answer is not None
                assert answer.result == {"ok": True}
                assert queue.dequeue_wait(name, wait_seconds=0.1) == []
                with pytest.raises(rowq.QueueNotFound):
                    queue.wait_for_result("nowhere", 1, wait_seconds=0)


def test_callers_have_rights_on_routines_only(
    routed_url: str, nodes: tuple[Node, ...], pair: dict[str, str]
) -> None:
    name = next(iter(pair.values()))
    for node in nodes:
        with psycopg.connect(on_node(routed_url, node), autocommit=True) as session:
            session.execute("set session authorization rowq_producer")
            assert call_one(session, "enqueue", queue_name=name, body="x").outcome == "enqueued"
            for text in (
                "select * from rowq.dequeue_fast('x')",
                "select * from rowq_node.enqueue('x', 'x')",
                "select * from rowq_citus.nodes()",
                "select * from rowq_citus.route",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    session.execute(text)


def test_forwarding_role_reads_no_table(connection: Connection) -> None:
    connection.execute("set session authorization rowq_citus")
    for text in ("table rowq.queue", "table rowq.message", "create table rowq_citus.mine ()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(text)


def test_status_of_a_cluster_lists_no_problem(routed_url: str, nodes: tuple[Node, ...]) -> None:
    found = cluster_status(routed_url)
    assert [one.problems for one in found] == [()] * len(nodes)
    assert all(one.carries for one in found)


def test_status_names_a_changed_wrapper(empty_cluster: str) -> None:
    install(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute("set citus.enable_ddl_propagation to off")
        session.execute("alter function rowq.enqueue(text, text, bytea, text, jsonb, integer,"
                        " double precision, timestamptz, text, integer, text, bigint[], text,"
                        " double precision) security invoker")  # fmt: skip
    problems = cluster_status(empty_cluster)[0].problems
    assert problems == ("enqueue is changed",)


def test_migrate_of_a_single_node_is_refused(routed_url: str, nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        for act in (migrate.migrate, migrate.rollback):
            with pytest.raises(migrate.RoutedDatabase, match="RQ809"):
                act(on_node(routed_url, node))


def test_install_can_be_repeated(routed_url: str, connection: Connection, queue_name: str) -> None:
    connection.execute("select rowq.create_queue(%s)", [queue_name])
    call_one(connection, "enqueue", queue_name=queue_name, body="x")
    connection.execute("grant execute on function rowq.version() to public")
    assert [node.applied for node in install(routed_url)] == [()] * len(nodes_of(routed_url))
    assert call_one(connection, "queue_stats", queue_name=queue_name).ready == 1
    connection.execute("select rowq.drop_queue(%s, true)", [queue_name])


def test_install_refuses_an_unreachable_queue(empty_cluster: str) -> None:
    migrate.migrate(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        session.execute("select rowq.create_queue('orders')")
        with pytest.raises(migrate.RoutedDatabase, match="queue orders is on"):
            install(empty_cluster)
        session.execute("select rowq.drop_queue('orders')")
        install(empty_cluster)
        session.execute("select rowq.create_queue('orders')")
    assert sum(one.queues for one in cluster_status(empty_cluster)) == 1


def test_upgrade_keeps_messages_and_rights(
    empty_cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(migrate.RoutedDatabase, match="Run install"):
        upgrade(empty_cluster)
    migrations = use_released(copied_without_history(tmp_path, "postgres"), monkeypatch)
    install(empty_cluster)
    with psycopg.connect(empty_cluster, autocommit=True) as session:
        queue = new_queue(session, "orders")
        queue.enqueue("x")
        session.execute("create role rowq_test_citus")
        try:
            session.execute("grant execute on function rowq.peek(text, integer) to rowq_test_citus")
            change_everything(migrations)
            assert cluster_status(empty_cluster)[0].problems == ("pending: 2: run upgrade",)
            assert {node.applied for node in upgrade(empty_cluster)} == {(2,)}
            assert {one.problems for one in cluster_status(empty_cluster)} == {()}
            has = session.execute(
                "select has_function_privilege('rowq_test_citus', 'rowq.peek(text, integer)',"
                " 'execute')"
            ).fetchone()
            assert has == (True,)
            assert call_one(session, "version").schema_version == 2
            assert len(call(session, "dequeue_fast", queue_name="orders")) == 1
        finally:
            session.execute("drop owned by rowq_test_citus")
            session.execute("drop role rowq_test_citus")


def test_each_node_answers_for_itself_after_remove(empty_cluster: str) -> None:
    install(empty_cluster)
    remove(empty_cluster)
    for node in nodes_of(empty_cluster):
        url = on_node(empty_cluster, node)
        assert migrate.migrate(url).applied == ()
        assert migrate.status(url).drift == ()
        with psycopg.connect(url, autocommit=True) as session:
            new_queue(session, "here").enqueue("x")


def test_killed_node_delivers_its_messages_after_restart(
    citus: Cluster, connection: Connection, pair: dict[str, str], routed_url: str
) -> None:
    if not citus.can_break:
        pytest.skip(f"a given cluster{TO_RUN}ROWQ_TEST_CITUS_BREAK")
    place, lost = next(iter(pair.items()))
    kept = next(name for name in pair.values() if name != lost)
    for name in pair.values():
        call_one(connection, "enqueue", queue_name=name, body="x")
    node = next(one for one in citus.nodes if one.name == place)
    citus.kill(node)
    try:
        with pytest.raises(psycopg.Error):
            call(connection, "enqueue", queue_name=lost, body="x")
        assert call_one(connection, "enqueue", queue_name=kept, body="x").outcome == "enqueued"
        away = [row for row in call(connection, "health") if row.check_name == "unreachable_node"]
        assert [row.status for row in away] == ["critical"]
        assert kept in {row.queue_name for row in call(connection, "maintain")}
    finally:
        citus.start(node)

    def is_delivered() -> bool:
        with (
            suppress(psycopg.OperationalError),
            psycopg.connect(routed_url, autocommit=True) as session,
        ):
            return len(call(session, "dequeue_fast", queue_name=lost)) == 1
        return False

    wait_until(is_delivered, "the message is delivered", 30)
    assert len(call(connection, "dequeue_fast", queue_name=kept, batch_size=9)) == 2
