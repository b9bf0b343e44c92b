"""The shim answers like pgmq's own SQL, except for the differences in README.md.

pgmq's SQL is in its Python package; `benchmarks` use it, too.
"""

import re
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgmq import PGMQueue
from pgmq.install import get_embedded_install_sql

from rowq.tools.migrate import migrate
from sql.postgres.addons.pgmq.tests import client_script
from tests.docs.test_examples import run_page
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server
from tests.engines.postgres.psql import psql_program
from tests.static.sources import code_of, routines_of

SHIM = Path(__file__).resolve().parents[1] / "pgmq.sql"

LISTED: dict[str, Any] = {
    "send, no queue": "error RQ701",
    "metrics, no queue": "error RQ701",
    "read after drop": "error RQ701",
    "send_batch, bad headers": "error RQ711",
    "send_batch, empty": "error RQ711",
    "archive without": "error RQ711",
    "set_vt again": "error RQ711",
}
"""Steps that the shim refuses differently, or alone."""

NOT_THERE = {
    "create_partitioned",
    "convert_archive_partitioned",
    "detach_archive",
    "create_fifo_index",
    "create_fifo_indexes_all",
    "read, condition",
    "read_grouped",
    "read_grouped_with_poll",
    "read_grouped_rr",
    "read_grouped_rr_with_poll",
    "enable_notify",
    "update_notify",
    "list_notify_throttles",
    "disable_notify",
    "validate_queue_name",
    "bind_topic",
    "list_topic_bindings",
    "list_topic_bindings of one",
    "test_routing",
    "send_topic",
    "send_batch_topic",
    "unbind_topic",
}
UNREADABLE = {"validate_routing_key", "validate_topic_pattern"}
"""Steps whose error the client turns into the answer no."""


def text_of_shim() -> str:
    """Return the script without psql commands."""
    lines = SHIM.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("\\"))


@pytest.fixture(scope="module")
def shared(server: Server) -> Iterator[str]:
    """Return the URL of this file's shared database with rowq and the shim."""
    url = server.fresh_database()
    migrate(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(text_of_shim())
    yield url
    server.drop_database(url)


@pytest.fixture
def open_shim(shared: str) -> Iterator[Open]:
    """Return a function that opens sessions in that database."""
    with ExitStack() as opened:

        def open_session() -> Connection:
            return opened.enter_context(psycopg.connect(shared, autocommit=True))

        yield open_session


@pytest.fixture
def shim(open_shim: Open) -> Connection:
    """Return a superuser's session."""
    return open_shim()


@pytest.fixture
def made(shim: Connection, queue_name: str) -> str:
    """Return a queue created by the shim."""
    shim.execute("select pgmq.create(%s)", [queue_name])
    return queue_name


@pytest.fixture
def genuine(server: Server) -> Iterator[str]:
    """Return the URL of a database with pgmq's own SQL."""
    url = server.fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(get_embedded_install_sql())
    yield url
    server.drop_database(url)


def but_for_the_list(step: str, given: Any) -> Any:
    """Return pgmq's result with the shim's documented differences."""
    if step in LISTED:
        return LISTED[step]
    match given:
        case {"queue": _}:
            # The shim measures the oldest waiting message and has no count of all sent messages.
            waits = given["visible"] > 0
            return given | {"newest": False, "oldest": waits, "total": None}
        case {"was read": _} if step.startswith("set_vt"):
            return given | {"was read": False}
        case list() if step.startswith("set_vt"):
            return [but_for_the_list(step, one) for one in given]
        case [(_, _, _, _), *_] if step == "list":
            return [(name, False, False, False) for name, *_ in given]
    return given


def test_pgmqs_client_gets_pgmqs_answers_except_listed_ones(
    owner: Connection, empty_database: str, genuine: str
) -> None:
    owner.execute(text_of_shim())

    def keep_archive() -> None:
        owner.execute("select rowq.alter_queue('archived', p_archive_days => 1)")

    called: set[str] = set()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "list_queues", UserWarning)
        wanted = client_script.run(genuine, called, lambda: None)
        given = client_script.run(empty_database, called, keep_archive)
    for step in NOT_THERE:
        assert given.pop(step) == "error RQ711", step
    for step in UNREADABLE:
        assert given.pop(step) is False, step
    for step, result in given.items():
        assert result == but_for_the_list(step, wanted[step]), step
    assert LISTED.keys() <= given.keys()

    methods = {name for name in dir(PGMQueue) if callable(getattr(PGMQueue, name))}
    assert {name for name in methods if not name.startswith("_")} - {"close"} <= called


