"""Rights granted outside rowq's roles, before or after the installation."""

import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from rowq.tools import migrate
from rowq.tools.doctor import Status, examine
from tests.engines.base import Server
from tests.engines.postgres.psql import psql_program
from tests.helpers.calls import call, call_one, enqueue
from tests.security.postgres.conftest import Login, Session

pytestmark = pytest.mark.promise("P16")

EVERYTHING = (
    "all on tables",
    "all on sequences",
    "all on functions",
    "all on types",
    "all on schemas",
)
FOREIGN = """
    with owner (oid) as (select nspowner from pg_namespace where nspname = 'rowq'),
    granted (kind, name, grantee, privilege, is_grantable) as (
        select 'schema', n.nspname, a.grantee, a.privilege_type, a.is_grantable
        from pg_namespace n, aclexplode(n.nspacl) a
        where n.nspname = 'rowq'
        union all
        select 'relation', c.relname, a.grantee, a.privilege_type, a.is_grantable
        from pg_class c, aclexplode(c.relacl) a
        where c.relnamespace = 'rowq'::regnamespace
        union all
        select 'column', c.relname || '.' || t.attname, a.grantee, a.privilege_type, a.is_grantable
        from pg_class c join pg_attribute t on t.attrelid = c.oid, aclexplode(t.attacl) a
        where c.relnamespace = 'rowq'::regnamespace
        union all
        select 'type', t.typname, a.grantee, a.privilege_type, a.is_grantable
        from pg_type t, aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a
        where t.typnamespace = 'rowq'::regnamespace and t.typtype = 'c'
        union all
        select 'routine', p.proname, a.grantee, a.privilege_type, a.is_grantable
        from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.pronamespace = 'rowq'::regnamespace
    )
    select kind, name, coalesce(r.rolname, 'public'), privilege, is_grantable
    from granted left join pg_roles r on r.oid = grantee
    where grantee not in (select oid from owner)
      and (kind in ('relation', 'column', 'type') or is_grantable or r.rolname not like 'rowq\\_%'
           or r.rolname is null)
    order by 1, 2, 3, 4
"""


def archive_a_day(session: Session) -> None:
    """Finish a message, so that the archive gets a partition."""
    call(session, "create_queue", queue_name="kept", archive_days=1)
    enqueue(session, "kept", "secret")
    claim_id = call_one(session, "dequeue_fast", queue_name="kept").claim_id
    call(session, "complete", queue_name="kept", claim_id=claim_id)
    assert call_one(session, "archive", queue_name="kept").archived == 1


def notices_of_doctor(url: str) -> str:
    [roles] = [check for check in examine(url) if check.check_name == "roles"]
    assert (roles.status is Status.OK) == (roles.detail == "yes")
    return roles.detail


@pytest.fixture
def bob(login: Login) -> Iterator[Session]:
    """Return the session of a user without a rowq role."""
    with psycopg.connect(login("bob"), autocommit=True) as session:
        yield session


@pytest.mark.parametrize("way", ["migrate", "script"])
@pytest.mark.parametrize("installer", ["postgres", "tenant"])
@pytest.mark.usefixtures("bob")
def test_default_privileges_of_the_installer_grant_nothing(
    server: Server, url: str, superuser: Session, tenant_url: str, installer: str, way: str
) -> None:
    superuser.execute('create role "with space"')
    try:
        for right in EVERYTHING:
            superuser.execute(
                f"alter default privileges for role {installer} grant {right}"
                ' to bob, "with space" with grant option'
            )
        target = url if installer == "postgres" else tenant_url
        if way == "migrate":
            migrate.migrate(target)
        else:
            command = [psql_program(server), "--no-psqlrc", "--quiet", "--dbname", target]
            text = migrate.script("postgres")
            subprocess.run(command, input=text, capture_output=True, text=True, check=True)
        with psycopg.connect(target, autocommit=True) as session:
            archive_a_day(session)
        assert superuser.execute(FOREIGN).fetchall() == []
        assert "bob" not in notices_of_doctor(target)
    finally:
        superuser.execute("drop schema if exists rowq cascade")
        superuser.execute('drop owned by "with space"')
        superuser.execute('drop role "with space"')


