"""Fixtures: a private server with other users, and a trap that records who ran it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from psycopg import sql

from rowq.tools.migrate import migrate
from tests.engines.base import Server, Unavailable
from tests.engines.postgres.providers import PostgresProvider
from tests.engines.postgres.server import PostgresServer
from tests.helpers.calls import call

Session = psycopg.Connection[tuple[object, ...]]
OWN_ROLES = ("rowq_producer", "rowq_consumer", "rowq_admin", "rowq_monitor", "rowq_owner")


@dataclass(frozen=True, slots=True)
class Trap:
    """An attacker's function that counts each run in another user's session.

    It counts with a sequence, which no rollback reverts.
    """

    victim: Session
    attacker: Session

    def set_up(self, signature: str, returns: str, answer: str) -> None:
        """Create a function of the attacker that springs the trap and returns `answer`."""
        self.attacker.execute(
            f"""
            create or replace function {signature} returns {returns} language plpgsql as $$
            begin
                if session_user <> {sql.quote(self.attacker.info.user)} then
                    perform pg_catalog.nextval('bait.sprung');
                end if;
                return {answer};
            end;
            $$
            """
        )

    @property
    def has_sprung(self) -> bool:
        """Whether another user ran one of the attacker's functions."""
        row = self.victim.execute("select is_called from bait.sprung").fetchone()
        assert row is not None
        return bool(row[0])


@pytest.fixture(scope="module")
def cluster(server: Server) -> Iterator[PostgresServer]:
    """Return a server for this module only: roles are server-wide."""
    try:
        own = PostgresProvider().from_local(server.name.removeprefix("postgres"))
    except Unavailable as reason:
        pytest.skip(f"no server of its own: {reason}; to run it: make install")
    yield own
    own.close()


@pytest.fixture
def url(cluster: PostgresServer) -> Iterator[str]:
    """Return the superuser's URL of an empty database."""
    made = cluster.fresh_database()
    yield made
    cluster.drop_database(made)


@pytest.fixture
def superuser(url: str) -> Iterator[Session]:
    """Return the superuser's session in that database."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


Login = Callable[..., str]


@pytest.fixture
def login(superuser: Session, url: str) -> Iterator[Login]:
    """Return a function that creates a login role and returns its URL.

    At the end, drop these roles and rowq's.
    """
    made: list[str] = []

    def make(name: str, *granted: str) -> str:
        superuser.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
        made.append(name)
        for role in granted:
            grant = sql.SQL("grant {} to {}")
            superuser.execute(grant.format(sql.Identifier(role), sql.Identifier(name)))
        before, _, after = url.partition("postgres@")
        assert after
        return f"{before}{name}@{after}"

    yield make
    superuser.execute("drop schema if exists rowq cascade")
    superuser.execute(f"alter database {superuser.info.dbname} owner to postgres")
    for role in (*made, *OWN_ROLES):
        if superuser.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone():
            name = sql.Identifier(role)
            superuser.execute(sql.SQL("drop owned by {} cascade").format(name))
            superuser.execute(sql.SQL("drop role {}").format(name))


@pytest.fixture
def tenant_url(superuser: Session, login: Login) -> str:
    """Return the URL of a role whose only right is to create schemas in the database."""
    found = login("tenant")
    superuser.execute(f"grant create on database {superuser.info.dbname} to tenant")
    return found


@pytest.fixture
def tenant(tenant_url: str) -> Iterator[Session]:
    """Return that role's session."""
    with psycopg.connect(tenant_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def trap(superuser: Session, tenant: Session) -> Trap:
    """Return the tenant's trap, not yet in any path."""
    tenant.execute("create schema bait")
    tenant.execute("create sequence bait.sprung")
    tenant.execute("grant usage on schema bait to public")
    tenant.execute("grant all on sequence bait.sprung to public")
    made = Trap(superuser, tenant)
    made.set_up("bait.spring()", "boolean", "true")
    made.set_up("bait.spring_trigger()", "trigger", "new")
    made.set_up("bait.fold(text)", "text", "$1")
    tenant.execute("alter function bait.fold immutable")
    return made


@pytest.fixture
def installed(url: str, login: Login) -> str:  # noqa: ARG001 - it drops rowq's roles at the end
    """Return the URL of a database where the superuser installed rowq."""
    migrate(url)
    return url


@pytest.fixture
def owner(installed: str) -> Iterator[Session]:
    """Return a superuser's session, with a queue that has an archive."""
    with psycopg.connect(installed, autocommit=True) as session:
        call(session, "create_queue", queue_name="q", archive_days=1)
        yield session