def test_archive_keeps_archived_and_deleted_messages(shim: Connection, made: str) -> None:
    shim.execute("select rowq.alter_queue(%s, p_archive_days => 1)", [made])
    sent = [shim.execute("select pgmq.send(%s, '1')", [made]).fetchone()[0] for _ in range(3)]
    shim.execute("select pgmq.read(%s, 600, 2)", [made])
    shim.execute("select pgmq.archive(%s, %s::bigint[])", [made, sent[:2]])
    shim.execute("select pgmq.delete(%s, %s::bigint)", [made, sent[2]])
    shim.execute("select rowq.maintain(%s)", [made])
    states = [
        shim.execute("select state, body from rowq.get_message(%s, %s)", [made, number]).fetchone()
        for number in sent
    ]
    assert states == [("completed", "1"), ("completed", "1"), ("cancelled", "1")]


def test_message_of_a_rowq_producer_is_read_as_json(shim: Connection, made: str) -> None:
    deep = "[" * 100_000
    for body in ('{"a": 1}', "no JSON", '"\\u0000"', deep):
        shim.execute("select rowq.enqueue(%s, %s::text)", [made, body])
    shim.execute("select rowq.enqueue(%s, p_body_binary => '\\x00ff')", [made])
    read = shim.execute("select message from pgmq.read(%s, 30, 10)", [made]).fetchall()
    assert [row[0] for row in read] == [{"a": 1}, "no JSON", '"\\u0000"', deep, "AP8="]


def test_several_batches_are_sent_at_once_in_order(shim: Connection, made: str) -> None:
    shim.execute(
        "select count(*) from pgmq.send_batch(%s, (select array_agg(to_jsonb(n) order by n)"
        " from generate_series(1, 10001) n))",
        [made],
    )
    popped = shim.execute("select message::integer from pgmq.pop(%s, 20000)", [made]).fetchall()
    assert [row[0] for row in popped] == list(range(1, 10002))


def test_array_with_another_lower_bound_is_sent_whole(shim: Connection, made: str) -> None:
    shim.execute(
        "select pgmq.send_batch(%s, '[0:2]={1,2,3}'::jsonb[],"
        """ '[5:7]={"{\\"a\\": 1}","{\\"a\\": 2}","{\\"a\\": 3}"}'::jsonb[])""",
        [made],
    )
    read = shim.execute("select message, headers from pgmq.read(%s, 30, 9)", [made]).fetchall()
    assert read == [(number, {"a": number}) for number in (1, 2, 3)]


@pytest.mark.parametrize("routine", ["read(%s, 30, {})", "pop(%s, {})"])
def test_ready_messages_are_read_before_expired_leases(
    shim: Connection, made: str, routine: str
) -> None:
    def taken(qty: int) -> list[int]:
        called = routine.format(qty)
        return [row[0] for row in shim.execute(f"select message from pgmq.{called}", [made])]

    shim.execute("select pgmq.send_batch(%s, array['1', '2']::jsonb[])", [made])
    shim.execute("select pgmq.read(%s, 30, 2)", [made])
    shim.execute("update rowq.claim set lease_until = now()")
    shim.execute("select pgmq.send(%s, '3')", [made])
    assert taken(1) == [3]
    assert taken(1) == [1]
    assert taken(5) == [2]


def test_purge_removes_read_messages(shim: Connection, made: str) -> None:
    shim.execute("select pgmq.send_batch(%s, array_fill('1'::jsonb, array[1100]))", [made])
    shim.execute("select count(*) from pgmq.read(%s, 600, 1050)", [made])
    assert shim.execute("select pgmq.purge_queue(%s)", [made]).fetchone() == (1100,)
    assert shim.execute("select queue_length from pgmq.metrics(%s)", [made]).fetchone() == (0,)


def test_messages_are_deleted_in_order_of_ids(shim: Connection, made: str) -> None:
    sent = [shim.execute("select pgmq.send(%s, '1')", [made]).fetchone()[0] for _ in range(3)]
    given = [sent[2], sent[0], sent[1], sent[0]]
    deleted = shim.execute("select pgmq.delete(%s, %s::bigint[])", [made, given]).fetchall()
    assert [row[0] for row in deleted] == sent


