"""Each role may call only its routines, PUBLIC none, and no role may use the tables.

A superuser installs the test's database; login roles are members of rowq's roles.
"""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from rowq.arguments import plain_arguments
from rowq.contract import load_contract
from rowq.tools.migrate import migrate
from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server, wait_until
from tests.helpers.calls import bodies, call, call_one, dequeue, dequeue_one, enqueue, rolled_back
from tests.helpers.queues import CheckedQueue
from tests.static.sources import sql_units

pytestmark = pytest.mark.promise("P16")

ROLES = load_contract().roles
ROUTINES = load_contract().of("postgres")
TABLES = sorted(
    unit.stem for unit in sql_units("postgres", "tables") if "create table " in unit.text
)


@pytest.fixture
def users(owner: Connection) -> Iterator[dict[str, str]]:
    """Return login roles by rowq role, and one without a role."""
    names = {role: f"rowq_test_{role}_{uuid.uuid4().hex[:8]}" for role in (*ROLES, "stranger")}
    for role, name in names.items():
        owner.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        if role in ROLES:
            grant = sql.SQL("grant {} to {}")
            owner.execute(grant.format(sql.Identifier(f"rowq_{role}"), sql.Identifier(name)))
    yield names
    owner.execute("reset session authorization")
    for name in names.values():
        for statement in ("drop owned by {}", "drop role {}"):
            owner.execute(sql.SQL(statement).format(sql.Identifier(name)))


def become(connection: Connection, user: str) -> None:
    """Let a superuser's session act as another user until it resets its authorization."""
    connection.execute(sql.SQL("set session authorization {}").format(sql.Identifier(user)))


def may_call(connection: Connection, routine: str) -> bool:
    """Call a routine with plain arguments; an RQ error means that it was allowed."""
    given = plain_arguments(ROUTINES[routine], "q")
    if routine in {"dequeue_wait", "wait_for_result"}:
        given["wait_seconds"] = 0
    try:
        call(connection, routine, **given)
    except psycopg.errors.InsufficientPrivilege:
        return False
    except psycopg.Error as error:
        if not (error.sqlstate or "").startswith("RQ"):
            raise
    return True


@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_role_may_call_only_its_routines(
    owner: Connection, own_queue: CheckedQueue, users: dict[str, str], role: str
) -> None:
    own_queue.enqueue("a")
    become(owner, users[role])
    allowed = {routine for routine in ROUTINES if may_call(owner, routine)}
    assert allowed == {name for name, routine in ROUTINES.items() if role in routine.roles}


