"""Sessions that wait for messages, as the server shows them."""

from collections.abc import Callable, Sequence

from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer

Open = Callable[[], Connection]

_POLLERS = """
    select l.sid from v$lock l
    where l.type = 'UL' and l.lmode = 6
    """
_POLLS = """
    select sum(s.executions)
    from v$sql s
    where s.parsing_schema_name = :owner
      and lower(s.sql_text) like 'select /*+ index_rs_asc(r rowq_ready_pk) */%'
    """


def pollers(server: OracleServer, sessions: Sequence[Connection]) -> list[Connection]:
    """Return the sessions that hold a lock of dbms_lock."""
    holders = {number for (number,) in server.query(_POLLERS)}
    return [session for session in sessions if session.session_id in holders]


def find_poller(server: OracleServer, sessions: Sequence[Connection]) -> Connection:
    """Wait for the session that polls for all, and return it."""
    wait_until(lambda: bool(pollers(server, sessions)), "one waiter polls")
    (poller,) = pollers(server, sessions)
    return poller


def polls(server: OracleServer, connection: Connection) -> int:
    """Return how often the lanes of this account's queues were polled."""
    return int(server.query(_POLLS, owner=connection.username.upper())[0][0] or 0)
