"""Accounts of a MariaDB or MySQL server, one for each role of rowq."""

import itertools
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from rowq.contract import load_contract
from rowq.engines.mysql.url import connection_parameters
from tests.engines.base import Connection
from tests.engines.mysql.server import Session, set_default_role

ROLES = load_contract().roles
NO_ROLE = "no_role"
"""An account without a role."""

Accounts = dict[str, Session]

_numbers = itertools.count(1)


@contextmanager
def accounts(admin: Connection, url: str) -> Iterator[Accounts]:
    """Create an account for each role and one without; yield a session of each, by role."""
    with ExitStack() as stack:
        sessions: Accounts = {}
        for role in (*ROLES, NO_ROLE):
            granted = f"rowq_{role}" if role in ROLES else None
            opened = stack.enter_context(open_account(admin, url, granted))
            sessions[role] = stack.enter_context(closing(opened()))
        yield sessions


@contextmanager
def open_account(
    admin: Connection, url: str, *granted: str | None
) -> Iterator[Callable[[], Session]]:
    """Create an account with roles; yield a function that opens a session without a database."""
    name, password = f"rowq_user_{next(_numbers)}", secrets.token_hex(12)
    admin.execute(f"create user {name} identified by '{password}'")
    try:
        for role in filter(None, granted):
            admin.execute(f"grant {role} to {name}")
            set_default_role(admin, role, name)
        parts = {**connection_parameters(url), "user": name, "password": password}
        parts.pop("database", None)
        yield lambda: Session(**parts, autocommit=True)
    finally:
        admin.execute(f"drop user {name}")
