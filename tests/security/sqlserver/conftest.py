"""Fixtures of the attacks on SQL Server: strangers, and what tells that their code has run."""

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
    """Return a session in the empty database, as the one who migrates and looks."""
    connection = server.connect(empty_database)
    yield connection
    ENGINE.close(connection)


@pytest.fixture
def login(server: SqlserverServer) -> Iterator[str]:
    """Return the name of a new login without any right."""
    name = f"rowq_test_{uuid.uuid4().hex[:8]}"
    policy = "" if server.is_babelfish else ", check_policy = off"
    with closing(server.connect(server.url)) as admin:
        admin.execute(f"create login {name} with password = N'{PASSWORD}'{policy}")
    yield name
    with closing(server.connect(server.url)) as admin:
        admin.execute(f"drop login {name}")


@pytest.fixture
def stranger(login: str, session: Connection) -> str:
    """Return the name of a user of the empty database, and of its login, without any right."""
    session.execute(f"create user {login} for login {login}")
    return login


@pytest.fixture
def strangers_url(stranger: str, empty_database: str) -> str:
    """Return the URL of the empty database as the stranger has it."""
    parts = urlsplit(empty_database)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{stranger}:{quote(PASSWORD, safe='')}@{host}"))


@pytest.fixture
def ran(session: Connection) -> Callable[[], list[tuple[Any, ...]]]:
    """Return what tells with whose rights a stranger's code has run, by the table dbo.ran."""
    session.execute("create table dbo.ran (who nvarchar(128))")

    def rows() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.execute("select who from dbo.ran").fetchall()]

    return rows
