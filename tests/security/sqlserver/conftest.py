"""Fixtures of the attacks on SQL Server: other users, and a record of their code's runs."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import pytest

from rowq.engines.sqlserver.engine import ENGINE
from tests.engines.base import Connection, Server
from tests.engines.sqlserver.server import SqlserverServer

PASSWORD = "Stranger-1; password"


@pytest.fixture
def session(server: Server, empty_database: str) -> Iterator[Connection]:
    """Return the installing user's session in the empty database."""
    connection = server.connect(empty_database)
    yield connection
    ENGINE.close(connection)


@pytest.fixture
def login(server: SqlserverServer) -> Iterator[str]:
    """Return a new login without rights."""
    name = f"rowq_test_{uuid.uuid4().hex[:8]}"
    policy = "" if server.is_babelfish else ", check_policy = off"
    with closing(server.connect(server.url)) as admin:
        admin.execute(f"create login {name} with password = N'{PASSWORD}'{policy}")
    yield name
    with closing(server.connect(server.url)) as admin:
        admin.execute(f"drop login {name}")


@pytest.fixture
def stranger(login: str, session: Connection) -> str:
    """Return a user of the empty database, and its login, without rights."""
    session.execute(f"create user {login} for login {login}")
    return login


@pytest.fixture
def strangers_url(stranger: str, empty_database: str) -> str:
    """Return the empty database's URL for the other user."""
    parts = urlsplit(empty_database)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{stranger}:{quote(PASSWORD, safe='')}@{host}"))


@pytest.fixture
def ran(session: Connection) -> Callable[[], list[tuple[Any, ...]]]:
    """Return a function that reads from dbo.ran whose rights ran the other user's code."""
    session.execute("create table dbo.ran (who nvarchar(128))")

    def rows() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.execute("select who from dbo.ran").fetchall()]

    return rows
