"""migrate, status and doctor run no object of a user with fewer rights."""

import subprocess
from collections.abc import Callable

import psycopg
import pytest
from psycopg import sql

from rowq.tools import migrate
from rowq.tools.doctor import examine
from rowq.tools.doctor.check import Check
from tests.engines.base import Server
from tests.engines.postgres.psql import psql_program
from tests.helpers.releases import BACK, EVERY
from tests.security.postgres.conftest import Login, Session, Trap

pytestmark = pytest.mark.promise("P16")

META = """
    create table rowq.meta (
        name text primary key, value text not null, changed_at timestamptz default clock_timestamp()
    )
"""
MIGRATION = """
    create table rowq.migration (
        migration_hash text primary key, migration_id text not null, applied_at_utc timestamp
    )
"""
LOG = """
    create table rowq.migration_log (
        id text primary key, migration_hash text, migration_id text, operation text, username text,
        hostname text, created_at_utc timestamp
    )
"""
OURS = "comment on schema rowq is 'rowq message queue'"


def run_script(server: Server, url: str) -> subprocess.CompletedProcess[str]:
    command = [psql_program(server), "--no-psqlrc", "--quiet", "--dbname", url]
    text = migrate.script("postgres")
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def doctor(url: str) -> dict[str, Check]:
    return {check.check_name: check for check in examine(url)}


def plant(trap: Trap, table: str) -> None:
    """Put the attacker's trigger on one of the attacker's tables."""
    trap.attacker.execute(
        f"create trigger planted before insert or update on rowq.{table} for each row"
        " execute function bait.spring_trigger()"
    )


def make_a_trap_of_rowq(trap: Trap) -> None:
    """Create the attacker's schema rowq with a routine that all clients call first."""
    trap.attacker.execute("create schema rowq")
    trap.attacker.execute(OURS)
    trap.attacker.execute("grant usage on schema rowq to public")
    shape = "table (rowq_version text, schema_version integer, engine text)"
    trap.set_up("rowq.version()", shape, "query select '1', 1, 'postgres'")


@pytest.mark.parametrize("tables", [[], [META], [META, MIGRATION, LOG]], ids=len)
def test_planted_schema_is_not_taken_over(
    server: Server, url: str, superuser: Session, trap: Trap, tables: list[str]
) -> None:
    trap.attacker.execute("create schema rowq")
    trap.attacker.execute(OURS)
    for table in tables:
        trap.attacker.execute(table)
    for name in ("meta", "migration", "migration_log")[: len(tables)]:
        plant(trap, name)
    with pytest.raises(migrate.MigrationError, match=r"RQ80[23]"):
        migrate.migrate(url)
    done = run_script(server, url)
    assert done.returncode == 3
    assert "RQ80" in done.stderr
    assert not trap.has_sprung
    query = "select count(*) from pg_proc where pronamespace = 'rowq'::regnamespace"
    assert superuser.execute(query).fetchone() == (0,)


def test_view_in_place_of_bookkeeping_is_not_read(url: str, trap: Trap) -> None:
    trap.attacker.execute("create schema rowq")
    trap.attacker.execute(OURS)
    trap.attacker.execute("create view rowq.migration as select bait.spring()::text migration_id")
    for look in (migrate.status, migrate.migrate, migrate.rollback):
        with pytest.raises(migrate.MigrationError, match=r"RQ80[23]"):
            look(url)
    with pytest.raises(migrate.MissingPrivilege, match="tenant"):
        doctor(url)
    assert not trap.has_sprung


READ_BY_A_LOOK = [
    "alter table rowq.migration enable row level security;"
    " alter table rowq.migration force row level security;"
    " create policy planted on rowq.migration using (bait.spring())",
    "create index planted on rowq.migration (bait.fold('1'))",
    "create index planted on rowq.claim (bait.fold('1'))",
    "create statistics bait.planted on bait.fold('1'), migration_id from rowq.migration",
    "alter table rowq.dead rename to d; create view rowq.dead as select bait.spring()",
    "alter table rowq.claim rename to c;"
    " create view rowq.claim as select array[bait.spring()] message_ids",
]


