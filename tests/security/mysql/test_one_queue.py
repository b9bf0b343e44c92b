"""An account with the one-queue right of sql/RIGHTS.md can do nothing else."""

from collections.abc import Iterator

import pymysql
import pytest

from rowq.engines.mysql.url import connection_parameters
from tests.engines.base import Connection
from tests.engines.mysql.server import Session
from tests.helpers.calls import call, counts
from tests.security.recipes import recipe

ACCOUNTS = ("sender", "shop", "stranger")
ENQUEUE = f"call rowq.enqueue('{{}}', 'a'{', null' * 13})"
SEND = "call shop.send_order('a')"


@pytest.fixture
def admin(connection: Connection) -> Iterator[Connection]:
    """Return a session, with an empty database `shop` and the recipe's queues."""
    connection.execute("create database shop")
    for queue in ("orders", "payroll"):
        call(connection, "create_queue", queue_name=queue)
    yield connection
    for queue in ("orders", "payroll"):
        call(connection, "drop_queue", queue_name=queue, force=True)
    connection.execute("drop database shop")


@pytest.fixture
def accounts(admin: Connection, database_url: str) -> Iterator[dict[str, Session]]:
    """Return each account's session, without any right yet."""
    parts = {**connection_parameters(database_url), "password": "x"}
    parts.pop("database", None)
    sessions = {}
    for name in ACCOUNTS:
        admin.execute(f"create user {name} identified by 'x'")
        sessions[name] = Session(**{**parts, "user": name}, autocommit=True)
    yield sessions
    for name, session in sessions.items():
        session.close()
        admin.execute(f"drop user {name}")


def refused(session: Session, statement: str) -> None:
    """Check that a session may not execute a statement."""
    with pytest.raises(pymysql.err.OperationalError, match="denied"):
        session.execute(statement)


@pytest.mark.promise("P16")
def test_procedure_for_one_queue_allows_no_other_queue(
    admin: Connection, accounts: dict[str, Session]
) -> None:
    admin.execute("grant execute on procedure rowq.enqueue to sender")
    admin.execute("grant all on shop.* to sender with grant option")
    for statement in recipe("MariaDB and MySQL"):
        accounts["sender"].execute(statement)
    assert accounts["shop"].execute(SEND).fetchone() is not None
    for own in (ENQUEUE.format("payroll"), ENQUEUE.format("orders")):
        refused(accounts["shop"], own)
    refused(accounts["stranger"], SEND)
    assert counts(admin, "orders") == (1, 0, 0, 0)
    assert counts(admin, "payroll") == (0, 0, 0, 0)