def test_set_vt_omits_a_message_that_ends_during_the_call(shim: Connection, made: str) -> None:
    for seconds in (60, -1):
        hidden = shim.execute(
            "select pgmq.internal_hide(%s, 1, 1, now(), now() + make_interval(secs => %s))",
            [made, seconds],
        )
        assert hidden.fetchone() == (None,)


def test_wait_for_a_message_of_another_transaction_ends(
    shim: Connection, open_shim: Open, made: str
) -> None:
    sent = shim.execute("select pgmq.send(%s, '1')", [made]).fetchone()[0]
    other = open_shim()
    with other.transaction():
        other.execute("select pgmq.read(%s, 600, 1)", [made])
        with pytest.raises(psycopg.Error, match="RQ705"):
            shim.execute("select pgmq.delete(%s, %s::bigint)", [made, sent])
    assert shim.execute("select pgmq.delete(%s, %s::bigint)", [made, sent]).fetchone() == (True,)


def test_message_is_dead_if_the_queue_limits_reads(shim: Connection, made: str) -> None:
    shim.execute("select rowq.alter_queue(%s, p_max_attempts => 2)", [made])
    sent = shim.execute("select pgmq.send(%s, '1')", [made]).fetchone()[0]
    for count in (1, 2):
        read = shim.execute("select read_ct from pgmq.read(%s, 0, 1)", [made]).fetchall()
        assert read == [(count,)]
    assert shim.execute("select pgmq.read(%s, 0, 1)", [made]).fetchall() == []
    assert shim.execute("select pgmq.set_vt(%s, %s::bigint, 1)", [made, sent]).fetchall() == []
    assert shim.execute("select pgmq.delete(%s, %s::bigint)", [made, sent]).fetchone() == (True,)


@pytest.mark.promise("P16")
def test_role_may_call_the_functions_like_its_routines(shim: Connection, made: str) -> None:
    calls = {
        "send": "pgmq.send(%s, '1')",
        "read": "pgmq.read(%s, 30, 1)",
        "delete": "pgmq.delete(%s, 1::bigint)",
        "metrics": "pgmq.metrics(%s)",
        "list_queues": "pgmq.list_queues() where queue_name = %s",
        "create": "pgmq.create(%s)",
        "internal_delete": "pgmq.internal_delete(%s, 1)",
    }
    allowed = {
        "producer": {"send"},
        "consumer": {"read", "delete", "metrics"},
        "monitor": {"metrics", "list_queues"},
        "admin": calls.keys() - {"internal_delete"},
    }
    for role, names in allowed.items():
        shim.execute(f"set role rowq_{role}")
        may = set()
        for name, called in calls.items():
            with suppress(psycopg.errors.InsufficientPrivilege):
                shim.execute(f"select * from {called}", [made])
                may.add(name)
        with pytest.raises(psycopg.Error, match="read_grouped is not in the shim"):
            shim.execute("select * from pgmq.read_grouped(%s, 30, 1)", [made])
        shim.execute("reset role")
        assert may == names, role


