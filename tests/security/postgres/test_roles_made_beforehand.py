"""A rowq role under another user's control is refused or reported."""

import psycopg
import pytest

from rowq.tools import migrate
from rowq.tools.doctor import examine
from tests.helpers.releases import EVERY
from tests.security.postgres.conftest import Login, Session

HANDS = {
    "login": "alter role rowq_admin login",
    "superuser": "alter role rowq_admin superuser",
    "createrole": "alter role rowq_admin createrole",
    "admin option": "grant rowq_admin to boss with admin option",
    "admin option of a group": "grant rowq_admin to team with admin option; grant team to boss",
}


def is_reported(url: str) -> bool:
    """Return whether status and doctor report the same role as migrate."""
    told = migrate.status(url).notices
    [roles] = [check for check in examine(url) if check.check_name == "roles"]
    assert roles.detail == ("; ".join(told) or "yes")
    assert migrate.migrate(url).notices == told
    return any("rowq_admin" in notice for notice in told)


@pytest.mark.promise("P16")
@pytest.mark.parametrize("hands", HANDS)
def test_role_with_members_is_refused_then_reported(
    url: str, superuser: Session, login: Login, hands: str
) -> None:
    login("boss")
    login("team")
    superuser.execute("create role rowq_admin")
    superuser.execute(HANDS[hands])
    with pytest.raises(migrate.MissingPrivilege, match="rowq_admin") as refusal:
        migrate.migrate(url)
    assert superuser.execute("select to_regnamespace('rowq')").fetchone() == (None,)
    remedy = str(refusal.value.remedy).removeprefix("A DBA must run: ").partition(" Or ")[0]
    superuser.execute(remedy)
    assert migrate.migrate(url).applied == EVERY
    assert not is_reported(url)
    superuser.execute(HANDS[hands])
    assert is_reported(url)


@pytest.mark.promise("P16")
def test_creator_of_a_role_does_not_become_admin(
    url: str, superuser: Session, login: Login
) -> None:
    if superuser.info.server_version < 160000:
        pytest.skip(
            "before 16 a creator of roles may grant all of them; to run it: --engine postgres16"
        )
    boss = login("boss")
    superuser.execute("alter role boss createrole")
    with psycopg.connect(boss, autocommit=True) as session:
        session.execute("create role rowq_admin")
    with pytest.raises(migrate.MissingPrivilege, match="rowq_admin can be granted by boss"):
        migrate.migrate(url)


@pytest.mark.promise("P16")
def test_creator_of_the_roles_gets_notices_of_others_only(superuser: Session, login: Login) -> None:
    app = login("app")
    superuser.execute("alter role app createrole")
    superuser.execute(f"grant create on database {superuser.info.dbname} to app")
    assert migrate.migrate(app).notices == ()
    assert not is_reported(app)
    login("boss")
    superuser.execute("grant rowq_admin to boss with admin option")
    assert is_reported(app)
