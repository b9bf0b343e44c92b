"""Oracle servers for tests; a schema counts as a database."""

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
"""The rights that sql/oracle/README.md requires for an owner, besides a quota."""

# A session's number combines serial# and sid, because sids are reused.
_SIDS = 1_000_000
_WHAT = """
    select p.version_full, p.product, sys_context('userenv', 'con_name'),
        (select d.property_value from database_properties d
         where d.property_name = 'DEFAULT_PERMANENT_TABLESPACE')
    from product_component_version p
    where p.product like 'Oracle%'
    """
# Not one query: these views have no statistics, and their join may take seconds.
_WAITING = "select l.sid, l.type, l.id1, l.id2 from v$lock l where l.request > 0"
_BLOCKING = """
    select l.sid from v$lock l
    where l.lmode > 0 and l.block > 0 and l.type = :kind and l.id1 = :id1 and l.id2 = :id2
    """
_NAPS = "select s.sid from v$session s where s.sid = :sid and s.event = 'PL/SQL lock timer'"
_SERIALS = "select s.sid, s.serial# from v$session s"
_SESSIONS = """
    select s.sid, s.serial# from v$session s where s.username = :owner and s.status <> 'KILLED'
    """
_IS_THERE = "select count(*) from v$session s where s.sid = :sid and s.serial# = :serial"
_USED = """
    select q.bytes from dba_ts_quotas q
    where q.username = :owner and q.tablespace_name = :tablespace
    """
_DEADLOCKS = "select s.value from v$sysstat s where s.name = 'enqueue deadlocks'"
_NAME_TAKEN, _STILL_CONNECTED, _NO_SUCH_USER = 1921, 1940, 1918


