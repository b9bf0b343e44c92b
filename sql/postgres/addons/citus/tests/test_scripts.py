"""The scripts without Citus: their names, and their calls on one server."""

import re
from pathlib import Path

import pytest

from rowq.contract import load_contract
from rowq.tools import migrate
from rowq.tools.doctor import examine
from sql.generate.markers import fresh
from sql.postgres.addons.citus.build import (
    GENERATED,
    HERE,
    README,
    every,
    forwarded,
    script,
    signatures,
    wrappers,
    write_scripts,
)
from sql.postgres.addons.citus.nodes import url_of
from sql.postgres.addons.citus.status import node_status
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import TO_RUN, Connection
from tests.helpers.calls import call, call_one, refused
from tests.static.sources import HEADER_FIELDS, code_of, header, routines_of, words

SCRIPTS = sorted(path.name for path in HERE.glob("*.sql"))
FORWARDED = [one for one in every() if not one.why_here]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_names_only_the_contracts_routines(name: str) -> None:
    text = code_of(script(name))
    named = set(re.findall(r"\browq(?:_node)?\.(\w+)", text))
    assert named - {"here", "is_behind"} <= routines_of("postgres").keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_lines_are_short(name: str) -> None:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and not line.startswith("-- ")] == []


def test_psql_scripts_are_complete_and_the_page_is_current(tmp_path: Path) -> None:
    page = README.read_text(encoding="utf-8")
    assert fresh(README, GENERATED) == page, "run: python -m sql.postgres.addons.citus build"
    for path in write_scripts(tmp_path):
        assert "{{" not in path.read_text(encoding="utf-8"), path.name


def test_each_forwarded_routine_has_a_wrapper_with_a_header() -> None:
    names = [one.routine.name for one in FORWARDED]
    assert [f"citus/{name}.sql" for name in names] == list(wrappers())
    for name in names:
        fields = header(wrappers()[f"citus/{name}.sql"])
        entry = routines_of("postgres")[name]
        assert tuple(fields) == HEADER_FIELDS
        assert words(fields["promise"]) == entry["promises"]
        assert words(fields["errors"]) == sorted({*entry["errors"], "RQ706", "RQ711"})
        assert fields["purpose"] == entry["purpose"]


def test_no_wrapper_passes_a_null_name_to_citus() -> None:
    for one in FORWARDED:
        text = code_of(wrappers()[f"citus/{one.routine.name}.sql"])
        if one.by_name:
            guard = "(?:if|elsif) p_queue_name is null (?:or .* )?then"
            assert re.search(guard, text)
            assert text.index("p_queue_name is null") < text.index(f"to_{one.routine.name}")


@pytest.mark.parametrize(
    ("name", "nodes"), [("version", {}), ("queue_stats", {}), ("enqueue", {"asked": "each"})]
)
def test_routine_without_a_decision_in_nodes_toml_is_refused(
    name: str, nodes: dict[str, str]
) -> None:
    routine = load_contract().of("postgres")[name]
    with pytest.raises(ValueError, match=name):
        forwarded(routine, nodes)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("postgresql://u:p%40@h:1/d?sslmode=require", "postgresql://u:p%40@w:5/d?sslmode=require"),
        ("postgresql:///d?host=/run&user=u", "postgresql://w:5/d?user=u"),
        ("postgresql://h", "postgresql://w:5"),
    ],
)
def test_url_of_another_node_keeps_user_and_options(url: str, other: str) -> None:
    assert url_of(url, "w", 5) == other
    assert "[::1]:5" in url_of(url, "::1", 5)


CATALOG = """
    select p.oid::regprocedure::text, p.oid, p.prosrc, p.proacl::text, p.proowner,
           obj_description(p.oid), p.prosecdef, p.proconfig,
           array(select a::text from unnest(p.proacl) a order by 1)
    from pg_proc p
    where p.pronamespace = 'rowq'::regnamespace
    order by 1
    """
# Replacements of Citus' functions for a cluster of one node.
ALONE = """
    create or replace function rowq_citus.is_here(p_name text) returns boolean
    language sql as $$ select p_name !~ '^elsewhere' $$;
    create or replace function rowq_citus.groups() returns integer[]
    language sql as $$ select array[0] $$;
    create or replace function rowq_citus.nodes()
    returns table (node_key text, node_group integer, node_name text, node_groups integer[])
    language sql as $$ values ('n1', 0, 'here:1', array[0]) $$
    """

