"""Owners, rights and who may migrate; on a private server because roles are server-wide."""

import re
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from rowq.tools import migrate
from tests.engines.postgres.server import PostgresServer
from tests.helpers.releases import BACK, EVERY, NEWEST
from tests.migrations.catalog import snapshot
from tests.migrations.conftest import Psql
from tests.static.sources import ROOT

ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor")
GRANTED = """
    select p.proname, p.proacl::text, p.xmin::text
    from pg_proc p where p.pronamespace = 'rowq'::regnamespace order by p.oid
"""

Session = psycopg.Connection[tuple[object, ...]]
AsUser = Callable[[str], str]


@pytest.fixture
def url(cluster: PostgresServer) -> Iterator[str]:
    """Return the superuser's URL of an empty database on the module's server."""
    made = cluster.fresh_database()
    yield made
    cluster.drop_database(made)


@pytest.fixture
def admin(cluster: PostgresServer, url: str) -> Iterator[Session]:
    with cluster.connect(url) as connection:
        yield connection


@pytest.fixture
def user(admin: Session, url: str) -> Iterator[AsUser]:
    """Return a function that creates a login role and returns its URL.

    At the end of the test, drop these roles and rowq's.
    """
    made: list[str] = []

    def make(name: str) -> str:
        admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        made.append(name)
        before, _, after = url.partition("postgres@")
        assert after, make_conninfo(url, password=None)
        return f"{before}{name}@{after}"

    yield make
    admin.execute("drop schema if exists rowq cascade")
    for role in (*made, *ROLES, "rowq_owner"):
        if admin.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone():
            name = sql.Identifier(role)
            admin.execute(sql.SQL("drop owned by {}").format(name))
            admin.execute(sql.SQL("drop role {}").format(name))


def rights(admin: Session, role: str) -> set[str]:
    """Return the routines that a role may execute."""
    query = """
        select p.proname from pg_proc p
        where p.pronamespace = 'rowq'::regnamespace and has_function_privilege(%s, p.oid, 'execute')
    """
    return {str(row[0]) for row in admin.execute(query, [role])}


@pytest.mark.promise("P16")
def test_superusers_installation_belongs_to_rowq_owner(
    url: str, admin: Session, user: AsUser
) -> None:
    user("app")
    done = migrate.migrate(url)
    assert done.notices == ()
    parts = snapshot(admin)
    assert {row[0] for row in parts["schema"]} == {"rowq_owner"}
    assert {row[3] for row in parts["relations"]} == {"rowq_owner"}
    assert {row[2] for row in parts["routines"]} == {"rowq_owner"}
    owner = "select rolsuper, rolcanlogin from pg_roles where rolname = 'rowq_owner'"
    assert admin.execute(owner).fetchone() == (False, False)
    assert migrate.status(url).roles == dict.fromkeys(("rowq_owner", *ROLES), True)


@pytest.mark.promise("P16")
def test_rollback_names_statements_that_drop_the_roles(
    cluster: PostgresServer, url: str, admin: Session, user: AsUser
) -> None:
    user("clerk")
    other = cluster.fresh_database()
    migrate.migrate(other)
    migrate.migrate(url)
    (notice,) = migrate.rollback(url, 0).notices
    _, _, text = notice.partition("a DBA can run: ")
    statements = text.split("; ")
    assert [one.rstrip(";").removeprefix("drop role ") for one in statements] == [
        *ROLES, "rowq_owner",
    ]  # fmt: skip
    for statement in statements:
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            admin.execute(statement)
    cluster.drop_database(other)
    for statement in statements:
        admin.execute(statement)
    assert admin.execute("select 1 from pg_roles where rolname like 'rowq%'").fetchone() is None


def test_public_and_other_roles_have_no_right(url: str, admin: Session, user: AsUser) -> None:
    user("stranger")
    migrate.migrate(url)
    assert rights(admin, "stranger") == set()
    query = """
        select c.relname from pg_class c
        where c.relnamespace = 'rowq'::regnamespace and c.relkind in ('r', 'p', 'S')
          and exists (
              select from aclexplode(c.relacl) a where a.grantee <> c.relowner
          )
    """
    assert admin.execute(query).fetchall() == []
    usage = "select has_schema_privilege('stranger', 'rowq', 'usage')"
    assert admin.execute(usage).fetchone() == (False,)


