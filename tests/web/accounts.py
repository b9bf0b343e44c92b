"""URLs of accounts with one of rowq's roles."""

import itertools
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlencode, urlsplit

import psycopg
from psycopg import sql

from tests.engines.base import Connection, Server
from tests.engines.mysql.accounts import open_account

_numbers = itertools.count(1)


@contextmanager
def account(server: Server, admin: Connection, url: str, role: str) -> Iterator[str]:
    """Create an account with a role, and yield its URL."""
    make = _of_mysql if server.engine == "mysql" else _of_postgres
    with make(admin, url, role) as found:
        yield found


@contextmanager
def _of_postgres(admin: Connection, url: str, role: str) -> Iterator[str]:
    name, password = f"rowq_web_{next(_numbers)}_{secrets.token_hex(4)}", secrets.token_hex(8)
    admin.execute(
        sql.SQL("create role {} login password {} in role {}").format(
            sql.Identifier(name), password, sql.Identifier(role)
        )
    )
    try:
        options = psycopg.conninfo.conninfo_to_dict(url) | {"user": name, "password": password}
        yield f"postgresql:///?{urlencode(options, quote_via=quote)}"
    finally:
        admin.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@contextmanager
def _of_mysql(admin: Connection, url: str, role: str) -> Iterator[str]:
    with open_account(admin, url, role) as opened:
        session = opened()
        assert isinstance(session.user, bytes)
        assert isinstance(session.password, bytes)
        name, password = session.user.decode(), session.password.decode()
        session.close()
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        yield f"{parts.scheme}://{name}:{quote(password)}@{host}/?{parts.query}"
