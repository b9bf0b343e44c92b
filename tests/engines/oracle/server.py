"""A running Oracle Database as the tests need it: a schema of its own is a database to them."""

import contextlib
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import oracledb

from rowq.tools.engines.oracle.status import Inspection
from tests.engines.base import GIVEN, Control, ControlledServer, Unavailable, wait_until
from tests.engines.oracle.session import (
    Session,
    as_account,
    is_alive,
    number_of,
    open_session,
    owner_in,
)

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
# Not joined in one query: such views have no statistics, and their join may take seconds.
_WAITING = "select l.sid, l.type, l.id1, l.id2 from v$lock l where l.request > 0"
_BLOCKING = """
    select l.sid from v$lock l
    where l.lmode > 0 and l.block > 0 and l.type = :kind and l.id1 = :id1 and l.id2 = :id2
    """
_NAPS = "select s.sid from v$session s where s.sid = :place and s.event = 'PL/SQL lock timer'"
_SERIALS = "select s.sid, s.serial# from v$session s"
_SESSIONS = """
    select s.sid, s.serial# from v$session s where s.username = :owner and s.status <> 'KILLED'
    """
_IS_THERE = "select count(*) from v$session s where s.sid = :place and s.serial# = :serial"
_USED = """
    select q.bytes from dba_ts_quotas q
    where q.username = :owner and q.tablespace_name = :tablespace
    """
_DEADLOCKS = "select s.value from v$sysstat s where s.name = 'enqueue deadlocks'"
_NAME_TAKEN, _STILL_CONNECTED, _NO_SUCH_USER = 1921, 1940, 1918


class OracleServer(ControlledServer):
    """An Oracle Database, however it runs.

    url: of an account that may create users and roles, look at the v$ views and end sessions, such
    as SYSTEM, in a pluggable database.
    """

    engine = "oracle"
    product = "oracle"

    def __init__(self, url: str, how: str, control: Control = GIVEN) -> None:
        super().__init__(control)
        self._url = url
        self._owners: list[str] = []
        self._made_roles: list[str] = []
        self._one_at_a_time = threading.RLock()
        self._administrator: Session | None = None
        ((version, edition, container, self._tablespace),) = self.ask(_WHAT)
        if container == "CDB$ROOT":
            raise Unavailable("the URL names the root container; name a pluggable database's")
        self.name = f"{self.product}{version.partition('.')[0]}"
        self.how = f"{how} {edition} {version}"
        self.capabilities = self._capabilities(
            *("cancel", "databases", "expiry", "genuine", "groups", "limits", "predecessors"),
            *("results", "topics", "waits"),
        )
        self._make_roles()

    def fresh_database(self) -> str:
        """Make an account with an empty schema and no right too many; return its URL."""
        owner, password = f"ROWQ_TEST_{uuid.uuid4().hex[:12]}".upper(), f"Aa1_{uuid.uuid4().hex}"
        quota = f'quota unlimited on "{self._tablespace}"'
        self.tell(f'create user {owner} identified by "{password[:30]}" {quota}')
        self._owners.append(owner)
        self.tell(f"grant {', '.join(RIGHTS)} to {owner}")
        self.tell(f"grant {', '.join(Inspection.ROLES)} to {owner} with admin option")
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

    def open_root(self) -> Session:
        """Open a session of the given account in the root container; raises CannotConnect."""
        ((service,),) = self.ask("select d.db_unique_name from v$database d")
        parts = urlsplit(self._url)._replace(path=f"/{service}")
        return open_session(urlunsplit(parts), autocommit=True)

    def session_id(self, connection: Any) -> int:
        """Return a session's number; the driver knows it without asking."""
        return int(connection.serial_num) * _PLACES + int(connection.session_id)

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        """Return the sessions that wait for a lock at this moment, and whom each waits for."""
        waits = self.ask(_WAITING)
        serials = dict(self.ask(_SERIALS)) if waits else {}

        def number(place: int) -> int:
            return int(serials.get(place, 0)) * _PLACES + place

        found: dict[int, set[int]] = {}
        for place, kind, id1, id2 in waits:
            blockers = self.ask(_BLOCKING, kind=kind, id1=id1, id2=id2)
            found.setdefault(number(place), set()).update(
                number(blocker) for (blocker,) in blockers
            )
        return {waiting: frozenset(blockers) for waiting, blockers in found.items()}

    def waits_for_limit(self, session: int) -> bool:
        """Whether a dequeue tries the limit lock of a queue with limits again and again."""
        return bool(self.ask(_NAPS, place=session % _PLACES))

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

    def limit_space(self, url: str, spare_bytes: int | None) -> None:
        """Let an account have so much more than it has now, or without end with None."""
        owner, limit = owner_in(url), "unlimited"
        if spare_bytes is not None:
            ((used,),) = self.ask(_USED, owner=owner, tablespace=self._tablespace)
            limit = str(int(used) + spare_bytes)
        self.tell(f'alter user {owner} quota {limit} on "{self._tablespace}"')

    def _drop_all(self) -> None:
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
        for role in Inspection.ROLES:
            try:
                self.tell(f"create role {role}")
            except oracledb.DatabaseError as error:
                if number_of(error) != _NAME_TAKEN:
                    raise
            else:
                self._made_roles.append(role)