@pytest.mark.parametrize("victim", ["postgres", "mate"])
@pytest.mark.parametrize("planted", READ_BY_A_LOOK)
def test_status_reads_nothing_that_another_role_owns(
    url: str, tenant_url: str, trap: Trap, login: Login, planted: str, victim: str
) -> None:
    migrate.migrate(tenant_url)
    trap.attacker.execute(planted)
    victim_url = url if victim == "postgres" else login("mate", "tenant")
    for look in (migrate.status, lambda to: migrate.plan_rollback(to, 0)):
        with pytest.raises(migrate.MissingPrivilege, match="tenant") as refusal:
            look(victim_url)
        assert "Connect as tenant" in str(refusal.value.remedy)
    assert not trap.has_sprung


def test_owner_migrates_even_if_others_can_act_as_it(tenant_url: str, login: Login) -> None:
    login("mate", "tenant")
    assert migrate.migrate(tenant_url).applied == EVERY
    assert migrate.status(tenant_url).owner == "tenant"
    assert migrate.rollback(tenant_url, to=0).rolled_back == BACK


# This built-in function runs a query from its argument.
RUNS_A_QUERY = (
    "ts_rewrite('a'::tsquery, 'select ''a''::tsquery, bait.spring()::text::tsquery') is not null"
)
PLANTED_BY_A_FORMER_MEMBER = {
    "trigger planted on table rowq.meta": "create trigger planted after insert or update"
    " on rowq.meta for each row execute function bait.spring_trigger()",
    "trigger planted on table rowq.migration_log": "create trigger planted after insert"
    " on rowq.migration_log for each row execute function bait.spring_trigger()",
    "rule planted on table rowq.dead": "create rule planted as on delete to rowq.dead do also"
    " select bait.spring()",
    "rule .* on view rowq.dead": "alter table rowq.dead rename to d;"
    " create view rowq.dead as select bait.spring()",
    "policy planted on table rowq.queue": "create policy planted on rowq.queue"
    " using (bait.spring())",
    "table rowq.migration": "alter table rowq.migration enable row level security;"
    " alter table rowq.migration force row level security",
    "column changed_at of table rowq.meta": "alter table rowq.meta alter changed_at"
    " set default case when bait.spring() then now() end",
    "constraint planted on table rowq.meta": "alter table rowq.meta add constraint planted"
    " check (bait.spring())",
    "default value .* of table rowq.meta": "alter table rowq.meta alter changed_at"
    f" set default case when {RUNS_A_QUERY} then now() end",
    "constraint planted on table rowq.migration": "alter table rowq.migration"
    f" add constraint planted check ({RUNS_A_QUERY}) not valid",
    "index rowq.planted": "create index planted on rowq.migration (bait.fold('1'))",
    "statistics object rowq.planted": "create statistics rowq.planted"
    " on bait.fold('1'), migration_id from rowq.migration",
    "table rowq.meta": "create domain rowq.planted as text check (bait.spring());"
    " alter table rowq.meta alter value type rowq.planted",
    "constraint planted on table rowq.other": "create table rowq.other (name text"
    " constraint planted references rowq.meta on delete cascade)",
    "table bait.day": "create table bait.day partition of rowq.archive"
    " for values from ('2020-01-01') to ('2020-01-02')",
}


@pytest.mark.parametrize("name", PLANTED_BY_A_FORMER_MEMBER)
def test_former_members_object_is_named_and_not_run(
    server: Server, installed: str, superuser: Session, trap: Trap, name: str
) -> None:
    trap.attacker.execute("grant create on schema bait to public")
    superuser.execute("grant rowq_owner to tenant")
    trap.attacker.execute("set role rowq_owner")
    trap.attacker.execute(PLANTED_BY_A_FORMER_MEMBER[name])
    with pytest.raises(migrate.MissingPrivilege) as refusal:
        migrate.migrate(installed)
    assert "revoke rowq_owner from tenant" in str(refusal.value.remedy)
    assert "objects of tenant stay" in str(refusal.value.remedy)
    superuser.execute("revoke rowq_owner from tenant")
    for attempt in (
        migrate.migrate,
        lambda to: migrate.rollback(to, force=True),
        migrate.status,
        lambda to: migrate.plan_rollback(to, 0),
    ):
        with pytest.raises(migrate.ForeignSchema, match=f"RQ802.*{name}"):
            attempt(installed)
    assert doctor(installed)["installed"].status == "failed"
    done = run_script(server, installed)
    assert done.returncode == 3
    assert "RQ802" in done.stderr
    assert not trap.has_sprung


