"""Opens sessions that wait for messages, and reads what the server shows of them."""

from collections.abc import Callable, Sequence

from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer

Open = Callable[[], Connection]

_LEADERS = """
    select l.sid from v$lock l
    where l.type = 'UL' and l.lmode = 6
    """
_LOOKS = """
    select sum(s.executions)
    from v$sql s
    where s.parsing_schema_name = :owner
      and lower(s.sql_text) like 'select /*+ index_rs_asc(r rowq_ready_pk) */%'
    """


def leaders(server: OracleServer, sessions: Sequence[Connection]) -> list[Connection]:
    """Return those of the sessions that hold a lock of dbms_lock."""
    places = {place for (place,) in server.ask(_LEADERS)}
    return [session for session in sessions if session.session_id in places]


def one_leads(server: OracleServer, sessions: Sequence[Connection]) -> Connection:
    """Return the one that leads, once there is one."""
    wait_until(lambda: bool(leaders(server, sessions)), "one waiter leads")
    (leader,) = leaders(server, sessions)
    return leader


def looks(server: OracleServer, connection: Connection) -> int:
    """Return how often anybody has looked into a lane of a queue of this account."""
    return int(server.ask(_LOOKS, owner=connection.username.upper())[0][0] or 0)