@pytest.mark.promise("P16")
@pytest.mark.parametrize("role", ["producer", "consumer", "monitor", "admin"])
def test_no_role_may_use_the_shims_row_types(shim: Connection, made: str, role: str) -> None:
    """Calls that return these rows need no right on the types."""
    shim.execute("select pgmq.send(%s, '1')", [made])
    shim.execute(f"set role rowq_{role}")
    for kind in ("message_record", "queue_record", "metrics_result", "message_record[]"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            shim.execute(f"create temporary table stolen (one_row pgmq.{kind})")
    if role in {"consumer", "admin"}:
        shim.execute("select m.msg_id, (m).message from pgmq.read(%s, 30, 1) m", [made])
        shim.execute("select * from pgmq.metrics(%s)", [made])
    if role in {"monitor", "admin"}:
        shim.execute("select * from pgmq.list_queues()")
    shim.execute("reset role")


@pytest.mark.promise("P16")
def test_public_has_no_right_and_rowqs_owner_owns_all(shim: Connection) -> None:
    found = shim.execute(
        """
        select count(*), count(*) filter (where has_function_privilege('public', p.oid, 'execute')),
               array_agg(distinct p.proowner::regrole::text),
               bool_and(p.proconfig = array['search_path=pg_catalog, pg_temp'])
        from pg_proc p
        where p.pronamespace = 'pgmq'::regnamespace
        """
    ).fetchone()
    assert found is not None
    assert found[0] > 60
    assert found[1:] == (0, ["rowq_owner"], True)
    usage = shim.execute("select has_schema_privilege('public', 'pgmq', 'usage')").fetchone()
    assert usage == (False,)


@pytest.mark.promise("P16")
def test_installation_uses_no_operator_of_another_role(shim: Connection) -> None:
    """Otherwise a user with create rights in public could have a superuser run it."""
    operators = {"||": ("text[]", "text[]", "text[]"), "=": ("oid", "regnamespace", "boolean")}
    for name, (left, right, result) in operators.items():
        shim.execute(
            f"create function public.taken({left}, {right}) returns {result} language plpgsql"
            " as $$ begin raise exception 'the operator was taken'; end; $$"
        )
        shim.execute(
            f"create operator public.{name}"
            f" (leftarg = {left}, rightarg = {right}, function = public.taken)"
        )
    try:
        shim.execute(text_of_shim())
    finally:
        shim.execute("rollback")
        for left, right, _ in operators.values():
            shim.execute(f"drop function public.taken({left}, {right}) cascade")


@pytest.mark.promise("P16")
def test_superuser_acting_as_another_role_is_refused(shim: Connection) -> None:
    shim.execute("set role rowq_owner")
    with pytest.raises(psycopg.Error, match=r"RQ803 .* acts as rowq_owner"):
        shim.execute(text_of_shim())
    shim.execute("rollback")
    shim.execute("reset role")


def test_second_installation_keeps_users_of_its_types(shim: Connection, made: str) -> None:
    shim.execute("create view kept as select null::pgmq.message_record as message")
    shim.execute("select pgmq.send(%s, '1')", [made])
    shim.execute(text_of_shim())
    assert shim.execute("select count(*) from kept").fetchone() == (1,)
    assert shim.execute("select queue_length from pgmq.metrics(%s)", [made]).fetchone() == (1,)


def test_installation_beside_pgmq_is_refused(server: Server, genuine: str) -> None:
    before = _functions(genuine)
    done = _installed_by_psql(server, genuine)
    assert (done.returncode, "rowq is not in this database" in done.stderr) == (3, True)
    migrate(genuine)
    done = _installed_by_psql(server, genuine)
    assert (done.returncode, "a schema pgmq that is not the shim" in done.stderr) == (3, True)
    assert _functions(genuine) == before


@pytest.mark.promise("P16")
def test_installation_into_another_roles_schema_is_refused(shim: Connection) -> None:
    shim.execute("create role rowq_test_meddler")
    shim.execute("alter schema pgmq owner to rowq_test_meddler")
    try:
        with pytest.raises(psycopg.Error, match="a schema pgmq that is not the shim"):
            shim.execute(text_of_shim())
    finally:
        shim.execute("rollback")
        shim.execute("alter schema pgmq owner to rowq_owner")
        shim.execute("drop role rowq_test_meddler")


def test_psql_installs_it_without_output(server: Server, shim: Connection, shared: str) -> None:
    shim.execute("drop schema pgmq cascade")
    done = _installed_by_psql(server, shared)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shim.execute("select pgmq.create('psql')").fetchall()


def _installed_by_psql(server: Server, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [psql_program(server), "--quiet", "--file", str(SHIM), url],
        capture_output=True,
        text=True,
        check=False,
    )


def _functions(url: str) -> Any:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select p.oid::regprocedure::text, p.prosrc from pg_proc p"
            " where p.pronamespace = 'pgmq'::regnamespace order by 1"
        ).fetchall()


FUNCTION = re.compile(r"^create or replace function .*?^\$\$;$", re.MULTILINE | re.DOTALL)


def test_shim_calls_only_the_contracts_routines() -> None:
    code = re.sub(r"--.*", "", SHIM.read_text(encoding="utf-8"))
    assert set(re.findall(r"\browq\.(\w+)", code)) <= routines_of("postgres").keys()


def test_shim_functions_are_static_and_have_a_purpose() -> None:
    found = FUNCTION.findall(SHIM.read_text(encoding="utf-8"))
    assert len(found) > 20
    for text in found:
        assert not re.search(r"\bexecute\b", code_of(text)), text
        assert "set search_path = pg_catalog, pg_temp\nas $$\n-- purpose   " in text


@pytest.mark.requires("psql")
def test_commands_of_the_page_print_its_output(
    server: Server, empty_database: str, tmp_path: Path
) -> None:
    migrate(empty_database)
    run_page("sql/postgres/addons/pgmq/README.md", server, empty_database, tmp_path)