@pytest.mark.parametrize("victim", ["postgres", "mate"])
def test_migrate_refuses_objects_of_another_role(
    server: Server, url: str, tenant_url: str, trap: Trap, login: Login, victim: str
) -> None:
    migrate.migrate(tenant_url)
    for name in ("meta", "migration", "migration_log"):
        plant(trap, name)
    victim_url = url if victim == "postgres" else login("mate", "tenant")
    for attempt in (migrate.migrate, lambda to: migrate.rollback(to, force=True)):
        with pytest.raises(migrate.MissingPrivilege, match="tenant") as refusal:
            attempt(victim_url)
        assert "Connect as tenant" in str(refusal.value.remedy)
    done = run_script(server, victim_url)
    assert done.returncode == 3
    assert "RQ803" in done.stderr
    assert not trap.has_sprung


def test_only_the_sole_member_of_the_owner_upgrades(
    installed: str, superuser: Session, login: Login
) -> None:
    alice = login("alice", "rowq_owner")
    assert migrate.migrate(alice).applied == ()
    login("bob", "rowq_owner")
    with pytest.raises(migrate.MissingPrivilege, match="bob"):
        migrate.migrate(alice)
    with pytest.raises(migrate.MissingPrivilege, match=r"alice|bob"):
        migrate.migrate(installed)
    superuser.execute("revoke rowq_owner from bob")
    assert migrate.migrate(alice).applied == ()
    superuser.execute("revoke rowq_owner from alice")
    assert migrate.migrate(installed).applied == ()


@pytest.mark.parametrize("made", ["login", "superuser", "nologin"])
def test_rowq_owner_with_members_gets_nothing(
    url: str, superuser: Session, login: Login, made: str
) -> None:
    login("mallory")
    superuser.execute(f"create role rowq_owner {made}")
    if made == "nologin":
        superuser.execute("grant rowq_owner to mallory")
    with pytest.raises(migrate.MissingPrivilege, match="rowq_owner"):
        migrate.migrate(url)
    assert superuser.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    stats = "select pg_has_role('rowq_owner', 'pg_read_all_stats', 'member')"
    assert superuser.execute(stats).fetchone() == (made == "superuser",)
    superuser.execute("alter role rowq_owner nologin nosuperuser")
    superuser.execute("revoke rowq_owner from mallory")
    assert migrate.migrate(url).applied == EVERY


def test_empty_schema_of_another_role_is_refused(
    url: str, superuser: Session, tenant_url: str, tenant: Session
) -> None:
    tenant.execute("create schema rowq")
    tenant.execute(OURS)
    with pytest.raises(migrate.MissingPrivilege, match="tenant"):
        migrate.migrate(url)
    assert migrate.migrate(tenant_url).applied == EVERY
    assert superuser.execute(
        "select count(*) from pg_proc where proowner = 'tenant'::regrole and prosecdef"
    ).fetchone() != (0,)


@pytest.mark.parametrize(
    ("kind", "name", "rest"),
    [
        ("table", "rowq.second", "(id integer)"),
        ("function", "rowq.second()", "returns integer security definer return 1"),
    ],
)
def test_foreign_object_in_schema_is_named_and_kept(
    installed: str, superuser: Session, login: Login, kind: str, name: str, rest: str
) -> None:
    mallory = login("mallory")
    superuser.execute("grant usage, create on schema rowq to mallory")
    with psycopg.connect(mallory, autocommit=True) as session:
        session.execute(f"create {kind} {name} {rest}")
    for attempt in (migrate.migrate, migrate.status):
        with pytest.raises(migrate.ForeignSchema, match=r"rowq\.second.*mallory"):
            attempt(installed)
    superuser.execute(f"drop {kind} {name}")
    assert migrate.migrate(installed).applied == ()


