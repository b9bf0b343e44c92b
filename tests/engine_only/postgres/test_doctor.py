"""rowq doctor for accounts without the role of an administrator."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from rowq.tools.doctor import Status
from rowq.tools.doctor.examine import rights
from tests.engines.base import Connection


@pytest.fixture
def account(connection: Connection) -> Iterator[str]:
    """Return a role without rights; restore the session at the end."""
    name = f"rowq_test_{uuid.uuid4().hex[:8]}"
    connection.execute(sql.SQL("create role {}").format(sql.Identifier(name)))
    yield name
    connection.execute("reset session authorization")
    connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    ("role", "status", "words"),
    [
        (None, Status.FAILED, "no role of rowq is granted"),
        ("producer", Status.WARNING, "has producer; "),
        ("consumer", Status.WARNING, "has consumer; "),
        ("monitor", Status.WARNING, "has monitor; "),
        ("admin", Status.OK, "can call all "),
    ],
)
def test_doctor_finds_the_role_of_an_account(
    connection: Connection, account: str, role: str | None, status: Status, words: str
) -> None:
    name = sql.Identifier(account)
    if role:
        grant = sql.SQL("grant {} to {}")
        connection.execute(grant.format(sql.Identifier(f"rowq_{role}"), name))
    connection.execute(sql.SQL("set session authorization {}").format(name))
    (check,) = rights(connection)
    assert check.status is status
    assert check.detail.startswith(words)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select 1 from rowq.queue")