class OracleServer(ControlledServer):
    """An Oracle Database, however it runs.

    url: of an account in a pluggable database that may create users and roles, read v$ views and
    end sessions, such as SYSTEM.
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
        ((version, edition, container, self._tablespace),) = self.query(_WHAT)
        if container == "CDB$ROOT":
            raise Unavailable("the URL names the root container; use a pluggable database")
        self.name = f"{self.product}{version.partition('.')[0]}"
        self.how = f"{how} {edition} {version}"
        self.capabilities = self._capabilities(
            *("cancel", "databases", "expiry", "genuine", "groups", "limits", "predecessors"),
            *("results", "topics", "waits"),
        )
        self._make_roles()

    def fresh_database(self) -> str:
        owner, password = f"ROWQ_TEST_{uuid.uuid4().hex[:12]}".upper(), f"Aa1_{uuid.uuid4().hex}"
        quota = f'quota unlimited on "{self._tablespace}"'
        self.execute(f'create user {owner} identified by "{password[:30]}" {quota}')
        self._owners.append(owner)
        self.execute(f"grant {', '.join(RIGHTS)} to {owner}")
        self.execute(f"grant {', '.join(Inspection.ROLES)} to {owner} with admin option")
        return as_account(self._url, owner, password[:30])

    def make_account(self, *roles: str) -> str:
        """Create an account with these roles; return its URL."""
        name, password = f"ROWQ_TEST_{uuid.uuid4().hex[:12]}".upper(), f"Aa1_{uuid.uuid4().hex}"
        self.execute(f'create user {name} identified by "{password[:30]}"')
        self._owners.append(name)
        self.execute(f"grant {', '.join(['create session', *roles])} to {name}")
        return as_account(self._url, name, password[:30])

    def drop_database(self, url: str) -> None:
        owner = owner_in(url)

        def is_dropped() -> bool:
            for sid, serial in self.query(_SESSIONS, owner=owner):
                self._disconnect(sid, serial)
            try:
                self.execute(f"drop user {owner} cascade")
            except oracledb.DatabaseError as error:
                if number_of(error) == _STILL_CONNECTED:
                    return False
                if number_of(error) != _NO_SUCH_USER:
                    raise
            return True

        wait_until(is_dropped, f"{owner} is dropped", seconds=60)
        self._owners.remove(owner)

    def connect(self, url: str, *, autocommit: bool = True) -> Session:
        session = open_session(url, autocommit=autocommit)
        session.server = self
        return session

    def open_root(self) -> Session:
        """Open a session of the administrator in the root container; raise CannotConnect."""
        ((service,),) = self.query("select d.db_unique_name from v$database d")
        parts = urlsplit(self._url)._replace(path=f"/{service}")
        return open_session(urlunsplit(parts), autocommit=True)

    def session_id(self, connection: Any) -> int:
        return int(connection.serial_num) * _SIDS + int(connection.session_id)

    def waiting_sessions(self) -> Mapping[int, frozenset[int]]:
        waits = self.query(_WAITING)
        serials = dict(self.query(_SERIALS)) if waits else {}

        def number(sid: int) -> int:
            return int(serials.get(sid, 0)) * _SIDS + sid

        found: dict[int, set[int]] = {}
        for sid, kind, id1, id2 in waits:
            blockers = self.query(_BLOCKING, kind=kind, id1=id1, id2=id2)
            found.setdefault(number(sid), set()).update(number(blocker) for (blocker,) in blockers)
        return {waiting: frozenset(blockers) for waiting, blockers in found.items()}

    def waits_for_limit(self, session: int) -> bool:
        return bool(self.query(_NAPS, sid=session % _SIDS))

    def kill_session(self, session: int) -> None:
        serial, sid = divmod(session, _SIDS)
        self._disconnect(sid, serial)

        def is_gone() -> bool:
            return self.query(_IS_THERE, sid=sid, serial=serial) == [(0,)]

        wait_until(is_gone, f"session {sid},{serial} ends", seconds=30)

    def sessions_of(self, owner: str) -> int:
        """Return the number of an account's sessions."""
        return len(self.query(_SESSIONS, owner=owner))

    def deadlocks(self) -> int:
        return int(self.query(_DEADLOCKS)[0][0])

    def limit_space(self, url: str, spare_bytes: int | None) -> None:
        """Set an account's quota to `spare_bytes` more than it uses, None for no limit."""
        owner, limit = owner_in(url), "unlimited"
        if spare_bytes is not None:
            ((used,),) = self.query(_USED, owner=owner, tablespace=self._tablespace)
            limit = str(int(used) + spare_bytes)
        self.execute(f'alter user {owner} quota {limit} on "{self._tablespace}"')

    def _drop_all(self) -> None:
        for owner in list(self._owners):
            self.drop_database(as_account(self._url, owner, ""))
        for role in self._made_roles:
            self.execute(f"drop role {role}")
        if self._administrator is not None:
            self._administrator.close()

    def query(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows of an administrator's query."""
        with self._administration() as session, session.cursor() as cursor:
            return list(cursor.execute(statement, values))

    def execute(self, statement: str) -> None:
        """Execute an administrator's statement."""
        with self._administration() as session, session.cursor() as cursor:
            cursor.execute(statement)

    @contextlib.contextmanager
    def _administration(self) -> Iterator[Session]:
        """Yield the administrator's session, a new one if the old one broke."""
        with self._one_at_a_time:
            if self._administrator is None or not is_alive(self._administrator):
                self._administrator = open_session(self._url, autocommit=True)
            yield self._administrator

    def _disconnect(self, sid: int, serial: int) -> None:
        """End a session at once if it exists."""
        with contextlib.suppress(oracledb.DatabaseError):
            self.execute(f"alter system disconnect session '{sid},{serial}' immediate")

    def _make_roles(self) -> None:
        """Create rowq's roles, which an owner may not; keep existing ones."""
        for role in Inspection.ROLES:
            try:
                self.execute(f"create role {role}")
            except oracledb.DatabaseError as error:
                if number_of(error) != _NAME_TAKEN:
                    raise
            else:
                self._made_roles.append(role)
