"""Oracle Database through python-oracledb in its thin mode.

Every routine is a procedure of the package rowq, and returns its rows through a cursor of the
client. LOBs are fetched as values, so a batch costs the call and one fetch.
"""

# ruff: noqa: D102 - the methods are described in base.py

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from operator import attrgetter
from typing import Any
from weakref import WeakKeyDictionary

from rowq.engines.base import Row, SynchronousEngine
from rowq.engines.oracle.calls import ROWS, call_of, kinds_of, prepare, sent
from rowq.engines.oracle.driver import (
    CONNECTION_GONE,
    DRIVER_GONE,
    DRIVER_TIMEOUT,
    ROLLED_BACK,
    SHORTAGES,
    WRONG_SERVER,
    is_denied,
    load_driver,
    nested,
    number_of,
    outermost,
    refusal_of,
)
from rowq.engines.oracle.url import connection_parameters, owner_of
from rowq.engines.sockets import TimedOutError, is_of_the_network, within
from rowq.engines.uncommitted import watch_by_methods
from rowq.errors import CannotConnect, Refused

# Timeout for closing a connection during a call.
_BREAK_MILLISECONDS = 1000
# Ping an idle connection, a round trip, if the last ping is older than this.
_IDLE_SECONDS = 1.0
_BRIEFLY_MILLISECONDS = 1000


class OracleEngine(SynchronousEngine):
    """Oracle Database 19c and newer."""

    name = "oracle"
    schemes = ("oracle", "oracle+oracledb")
    driver_package = "oracledb"
    product = "Oracle"

    def __init__(self) -> None:
        self._pinged_at: WeakKeyDictionary[Any, float] = WeakKeyDictionary()

    def connect(self, url: str) -> Any:
        oracledb = load_driver()
        parameters = connection_parameters(url)
        owner = owner_of(url)
        try:
            connection = within(
                parameters["tcp_connect_timeout"],
                lambda: oracledb.connect(**parameters, program="rowq"),
                self.close,
            )
            connection.autocommit = True
            if owner:
                connection.current_schema = owner
        except (oracledb.Error, OSError, UnicodeError, TimedOutError) as error:
            if isinstance(error, OSError) and not is_of_the_network(error):
                raise
            raise CannotConnect(f"Oracle: {error}") from error
        return connection

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        oracledb = load_driver()
        call = call_of(routine)
        values = call.values(arguments)
        try:
            with connection.cursor() as cursor, connection.cursor() as rows:
                prepare(rows, call)
                cursor.setinputsizes(**kinds_of(call, values))
                lobs = {name: sent(connection, value) for name, value in values.items()}
                cursor.execute(call.text, {**lobs, ROWS: rows})
                return call.rows(rows.fetchall())
        except oracledb.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        # Oracle has no lock timeout per session: let the driver interrupt the call.
        connection.call_timeout = _BRIEFLY_MILLISECONDS
        return self.call(connection, routine, arguments)

    def close(self, connection: Any) -> None:
        with suppress(load_driver().Error, OSError):
            connection.close()

    def is_async(self, connection: Any) -> bool:
        return isinstance(connection, load_driver().AsyncConnection)

    def is_usable(self, connection: Any) -> bool:
        if not connection.is_healthy():
            return False
        # The driver does not check its socket, so a ping is the only way to find a closed session.
        now = time.monotonic()
        if now - self._pinged_at.get(connection, -_IDLE_SECONDS) < _IDLE_SECONDS:
            return True
        try:
            connection.ping()
        except (load_driver().Error, OSError):
            self.close(connection)
            return False
        self._pinged_at[connection] = now
        return True

    def break_off(self, connection: Any) -> None:
        # The driver logs off, and would first wait for the answer of the running call.
        with suppress(load_driver().Error, OSError):
            connection.call_timeout = _BREAK_MILLISECONDS
        self.close(connection)

    def in_transaction(self, connection: Any) -> bool:
        if not connection.is_healthy():
            return False
        return not connection.autocommit or bool(connection.transaction_in_progress)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return nested(connection)
        return outermost(connection)

    def watch(self, connection: Any, target: str) -> None:
        watch_by_methods(connection, target, attrgetter("transaction_in_progress"))

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_of(error)

    def is_denied(self, error: Exception) -> bool:
        return is_denied(error)

    def grant(self, connection: Any, role: str, error: Exception) -> str:  # noqa: ARG002
        return f'"grant {role} to {connection.username};"'

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        if not isinstance(error, load_driver().Error):
            # The driver passes most network errors on as OSError.
            return is_of_the_network(error)
        return number_of(error) in CONNECTION_GONE or bool(DRIVER_GONE.search(str(error)))

    def is_wrong_server(self, error: Exception) -> bool:
        return number_of(error) in WRONG_SERVER

    def is_rolled_back(self, error: Exception) -> bool:
        return number_of(error) in ROLLED_BACK

    def is_shortage(self, error: Exception) -> bool:
        if number_of(error) in SHORTAGES:
            return True
        return isinstance(error, load_driver().Error) and bool(DRIVER_TIMEOUT.search(str(error)))


ENGINE = OracleEngine()
