"""A tenant's extension in the schema is neither taken over nor an obstacle."""

import pytest

from rowq.tools import migrate
from tests.helpers.releases import BACK, NEWEST
from tests.security.postgres.conftest import Login, Session


@pytest.fixture(autouse=True)
def _trusted(superuser: Session) -> None:
    query = "select from pg_available_extensions where name = 'citext'"
    if superuser.execute(query).fetchone() is None:
        pytest.skip("the server has no extension citext; to run it: one with its contrib")


def owners(superuser: Session) -> set[object]:
    """Return the owners of the extension's routines and types."""
    query = """
        select p.proowner::regrole::text from pg_proc p
        join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid
        where d.deptype = 'e' and p.pronamespace = 'rowq'::regnamespace
        union
        select t.typowner::regrole::text from pg_type t where t.oid = 'rowq.citext'::regtype
    """
    return {row[0] for row in superuser.execute(query)}


@pytest.mark.promise("P16")
def test_extension_in_the_schema_keeps_owner_and_rights(
    installed: str, superuser: Session, tenant: Session
) -> None:
    tenant.execute("create extension citext schema rowq")
    assert migrate.migrate(installed).notices == ()
    assert owners(superuser) == {"postgres"}
    query = "select has_function_privilege('public', 'rowq.citextin(cstring)', 'execute')"
    assert superuser.execute(query).fetchone() == (True,)
    found = migrate.status(installed)
    assert (found.drift, found.notices) == ((), ())


@pytest.mark.promise("P16")
def test_ordinary_owner_migrates_beside_an_extension(
    superuser: Session, tenant: Session, login: Login
) -> None:
    owner = login("shop")
    superuser.execute(f"grant create on database {superuser.info.dbname} to shop")
    migrate.migrate(owner)
    tenant.execute("create extension citext schema rowq")
    superuser.execute("create table rowq.part_of_it (id integer generated always as identity)")
    superuser.execute("alter extension citext add table rowq.part_of_it")
    migrate.migrate(owner)
    assert owners(superuser) == {"postgres"}
    assert migrate.status(owner).drift == ()
    with pytest.raises(migrate.SchemaInUse, match=r"RQ808.*citext") as refusal:
        migrate.rollback(owner)
    assert "alter extension citext set schema" in str(refusal.value.remedy)
    assert migrate.status(owner).installed == NEWEST
    superuser.execute("create schema other")
    superuser.execute("alter extension citext set schema other")
    assert migrate.rollback(owner, to=0).rolled_back == BACK


@pytest.mark.promise("P16")
@pytest.mark.parametrize("part", ["table rowq.message", "function rowq.health"])
def test_former_members_extension_member_is_named(
    installed: str, superuser: Session, tenant: Session, part: str
) -> None:
    tenant.execute("create schema own")
    tenant.execute("create extension citext schema own")
    superuser.execute("grant rowq_owner to tenant")
    tenant.execute(f"alter extension citext add {part}")
    superuser.execute("revoke rowq_owner from tenant")
    for attempt in (migrate.migrate, migrate.status, migrate.rollback):
        with pytest.raises(migrate.ForeignSchema, match=f"{part}.*citext.* tenant"):
            attempt(installed)
    superuser.execute(f"alter extension citext drop {part}")
    assert migrate.migrate(installed).applied == ()
    assert migrate.status(installed).drift == ()