@pytest.mark.pitfall("postgres 8")
def test_default_privileges_of_public_are_revoked(url: str, admin: Session, user: AsUser) -> None:
    user("stranger")
    for kind in ("tables", "sequences", "functions"):
        admin.execute(f"alter default privileges grant all on {kind} to public")
    migrate.migrate(url)
    readable = "select has_table_privilege('stranger', 'rowq.message', 'select')"
    assert admin.execute(readable).fetchone() == (False,)
    assert rights(admin, "stranger") == set()


def test_second_migrate_changes_no_right(url: str, admin: Session, user: AsUser) -> None:
    user("app")
    migrate.migrate(url)
    before = admin.execute(GRANTED).fetchall()
    assert migrate.migrate(url).notices == ()
    assert admin.execute(GRANTED).fetchall() == before


def test_second_migrate_restores_rights_and_keeps_others(
    url: str, admin: Session, user: AsUser
) -> None:
    user("app")
    migrate.migrate(url)
    before = snapshot(admin)
    admin.execute("revoke all on function rowq.peek from rowq_consumer")
    admin.execute("grant select on rowq.message to public")
    admin.execute("grant execute on function rowq.drop_queue to public, rowq_producer")
    admin.execute("grant create on schema rowq to rowq_monitor")
    migrate.migrate(url)
    assert snapshot(admin) == before

    admin.execute("grant execute on function rowq.version to app")
    migrate.migrate(url)
    assert rights(admin, "app") == {"version"}


def test_ordinary_user_installs_without_roles_and_gets_notices(
    admin: Session, user: AsUser
) -> None:
    app = user("app")
    admin.execute(f"grant create on database {admin.info.dbname} to app")
    done = migrate.migrate(app)
    assert done.applied == EVERY
    assert len(done.notices) == len(ROLES)
    assert "create role rowq_producer nologin" in done.notices[0]
    status = migrate.status(app)
    assert status.owner == "app"
    assert status.roles == dict.fromkeys(ROLES, False)
    assert len(status.notices) == len(ROLES)
    said = "select obj_description('rowq.peek'::regproc, 'pg_proc')"
    assert admin.execute(said).fetchone() == ("Show the next ready messages without leasing them.",)
    user("stranger")
    assert rights(admin, "stranger") == set()

    for role in ROLES:
        admin.execute(f"create role {role} nologin")
    assert migrate.migrate(app).notices == ()
    monitors = {"version", "health", "queue_stats", "list_dead", "list_claims", "list_delayed"}
    monitors |= {"list_topics", "list_schedules", "list_workers", "next_ticks", "explain_message"}
    assert rights(admin, "rowq_monitor") == monitors
    assert migrate.status(app).notices == ()
    assert migrate.rollback(app, to=0).rolled_back == BACK


def test_user_with_createrole_gets_roles_but_no_owner(admin: Session, user: AsUser) -> None:
    app = user("app")
    admin.execute("alter role app createrole")
    admin.execute(f"grant create on database {admin.info.dbname} to app")
    assert migrate.migrate(app).notices == ()
    status = migrate.status(app)
    assert status.owner == "app"
    assert status.roles == dict.fromkeys(ROLES, True)


def test_managed_servers_admin_installs_grants_and_removes(
    cluster: PostgresServer, url: str, admin: Session, user: AsUser
) -> None:
    """docs/install.md describes this account: managed services have no superuser."""
    master = user("master")
    admin.execute("alter role master createrole createdb")
    admin.execute(f"alter database {admin.info.dbname} owner to master")
    assert migrate.migrate(master).notices == ()
    status = migrate.status(master)
    assert (status.owner, status.roles, status.notices) == (
        "master",
        dict.fromkeys(ROLES, True),
        (),
    )
    with cluster.connect(master) as session:
        session.execute("create role web login")
        session.execute("grant rowq_producer, rowq_consumer to web")
        session.execute("select rowq.create_queue('orders')")
        with cluster.connect(master.replace("master@", "web@")) as web:
            web.execute("select rowq.enqueue('orders', '1')")
            web.execute("select rowq.dequeue_fast('orders')")
            assert web.execute("select elected from rowq.maintain()").fetchone() == (True,)

        horizon = "select value > 0 from rowq.health() where check_name = 'clean_up_horizon'"
        with cluster.connect(url) as other, other.transaction():
            other.execute("select pg_current_xact_id(), pg_sleep(1.1)")
            assert session.execute(horizon).fetchone() == (False,)
            admin.execute("grant pg_read_all_stats to master")
            assert session.execute(horizon).fetchone() == (True,)
        session.execute("drop role web")

        (notice,) = migrate.rollback(master, 0, force=True).notices
        for statement in notice.partition("a DBA can run: ")[2].split("; "):
            session.execute(statement)
    assert admin.execute("select 1 from pg_roles where rolname like 'rowq%'").fetchone() is None
    admin.execute(f"alter database {admin.info.dbname} owner to postgres")


