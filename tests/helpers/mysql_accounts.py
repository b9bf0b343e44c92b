"""Accounts of a MariaDB or MySQL server by the role of rowq that they have."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from rowq.engines.mysql_url import connection_parameters
from tests.engines.base import Connection
from tests.engines.mysql import Session, set_default_role

ROLES = ("producer", "consumer", "monitor", "admin")
NOBODY = "nobody"
"""An account that may connect and nothing else."""

Accounts = dict[str, Session]


@contextmanager
def accounts(admin: Connection, url: str) -> Iterator[Accounts]:
    """Make an account of each role and one of none; return a session of each, by the role."""
    password = secrets.token_hex(12)
    sessions: Accounts = {}
    try:
        for role in (*ROLES, NOBODY):
            name = f"rowq_{role}_user"
            admin.execute(f"create user {name} identified by '{password}'")
            if role in ROLES:
                admin.execute(f"grant rowq_{role} to {name}")
                set_default_role(admin, f"rowq_{role}", name)
            sessions[role] = open_as(url, name, password)
        yield sessions
    finally:
        for role, session in sessions.items():
            session.close()
            admin.execute(f"drop user if exists rowq_{role}_user")


def open_as(url: str, name: str, password: str) -> Session:
    """Open a session of an account on the server of a URL, in no database."""
    parts = {**connection_parameters(url), "user": name, "password": password}
    parts.pop("database", None)
    return Session(**parts, autocommit=True)