OPERATORS = [
    ("=", "oid", "regnamespace", "boolean", "true"),
    ("=", "name", "text", "boolean", "true"),
    ("<>", "name", "text", "boolean", "true"),
    ("=", "regrole", "oid", "boolean", "true"),
    ("-", "timestamptz", "timestamp", "interval", "interval '0'"),
    ("~~", "text", "name", "boolean", "true"),
    ("*", "integer", "float8", "float8", "1"),
]
FUNCTIONS = [
    ("obj_description(oid, text)", "text", "'rowq message queue'"),
    ("to_regclass(text)", "regclass", "null::regclass"),
    ("to_regnamespace(text)", "regnamespace", "2200::regnamespace"),
    ("current_setting(text)", "text", "'on'"),
    ("pg_has_role(oid, text)", "boolean", "true"),
    ("count(boolean)", "bigint", "3"),
]


@pytest.mark.parametrize("path", ["public, pg_catalog", '"$user", public', "public"])
def test_object_in_the_path_is_not_run(
    server: Server, installed: str, superuser: Session, trap: Trap, path: str
) -> None:
    database = superuser.info.dbname
    superuser.execute(f"alter database {database} owner to tenant")
    for place, (operator, left, right, result, answer) in enumerate(OPERATORS):
        trap.set_up(f"public.trap_{place}({left}, {right})", result, answer)
        trap.attacker.execute(
            f"create operator public.{operator}"
            f" (leftarg = {left}, rightarg = {right}, function = public.trap_{place})"
        )
    for signature, result, answer in FUNCTIONS:
        trap.set_up(f"public.{signature}", result, answer)
    for name in ("text", "jsonb", "name", "oid", "timestamptz"):
        trap.attacker.execute(
            f"create domain public.{name} as pg_catalog.{name} check (bait.spring())"
        )
    trap.attacker.execute(f"alter database {database} set search_path = {path}")
    steps: dict[str, Callable[[], object]] = {
        "migrate again": lambda: migrate.migrate(installed),
        "status": lambda: migrate.status(installed),
        "script": lambda: run_script(server, installed).check_returncode(),
        "doctor": lambda: doctor(installed),
        "rollback": lambda: migrate.rollback(installed),
        "status of nothing": lambda: migrate.status(installed),
        "doctor of nothing": lambda: doctor(installed),
        "migrate": lambda: migrate.migrate(installed),
    }
    for name, step in steps.items():
        step()
        assert not trap.has_sprung, name


def test_superusers_doctor_calls_no_foreign_routine(url: str, tenant_url: str, trap: Trap) -> None:
    migrate.migrate(tenant_url)
    for routine in ("version()", "health()"):
        trap.attacker.execute(f"drop function rowq.{routine}")
        trap.set_up(f"rowq.{routine}", "boolean", "true")
    with pytest.raises(migrate.MissingPrivilege, match="tenant"):
        doctor(url)
    assert not trap.has_sprung