def test_install_page_removes_everything_without_python(
    url: str, admin: Session, user: AsUser
) -> None:
    user("clerk")
    migrate.migrate(url)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    row = page.partition("| | Without Python |")[2].partition("\n| PostgreSQL |")[2]
    for statement in re.findall("`([^`]+;)`", row.partition("\n")[0]):
        admin.execute(statement)
    assert admin.execute("select 1 from pg_roles where rolname like 'rowq%'").fetchone() is None
    assert admin.execute("select to_regnamespace('rowq')").fetchone() == (None,)


def test_superuser_does_not_take_over_a_users_installation(
    url: str, admin: Session, user: AsUser
) -> None:
    app = user("app")
    admin.execute(f"grant create on database {admin.info.dbname} to app")
    migrate.migrate(app)
    for refused in (migrate.migrate, migrate.status):
        with pytest.raises(migrate.MissingPrivilege, match="schema rowq belongs to app") as refusal:
            refused(url)
        assert refusal.value.remedy == "Connect as app."
    assert migrate.status(app).owner == "app"
    assert {row[2] for row in snapshot(admin)["routines"]} == {"app"}
    assert migrate.rollback(app, to=0).rolled_back == BACK


def test_missing_create_right_names_the_dbas_statement(admin: Session, user: AsUser) -> None:
    app = user("My App")
    with pytest.raises(migrate.MissingPrivilege, match="RQ803") as refusal:
        migrate.migrate(app.replace("My App", "My%20App"))
    statement = str(refusal.value.remedy).partition("must run: ")[2]
    assert statement == f'grant create on database {admin.info.dbname} to "My App";'
    assert admin.execute("select to_regnamespace('rowq')").fetchone() == (None,)

    admin.execute(statement)
    assert migrate.migrate(app.replace("My App", "My%20App")).applied == EVERY


def test_schema_created_by_a_dba_needs_no_create_right(admin: Session, user: AsUser) -> None:
    app = user("app")
    admin.execute("create schema rowq authorization app")
    admin.execute("comment on schema rowq is 'rowq message queue'")
    assert migrate.migrate(app).applied == EVERY
    assert migrate.status(app).owner == "app"


@pytest.mark.usefixtures("second_release")
def test_only_members_of_the_owner_upgrade(url: str, admin: Session, user: AsUser) -> None:
    app = user("app")
    migrate.migrate(url, to=1)
    with pytest.raises(migrate.MissingPrivilege, match="belongs to rowq_owner") as refusal:
        migrate.migrate(app)
    with pytest.raises(migrate.MissingPrivilege, match="belongs to rowq_owner"):
        migrate.status(app)

    admin.execute(str(refusal.value.remedy).partition("must run: ")[2])
    assert migrate.migrate(app).applied == (2,)
    parts = snapshot(admin)
    assert {row[3] for row in parts["relations"]} == {"rowq_owner"}
    assert {row[2] for row in parts["routines"]} == {"rowq_owner"}
    assert migrate.rollback(app).rolled_back == (2,)


def test_script_warns_of_missing_roles(admin: Session, user: AsUser, psql: Psql) -> None:
    app = user("app")
    admin.execute(f"grant create on database {admin.info.dbname} to app")
    done = psql(app, text=migrate.script("postgres"))
    assert done.returncode == 0
    assert done.stderr.count("is missing, and app cannot create it") == len(ROLES) * NEWEST
