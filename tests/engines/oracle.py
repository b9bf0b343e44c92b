"""A running Oracle Database as the tests need it: a schema of its own is a database to them."""

from __future__ import annotations

import contextlib
import secrets
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import oracledb

from rowq.errors import CannotConnect
from rowq.migrate.oracle.look import ROLES
from tests.engines.base import Unavailable, wait_until
from tests.engines.oracle_session import Session, open_session

RIGHTS = ("create session", "create table", "create sequence", "create type", "create procedure")
"""What sql/oracle/README.md says an owner of rowq needs, besides a quota: nothing else is given."""

# A session's number is its serial number and its place; places are soon used again.
_PLACES = 1_000_000
_WHAT = """
    select p.version_full, p.product, sys_context('userenv', 'con_name'),
        (select d.property_value from database_properties d
         where d.property_name = 'DEFAULT_PERMANENT_TABLESPACE')
    from product_component_version p
    where p.product like 'Oracle%'
    """
_WAITS = """
    select w.sid, ws.serial#, h.sid, hs.serial#
    from v$lock w
    join v$lock h on h.type = w.type and h.id1 = w.id1 and h.id2 = w.id2 and h.sid <> w.sid
    join v$session ws on ws.sid = w.sid
    join v$session hs on hs.sid = h.sid
    where w.request > 0 and h.lmode > 0 and h.block > 0
    """
_SESSIONS = """
    select s.sid, s.serial# from v$session s where s.username = :owner and s.status <> 'KILLED'
    """
_IS_THERE = "select count(*) from v$session s where s.sid = :place and s.serial# = :serial"
_DEADLOCKS = "select s.value from v$sysstat s where s.name = 'enqueue deadlocks'"
_NAME_TAKEN, _STILL_CONNECTED, _NO_SUCH_USER = 1921, 1940, 1918