def test_doctor_calls_nothing_created_during_its_run(
    url: str, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = migrate.status

    def status_and_ambush(to: str) -> migrate.Status:
        found = look(to)
        make_a_trap_of_rowq(trap)
        return found

    monkeypatch.setattr(migrate, "status", status_and_ambush)
    assert doctor(url)["installed"].status == "failed"
    assert not trap.has_sprung


def test_doctor_calls_no_rowq_replaced_during_its_run(
    url: str, installed: str, trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = migrate.status

    def status_and_ambush(to: str) -> migrate.Status:
        found = look(to)
        migrate.rollback(installed, force=True)
        make_a_trap_of_rowq(trap)
        return found

    monkeypatch.setattr(migrate, "status", status_and_ambush)
    with pytest.raises(migrate.MissingPrivilege, match="tenant"):
        doctor(url)
    assert not trap.has_sprung


def test_database_that_sets_the_role_is_refused(
    url: str, superuser: Session, tenant_url: str
) -> None:
    superuser.execute(f"alter database {superuser.info.dbname} set role = 'tenant'")
    with pytest.raises(migrate.MissingPrivilege, match=r"postgres.*acts as tenant") as refusal:
        migrate.migrate(url)
    assert "reset role" in str(refusal.value.remedy)
    assert superuser.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    assert migrate.migrate(tenant_url).applied == EVERY


def test_role_that_others_can_act_as_does_not_install(
    superuser: Session, tenant_url: str, login: Login
) -> None:
    mate = login("mate", "tenant")
    superuser.execute("alter role mate set role = 'tenant'")
    with pytest.raises(migrate.MissingPrivilege, match="would belong to tenant"):
        migrate.migrate(mate)
    assert superuser.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    assert migrate.migrate(tenant_url).applied == EVERY


def with_a_parameter(routine: str, parameter: str) -> str:
    """Return a statement that adds a first parameter to a routine without overloads."""
    return f"""
        do $do$
        declare
            v_old regprocedure;
        begin
            select p.oid into v_old
            from pg_proc p
            where p.pronamespace = 'rowq'::regnamespace and p.proname = '{routine}';
            execute replace(
                pg_get_functiondef(v_old), 'rowq.{routine}(', $p$rowq.{routine}({parameter}$p$
            );
            execute format('drop function %s', v_old);
        end
        $do$
    """


CHANGED_BY_A_FORMER_MEMBER = {
    "dequeue_wait is changed": """
        do $$ begin execute (
            select regexp_replace(
                pg_get_functiondef(oid), E'\\nbegin', E'\\nbegin perform bait.spring();'
            )
            from pg_proc
            where pronamespace = 'rowq'::regnamespace and proname = 'dequeue_wait'
        ); end $$
    """,
    "internal_require_autocommit is changed": """
        create or replace procedure rowq.internal_require_autocommit(p_routine text)
        language plpgsql
        as 'begin perform bait.spring(); end'
    """,
}
CHANGED_BY_A_FORMER_MEMBER |= {
    "version is changed": "alter function rowq.version security invoker"
    " set search_path = bait, pg_catalog",
    "enqueue is changed": "alter function rowq.enqueue(text, json, bytea, text, jsonb, integer,"
    " double precision, timestamptz, text, integer, text, bigint[], text, double precision,"
    " text)"
    " reset search_path",
    "release is changed": "alter function rowq.release reset search_path",
    "health is changed": with_a_parameter("health", "p integer default length(bait.fold('1'))"),
    "queue_stats is changed": with_a_parameter(
        "queue_stats", f"p boolean default {RUNS_A_QUERY}, "
    ),
    "maintain is changed": "create domain rowq.planted as integer check (bait.spring());"
    + with_a_parameter("maintain", "p rowq.planted default 1, "),
    "internal_poll is changed": "alter function rowq.internal_poll security invoker",
    "internal_wait_until is changed": "alter function rowq.internal_wait_until reset search_path",
    "peek is changed": "create function rowq.peek(p text default '') returns integer"
    " language sql return 1",
    "a newer one installed pg-0999": CHANGED_BY_A_FORMER_MEMBER["dequeue_wait is changed"]
    + "; insert into rowq.migration values ('x', 'pg-0999', now())",
    "only the owner can read the routines": CHANGED_BY_A_FORMER_MEMBER["dequeue_wait is changed"]
    + "; delete from rowq.migration",
}


@pytest.mark.parametrize("change", CHANGED_BY_A_FORMER_MEMBER)
def test_doctor_calls_nothing_if_a_routine_is_modified(
    installed: str, superuser: Session, trap: Trap, change: str
) -> None:
    superuser.execute("grant rowq_owner to tenant")
    trap.attacker.execute("set role rowq_owner")
    trap.attacker.execute(CHANGED_BY_A_FORMER_MEMBER[change])
    superuser.execute("revoke rowq_owner from tenant")
    found = doctor(installed)
    assert found["installed"].status == "failed"
    assert any(change in check.detail for check in found.values())
    assert "rights" not in found
    assert not trap.has_sprung


def test_tenants_lock_does_not_block_a_migration(
    url: str, installed: str, tenant: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c lock_timeout=2s")
    keys = sql.SQL("select pg_advisory_lock(hashtextextended('rowq migrate', 0))")
    tenant.execute(keys)
    assert migrate.migrate(installed).applied == ()
    assert migrate.rollback(installed, to=0).rolled_back == BACK
    assert migrate.migrate(url).applied == EVERY