SIGNATURES = r"""
    select p.proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid)
    from pg_proc p
    join pg_proc o on o.proname = p.proname and o.pronamespace = 'rowq_node'::regnamespace
    where p.pronamespace = 'rowq'::regnamespace
      and p.prosrc ~ format('rowq_citus\.(to|each)_%s_[0-9]+\(', p.proname)
    """
ROUTED = ("check.sql", "aside.sql", "behind.sql", "route.sql", "rights.sql")
UNROUTED = ("check.sql", "aside.sql", "unroute.sql")


def run(connection: Connection, *names: str) -> None:
    with connection.transaction():
        for name in names:
            connection.execute(script(name))


@pytest.fixture
def alone(open_owner: Open) -> Connection:
    """Return a session in a database that forwards calls to itself."""
    session = open_owner()
    is_superuser = "select rolsuper from pg_roles where rolname = current_user"
    if session.execute(is_superuser).fetchone() != (True,):
        pytest.skip(f"this account may not make roles' functions{TO_RUN}a superuser's URL")
    run(session, "check.sql", "forward.sql", "rights.sql")
    session.execute(ALONE)
    session.execute("alter function rowq_citus.nodes() owner to rowq_citus")
    return session


def test_remove_keeps_rights_granted_on_wrappers(alone: Connection) -> None:
    before = alone.execute(CATALOG).fetchall()
    run(alone, *ROUTED)
    wrapped = alone.execute(CATALOG).fetchall()
    run(alone, *ROUTED)
    again = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in again] == [(*row[:3], *row[4:]) for row in wrapped]
    assert alone.execute(CATALOG).fetchall() != before
    run(alone, *UNROUTED)
    run(alone, *UNROUTED)
    assert [row[:3] for row in alone.execute(CATALOG)] == [row[:3] for row in before]
    run(alone, "check.sql", "forward.sql", *ROUTED[1:], "aside.sql", "unroute.sql")
    after = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in after] == [(*row[:3], *row[4:]) for row in before]


def test_second_install_keeps_rights_granted_on_wrappers(alone: Connection) -> None:
    run(alone, *ROUTED)
    alone.execute("revoke execute on function rowq.peek(text, integer) from rowq_monitor")
    alone.execute("grant execute on function rowq.health() to rowq_producer")
    before = alone.execute(CATALOG).fetchall()
    run(alone, "check.sql", "forward.sql", "rights.sql")
    assert alone.execute(CATALOG).fetchall() == before
    alone.execute(ALONE)
    run(alone, *ROUTED)
    again = alone.execute(CATALOG).fetchall()
    assert [(*row[:3], *row[4:]) for row in again] == [(*row[:3], *row[4:]) for row in before]


def test_signatures_equal_the_catalogs(alone: Connection) -> None:
    run(alone, *ROUTED)
    found = alone.execute(SIGNATURES).fetchall()
    assert {name: (arguments, result) for name, arguments, result in found} == signatures()


def test_calls_are_forwarded_and_a_null_name_is_refused(alone: Connection) -> None:
    run(alone, *ROUTED)
    call_one(alone, "create_queue", queue_name="q")
    call_one(alone, "enqueue", queue_name="q", body="x")
    alone.execute("select rowq.enqueue('q', '{}'::jsonb)")
    call_one(alone, "bind_topic", queue_name="q", topic_pattern="#")
    assert len(call(alone, "publish", topic="a", body="x")) == 1
    claim = call(alone, "dequeue_fast", queue_name="q", batch_size=3)
    assert len(claim) == 3
    assert len(call(alone, "complete", queue_name="q", claim_id=claim[0].claim_id)) == 3
    assert [row.queue_name for row in call(alone, "maintain")] == ["q"]
    assert [row.queue_name for row in call(alone, "queue_stats")] == ["q"]
    assert {row.detail.partition(": ")[0] for row in call(alone, "health")} == {"here:1"}
    assert refused(alone, "RQ711", "enqueue", queue_name=None, body="x")
    assert refused(alone, "RQ706", "enqueue", queue_name="elsewhere", body="x")
    assert refused(alone, "RQ701", "dequeue_fast", queue_name="nowhere")


def test_node_has_no_drift_and_migrate_refuses_it(alone: Connection, empty_database: str) -> None:
    run(alone, *ROUTED)
    found = node_status(empty_database)
    assert (found.drift, found.notices) == ((), ())
    for act in (migrate.status, migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.RoutedDatabase, match=r"RQ809 .*\n.*sql/postgres/addons/citus"):
            act(empty_database)
    assert [check for check in examine(empty_database) if "RQ809" in check.detail]
    alone.execute("alter function rowq.peek(text, integer) reset search_path")
    assert [drift.routine for drift in node_status(empty_database).drift] == ["peek"]