def test_later_grants_are_revoked_whatever_their_grantor(
    installed: str, superuser: Session, bob: Session, login: Login
) -> None:
    archive_a_day(superuser)
    carol = sql.Identifier('Carol\'s "own"')
    superuser.execute(sql.SQL("create role {}").format(carol))
    login("dave")
    try:
        superuser.execute("grant usage on schema rowq to bob")
        for statement in (
            "grant create on schema rowq to {}",
            "grant all on all tables in schema rowq to {}, bob with grant option",
            "grant all on all sequences in schema rowq to {}",
            "grant select (body), update (body) on rowq.message to {}",
            "grant usage on type rowq.message to {}",
            "grant execute on function rowq.internal_delete_messages to {}",
            "grant execute on function rowq.enqueue(text, text, bytea, text, jsonb, integer,"
            " double precision, timestamptz, text, integer, text, bigint[], text, double precision,"
            " text)"
            " to rowq_producer with grant option",
        ):
            superuser.execute(sql.SQL(statement).format(carol))
        bob.execute("grant select on rowq.archive, rowq.message to dave")
        [notice] = migrate.migrate(installed).notices
        assert "bob" in notice
        assert superuser.execute(FOREIGN).fetchall() == [("schema", "rowq", "bob", "USAGE", False)]
        assert (
            superuser.execute(
                "select has_function_privilege('rowq_producer', p.oid, 'execute')"
                " from pg_proc p where p.proname = 'enqueue'"
            ).fetchall()
            == [(True,)] * 3
        )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            bob.execute("select from rowq.message")
    finally:
        superuser.execute(sql.SQL("drop owned by {}").format(carol))
        superuser.execute(sql.SQL("drop role {}").format(carol))


@pytest.mark.usefixtures("bob")
def test_dbas_grant_on_a_routine_stays_and_is_named(installed: str, superuser: Session) -> None:
    superuser.execute("grant usage on schema rowq to bob")
    superuser.execute("grant execute on function rowq.version, rowq.peek to bob")
    superuser.execute("grant execute on procedure rowq.dequeue_wait to bob")
    superuser.execute("grant execute on function rowq.internal_poll to bob")
    for _ in range(2):
        [notice] = migrate.migrate(installed).notices
        for word in ("bob", "schema rowq", "version", "peek", "dequeue_wait", "internal_poll"):
            assert word in notice
        assert "bob" in notices_of_doctor(installed)
        assert migrate.status(installed).notices == (notice,)
    superuser.execute("revoke all on all routines in schema rowq from bob")
    superuser.execute("revoke all on schema rowq from bob")
    assert migrate.migrate(installed).notices == ()
    assert notices_of_doctor(installed) == "yes"


@pytest.mark.parametrize("place", ["", "in schema rowq"])
def test_former_members_default_privileges_are_removed(
    installed: str, superuser: Session, bob: Session, login: Login, place: str
) -> None:
    with psycopg.connect(login("former", "rowq_owner"), autocommit=True) as session:
        for right in EVERYTHING[: 4 if place else 5]:
            session.execute(
                f"alter default privileges for role rowq_owner {place} grant {right} to bob"
            )
    superuser.execute("revoke rowq_owner from former")
    superuser.execute("grant usage on schema rowq to bob")
    archive_a_day(superuser)
    query = """
        select inhrelid::regclass::text from pg_inherits
        where inhparent = 'rowq.archive'::regclass
    """
    ((partition,),) = superuser.execute(query).fetchall()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bob.execute(f"select from {partition}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        bob.execute(f"create temporary table stolen (one_row {partition})")
    migrate.migrate(installed)
    left = """
        select d.defaclobjtype, a.grantee::regrole from pg_default_acl d, aclexplode(d.defaclacl) a
        where a.grantee <> d.defaclrole
    """
    assert superuser.execute(left).fetchall() == []
    made = """
        set role rowq_owner;
        create function rowq.later() returns integer language sql return 1;
        reset role
    """
    superuser.execute(made)
    mine = "select has_function_privilege('bob', 'rowq.later()', 'execute')"
    assert superuser.execute(mine).fetchone() == (False,)


@pytest.mark.usefixtures("bob")
def test_owners_default_privileges_spare_the_archive(
    superuser: Session, tenant_url: str, tenant: Session
) -> None:
    migrate.migrate(tenant_url)
    tenant.execute("alter default privileges grant all on tables to bob, public")
    tenant.execute("alter default privileges grant all on types to bob")
    superuser.execute("grant usage on schema rowq to bob")
    archive_a_day(tenant)
    [foreign] = superuser.execute(FOREIGN).fetchall()
    assert foreign == ("schema", "rowq", "bob", "USAGE", False)


@pytest.mark.parametrize(
    "made",
    [
        "create function rowq.enqueue(text, varchar) returns int language sql return 1",
        "create type rowq.mood as enum ('good')",
        "create domain rowq.number as integer",
    ],
)
def test_foreign_routine_or_type_is_named_and_kept(
    installed: str, superuser: Session, bob: Session, made: str
) -> None:
    superuser.execute("grant usage, create on schema rowq to bob")
    bob.execute(made)
    for attempt in (migrate.migrate, lambda to: migrate.rollback(to, force=True)):
        with pytest.raises(migrate.ForeignSchema, match=r"rowq\.\w+.* belongs to bob"):
            attempt(installed)
    owned = """
        select from pg_proc where proowner = 'bob'::regrole
        union all
        select from pg_type where typowner = 'bob'::regrole and typelem = 0
    """
    assert len(superuser.execute(owned).fetchall()) == 1
    superuser.execute("drop owned by bob")
    assert migrate.migrate(installed).applied == ()