class OracleServer:
    """An Oracle Database, however it runs.

    url: of an account that may create users and roles, look at the v$ views and end sessions, such
    as SYSTEM, in a pluggable database. stop, crash, restart: how to do that, None where it cannot
    be done.
    """

    engine = "oracle"
    product = "oracle"

    def __init__(
        self,
        url: str,
        how: str,
        *,
        stop: Callable[[], None] | None = None,
        crash: Callable[[], None] | None = None,
        restart: Callable[[], None] | None = None,
    ) -> None:
        self._url = url
        self._stop = stop
        self._crash = crash
        self._restart = restart
        self._owners: list[str] = []
        self._made_roles: list[str] = []
        self._one_at_a_time = threading.RLock()
        self._administrator: Session | None = None
        ((version, edition, container, self._tablespace),) = self.ask(_WHAT)
        if container == "CDB$ROOT":
            raise Unavailable("the URL names the root container; name a pluggable database's")
        self.name = f"{self.product}{version.partition('.')[0]}"
        self.how = f"{how} {edition} {version}"
        restarts = ["restart"] * (restart is not None)
        self.capabilities = frozenset(["databases", "waits", "genuine", *restarts])
        self._make_roles()

    def fresh_database(self) -> str:
        """Make an account with an empty schema and no right too many; return its URL."""
        owner, password = f"ROWQ_TEST_{uuid.uuid4().hex[:12]}".upper(), f"Aa1_{uuid.uuid4().hex}"
        quota = f'quota unlimited on "{self._tablespace}"'
        self.tell(f'create user {owner} identified by "{password[:30]}" {quota}')
        self._owners.append(owner)
        self.tell(f"grant {', '.join(RIGHTS)} to {owner}")
        return as_account(self._url, owner, password[:30])

    def make_account(self, *roles: str) -> str:
        """Make an account that may connect and has these roles; return its URL."""
        name, password = f"ROWQ_TEST_{uuid.uuid4().hex[:12]}".upper(), f"Aa1_{uuid.uuid4().hex}"
        self.tell(f'create user {name} identified by "{password[:30]}"')
        self._owners.append(name)
        self.tell(f"grant {', '.join(['create session', *roles])} to {name}")
        return as_account(self._url, name, password[:30])

    def drop_database(self, url: str) -> None:
        """Drop an account made here with its schema, whoever is connected to it."""
        owner = owner_in(url)

        def is_dropped() -> bool:
            for place, serial in self.ask(_SESSIONS, owner=owner):
                self._disconnect(place, serial)
            try:
                self.tell(f"drop user {owner} cascade")
            except oracledb.DatabaseError as error:
                if number_of(error) == _STILL_CONNECTED:
                    return False
                if number_of(error) != _NO_SUCH_USER:
                    raise
            return True

        wait_until(is_dropped, f"{owner} is dropped", seconds=60)
        self._owners.remove(owner)

    def connect(self, url: str, *, autocommit: bool = True) -> Session:
        """Open a session."""
        session = open_session(url, autocommit=autocommit)
        session.server = self
        return session

    def session_id(self, connection: Any) -> int:
        """Return a session's number; the driver knows it without asking."""
        return int(connection.serial_num) * _PLACES + int(connection.session_id)

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock at this moment, and whom each waits for."""
        found: dict[int, set[int]] = {}
        for place, serial, other, others_serial in self.ask(_WAITS):
            waiting, blocking = serial * _PLACES + place, others_serial * _PLACES + other
            found.setdefault(waiting, set()).add(blocking)
        return {waiting: frozenset(blockers) for waiting, blockers in found.items()}

    def kill_session(self, session: int) -> None:
        """End a session from outside, and wait until the server has forgotten it."""
        serial, place = divmod(session, _PLACES)
        self._disconnect(place, serial)

        def is_gone() -> bool:
            return self.ask(_IS_THERE, place=place, serial=serial) == [(0,)]

        wait_until(is_gone, f"session {place},{serial} ends", seconds=30)

    def sessions_of(self, owner: str) -> int:
        """Return how many sessions an account has."""
        return len(self.ask(_SESSIONS, owner=owner))

    def deadlocks(self) -> int:
        """Return how many deadlocks the server has broken since it started."""
        return int(self.ask(_DEADLOCKS)[0][0])

    def crash(self) -> None:
        """End the server as a power failure would."""
        if self._crash is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be killed from here")
        self._crash()

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URLs."""
        if self._restart is None:
            raise Unavailable(f"{self.name} ({self.how}) cannot be restarted from here")
        self._restart()

    def close(self) -> None:
        """Drop what was made, and stop the server if it was started here."""
        if self._stop is not None:
            self._stop()
            return
        for owner in list(self._owners):
            self.drop_database(as_account(self._url, owner, ""))
        for role in self._made_roles:
            self.tell(f"drop role {role}")
        if self._administrator is not None:
            self._administrator.close()

    def ask(self, query: str, **values: Any) -> list[Any]:
        """Return the rows of an administrator's query."""
        with self._administration() as session, session.cursor() as cursor:
            return list(cursor.execute(query, values))

    def tell(self, statement: str) -> None:
        """Execute an administrator's statement."""
        with self._administration() as session, session.cursor() as cursor:
            cursor.execute(statement)

    @contextlib.contextmanager
    def _administration(self) -> Iterator[Session]:
        """Lend the administrator's session, a new one where the old one broke."""
        with self._one_at_a_time:
            if self._administrator is None or not is_alive(self._administrator):
                self._administrator = open_session(self._url, autocommit=True)
            yield self._administrator

    def _disconnect(self, place: int, serial: int) -> None:
        """End a session at once, if it is still there."""
        with contextlib.suppress(oracledb.DatabaseError):
            self.tell(f"alter system disconnect session '{place},{serial}' immediate")

    def _make_roles(self) -> None:
        """Make rowq's roles, which an owner may not; keep those that are there."""
        for role in ROLES:
            try:
                self.tell(f"create role {role}")
            except oracledb.DatabaseError as error:
                if number_of(error) != _NAME_TAKEN:
                    raise
            else:
                self._made_roles.append(role)


def as_account(url: str, name: str, password: str) -> str:
    """Return the URL of another account in the same database."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}"))


def owner_in(url: str) -> str:
    """Return the account of a URL, as Oracle keeps names."""
    return (urlsplit(url).username or "").upper()


def number_of(error: Exception) -> int:
    """Return the server's number of an error, 0 for one of the driver's own."""
    return int(getattr(error.args[0], "code", 0) or 0) if error.args else 0


def is_alive(session: Session) -> bool:
    """Return whether a session still answers."""
    try:
        session.ping()
    except oracledb.Error:
        return False
    return True


def accepts(url: str) -> bool:
    """Return whether the server takes a session."""
    try:
        open_session(url, autocommit=True).close()
    except CannotConnect:
        return False
    return True


def new_password() -> str:
    """Return a password for the administrator of a server of this run."""
    return f"Aa1_{secrets.token_hex(12)}"