@pytest.mark.parametrize("role", [*ROLES, "stranger"])
def test_no_role_has_a_right_on_a_table_or_sequence(
    owner: Connection, users: dict[str, str], role: str
) -> None:
    rights = owner.execute(
        """
        select c.relname, p.privilege
        from pg_class c
        cross join unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references',
            'trigger']) p (privilege)
        where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm')
          and has_table_privilege(%(user)s, c.oid, p.privilege)
        union all
        select c.relname, p.privilege
        from pg_class c cross join unnest(array['select', 'update', 'usage']) p (privilege)
        where c.relnamespace = 'rowq'::regnamespace and c.relkind = 'S'
          and has_sequence_privilege(%(user)s, c.oid, p.privilege)
        """,
        {"user": users[role]},
    ).fetchall()
    assert rights == []
    assert owner.execute(
        "select has_schema_privilege(%s, 'rowq', 'create')", [users[role]]
    ).fetchone() == (False,)
    become(owner, users[role])
    for table in TABLES:
        for statement in ("select from rowq.{}", "delete from rowq.{}", "lock table rowq.{}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege), owner.transaction():
                owner.execute(sql.SQL(statement).format(sql.Identifier(table)))


@pytest.mark.pitfall("postgres 8")
def test_public_has_no_right(owner: Connection) -> None:
    functions = owner.execute(
        """
        select p.oid::regprocedure::text from pg_proc p
        where p.pronamespace = 'rowq'::regnamespace
          and has_function_privilege('public', p.oid, 'execute')
        """
    ).fetchall()
    assert functions == []
    relations = owner.execute(
        """
        select c.oid::regclass::text from pg_class c
        cross join aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'S')
          and a.grantee = 0
        union all
        select 'schema' from pg_namespace n
        cross join aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
        where n.nspname = 'rowq' and a.grantee = 0
        """
    ).fetchall()
    assert relations == []


@pytest.mark.pitfall("postgres 8")
def test_later_partition_has_no_rights(owner: Connection) -> None:
    call(owner, "create_queue", queue_name="kept", archive_days=1)
    enqueue(owner, "kept", "a")
    call(owner, "complete", queue_name="kept", claim_id=dequeue_one(owner, "kept").claim_id)
    assert call_one(owner, "archive", queue_name="kept").archived == 1
    rows = owner.execute(
        """
        select c.relname, r.rolname, a.grantee::regrole::text
        from pg_inherits i join pg_class c on c.oid = i.inhrelid
        join pg_roles r on r.oid = c.relowner
        cross join aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
        where i.inhparent = 'rowq.archive'::regclass
        """
    ).fetchall()
    assert {(owner, grantee) for _, owner, grantee in rows} == {("rowq_owner", "rowq_owner")}
    assert len({name for name, _, _ in rows}) == 1


HOSTILE = ("tables", "sequences", "functions", "types", "schemas")
GRANTED_TO_OTHERS = """
    with object (kind, name, owner, acl) as (
        select 'schema', n.nspname, n.nspowner, n.nspacl
        from pg_namespace n where n.nspname = 'rowq'
        union all
        select 'relation', c.relname, c.relowner, c.relacl
        from pg_class c where c.relnamespace = 'rowq'::regnamespace
        union all
        select 'type', t.typname, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
        from pg_type t where t.typnamespace = 'rowq'::regnamespace and t.typtype = 'c'
            and t.typrelid in (select oid from pg_class where relkind in ('r', 'p'))
        union all
        select 'routine', p.proname, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
        from pg_proc p where p.pronamespace = 'rowq'::regnamespace
    )
    select o.kind, o.name, a.grantee, a.privilege_type, a.is_grantable
    from object o cross join aclexplode(o.acl) a
    where a.grantee <> o.owner
"""
NEEDED_TO_WAIT = {
    "internal_poll", "internal_poll_result", "internal_require_autocommit", "internal_wait_until",
}  # fmt: skip


def test_default_privileges_reach_no_rowq_object(server: Server, empty_database: str) -> None:
    with server.connect(empty_database) as session:
        name = f"rowq_test_app_{uuid.uuid4().hex[:8]}"
        session.execute(f"create role {name}")
        try:
            for kind in HOSTILE:
                session.execute(f"alter default privileges grant all on {kind} to public, {name}")
            migrate(empty_database)
            call(session, "create_queue", queue_name="kept", archive_days=1)
            enqueue(session, "kept", "a")
            claim_id = dequeue_one(session, "kept").claim_id
            call(session, "complete", queue_name="kept", claim_id=claim_id)
            assert call_one(session, "archive", queue_name="kept").archived == 1
            own = "select oid, rolname from pg_roles where rolname = any(%s)"
            roles = dict(session.execute(own, [[f"rowq_{role}" for role in ROLES]]).fetchall())
            routines = set(ROUTINES) | NEEDED_TO_WAIT
            for kind, what, grantee, privilege, is_grantable in session.execute(GRANTED_TO_OTHERS):
                assert (grantee in roles, is_grantable) == (True, False), (kind, what, privilege)
                assert (kind, privilege) == ("schema", "USAGE") or (
                    (kind, privilege) == ("routine", "EXECUTE") and what in routines
                ), (kind, what, privilege)
        finally:
            session.execute(f"drop owned by {name}")
            session.execute(f"drop role {name}")


def test_owner_has_no_superuser_right_and_no_login(owner: Connection) -> None:
    owners = owner.execute(
        """
        select distinct r.rolname, r.rolsuper, r.rolcanlogin, r.rolcreaterole, r.rolbypassrls
        from (
            select p.proowner as owner from pg_proc p where p.pronamespace = 'rowq'::regnamespace
            union all
            select c.relowner from pg_class c where c.relnamespace = 'rowq'::regnamespace
            union all
            select n.nspowner from pg_namespace n where n.nspname = 'rowq'
        ) o
        join pg_roles r on r.oid = o.owner
        """
    ).fetchall()
    assert owners == [("rowq_owner", False, False, False, False)]


@pytest.mark.pitfall("postgres 7")
def test_security_definer_routines_fix_the_search_path(owner: Connection) -> None:
    rows = owner.execute(
        """
        select p.proname, p.prosecdef, p.proconfig from pg_proc p
        where p.pronamespace = 'rowq'::regnamespace and p.proname not like 'internal%'
        """
    ).fetchall()
    assert {name for name, _, _ in rows} == set(ROUTINES)
    definers = {name: config for name, is_definer, config in rows if is_definer}
    assert set(ROUTINES) - set(definers) == {"dequeue_wait", "wait_for_result"}
    for name, config in definers.items():
        [path] = [item for item in config if item.startswith("search_path=")]
        places = [place.strip(' "') for place in path.removeprefix("search_path=").split(",")]
        assert places[-1] == "pg_temp", f"{name}: {path}"
        assert set(places) <= {"pg_catalog", "rowq", "pg_temp"}, f"{name}: {path}"


SPY = """
    create function pg_temp.spy(anyelement) returns boolean language plpgsql as $$
    begin
        raise warning 'ran as %', current_user;
        return true;
    end;
    $$
    """


def warnings_of(connection: Connection) -> list[str]:
    found: list[str] = []
    connection.add_notice_handler(lambda notice: found.append(notice.message_primary or ""))
    return found


def test_temporary_type_does_not_capture_a_routine(
    owner: Connection, own_queue: CheckedQueue, users: dict[str, str]
) -> None:
    become(owner, users["admin"])
    warnings = warnings_of(owner)
    owner.execute(SPY)
    for name in ("text", "jsonb", "bytea", "xid8", "pg_snapshot", "name", "oid", "regclass"):
        owner.execute(
            f"create domain pg_temp.{name} as pg_catalog.{name} check (pg_temp.spy(value))"
        )
    for routine in ROUTINES:
        assert may_call(owner, routine)
    own_queue.call("create_queue")  # The loop dropped it.
    own_queue.enqueue("a", headers={"a": 1}, dedup_key="key")
    own_queue.call("enqueue_batch", messages=[{"body": "b"}])
    assert bodies(own_queue.dequeue(10)) == ["a", "b"]
    assert [text for text in warnings if "rowq_owner" in text] == []


@pytest.mark.pitfall("postgres 7")
def test_temporary_tables_do_not_capture_a_routine(
    owner: Connection, users: dict[str, str]
) -> None:
    become(owner, users["admin"])
    for table in (*TABLES, "pg_class", "pg_inherits", "pg_stat_activity", "pg_type"):
        owner.execute(sql.SQL("create temporary table {} (x int)").format(sql.Identifier(table)))
    call(owner, "create_queue", queue_name="q2", archive_days=1)
    enqueue(owner, "q2", "a")
    call(owner, "complete", queue_name="q2", claim_id=dequeue_one(owner, "q2").claim_id)
    assert call_one(owner, "maintain", queue_name="q2").archived == 1
    assert call(owner, "health")


def test_hostile_search_path_does_not_capture_a_call(
    owner: Connection, users: dict[str, str]
) -> None:
    owner.execute("create schema evil")
    owner.execute("grant usage, create on schema evil to public")
    become(owner, users["admin"])
    warnings = warnings_of(owner)
    shadowed = [
        ("clock_timestamp()", "timestamptz", "pg_catalog.clock_timestamp()"),
        ("make_interval(secs double precision)", "interval", "interval '1 day'"),
        ("nextval(regclass)", "bigint", "1::bigint"),
        ("pg_current_xact_id()", "xid8", "'1'::xid8"),
        ("char_length(text)", "integer", "1"),
        ('"left"(text, integer)', "text", "'evil'"),
        ("cardinality(anyarray)", "integer", "0"),
        ("pg_sleep(double precision)", "void", "null"),
        ("jsonb_agg(anyelement)", "jsonb", "null::jsonb"),
        ("encode(bytea, text)", "text", "'evil'"),
    ]
    for signature, kind, value in shadowed:
        owner.execute(
            f"""
            create function evil.{signature} returns {kind} language plpgsql as $$
            begin
                raise warning 'captured {signature.partition("(")[0]}';
                return {"" if kind == "void" else value};
            end;
            $$
            """
        )
    owner.execute("set search_path = evil, pg_catalog")
    call(owner, "create_queue", queue_name="q3", archive_days=1)
    enqueue(owner, "q3", "a", delay_seconds=0.001, dedup_key="key")
    call(owner, "enqueue_batch", queue_name="q3", messages=[{"body": "b", "headers": {}}])
    call_one(owner, "enqueue", queue_name="q3", body_binary=b"c")
    call_one(owner, "dequeue_wait", queue_name="q3", wait_seconds=0.1)
    for row in dequeue(owner, "q3", 10):
        call(owner, "retry_later", queue_name="q3", claim_id=row.claim_id, delay_seconds=0)
        break
    call(owner, "complete", queue_name="q3", claim_id=dequeue_one(owner, "q3").claim_id)
    for routine in ("maintain", "queue_stats", "health", "list_dead", "peek"):
        assert may_call(owner, routine)
    assert warnings == []


@pytest.mark.pitfall("postgres 7")
def test_callers_operator_does_not_capture_a_routine(
    owner: Connection, users: dict[str, str]
) -> None:
    owner.execute("create schema evil")
    owner.execute("grant usage, create on schema evil to public")
    become(owner, users["admin"])
    warnings = warnings_of(owner)
    for kind in ("bigint", "integer", "text", "timestamptz"):
        owner.execute(
            f"""
            create function evil.never({kind}, {kind}) returns boolean language plpgsql as $$
            begin
                raise warning 'captured =';
                return false;
            end;
            $$
            """
        )
        for operator in ("=", "<=", ">="):
            owner.execute(
                f"create operator evil.{operator} "
                f"(leftarg = {kind}, rightarg = {kind}, function = evil.never)"
            )
    owner.execute("set search_path = evil, pg_catalog")
    call(owner, "create_queue", queue_name="q4")
    enqueue(owner, "q4", "a", dedup_key="key")
    call(owner, "complete", queue_name="q4", claim_id=dequeue_one(owner, "q4").claim_id)
    call(owner, "maintain", queue_name="q4")
    assert warnings == []


def test_producer_sees_no_body_and_only_a_duplicates_id(
    owner: Connection, own_queue: CheckedQueue, users: dict[str, str]
) -> None:
    own_queue.enqueue("secret", dedup_key="key")
    become(owner, users["producer"])
    for routine in ("peek", "dequeue_fast", "get_message", "list_dead", "queue_stats"):
        assert not may_call(owner, routine)
    row = own_queue.call_one("enqueue", dedup_key="key")
    assert vars(row).keys() == {"message_id", "outcome"}


@pytest.mark.promise("P16")
def test_producer_can_read_the_rights_pages_values(
    owner: Connection, own_queue: CheckedQueue, users: dict[str, str]
) -> None:
    [sent] = own_queue.enqueue("secret", headers={"tenant": "a"}, dedup_key="key")
    become(owner, users["producer"])
    found = call_one(owner, "get_result", queue_name="q", message_id=sent)
    assert found.state == "ready"
    assert vars(found).keys() == {"message_id", "state", "finished_at", "result", "last_error"}
    for tenant in "ab":
        asked = {"header_name": "tenant", "header_value": tenant}
        with rolled_back(owner):
            done = call_one(owner, "cancel_many", queue_name="q", **asked)
        assert done.cancelled == (tenant == "a")
    assert call_one(owner, "enqueue", queue_name="q", dedup_key="key").message_id == sent
    owner.execute("reset session authorization")
    assert own_queue.message(sent).state == "ready"


def test_client_of_a_role_can_do_all_its_work(owner: Connection, users: dict[str, str]) -> None:
    become(owner, users["admin"])
    call(owner, "create_queue", queue_name="work", archive_days=1)
    owner.execute("reset session authorization")
    become(owner, users["producer"])
    enqueue(owner, "work", "a", "b", dedup_key=None)
    [cancelled] = enqueue(owner, "work", "cancelled")
    call(owner, "cancel", queue_name="work", message_ids=[cancelled])
    owner.execute("reset session authorization")
    become(owner, users["consumer"])
    messages = call_one(owner, "dequeue_wait", queue_name="work", wait_seconds=5).messages
    call(owner, "extend_lease", queue_name="work", claim_id=messages[0]["claim_id"])
    call(owner, "complete", queue_name="work", claim_id=messages[0]["claim_id"])
    claim = dequeue_one(owner, "work").claim_id
    call(owner, "fail_now", queue_name="work", claim_id=claim)
    assert call_one(owner, "maintain", queue_name="work").archived == 2
    owner.execute("reset session authorization")
    become(owner, users["monitor"])
    assert call_one(owner, "queue_stats", queue_name="work").dead == 1
    assert len(call(owner, "list_dead", queue_name="work")) == 1
    assert {row.check_name for row in call(owner, "health")} >= {"dead_messages"}


@pytest.mark.promise("P13", "P16")
def test_health_shows_monitor_the_session_at_the_horizon(
    owner: Connection, open_owner: Open, users: dict[str, str]
) -> None:
    holder = open_owner()
    holder.execute("begin isolation level repeatable read")
    holder.execute("select 1")
    become(owner, users["monitor"])

    def named() -> bool:
        [row] = [row for row in call(owner, "health") if row.check_name == "clean_up_horizon"]
        return f"session {holder.info.backend_pid} " in row.detail

    wait_until(named, "health names the session once its transaction is a second old")
    holder.execute("rollback")
    assert not named()
