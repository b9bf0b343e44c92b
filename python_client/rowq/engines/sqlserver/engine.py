"""SQL Server and Azure SQL through pyodbc, with Microsoft's ODBC driver or FreeTDS.

The text of a call is fixed and names its parameters; with the escape {call ...}, FreeTDS fails on
long values. Each parameter, even null, is bound with the contract's type, so that no driver queries
it. Results are read to the end: an error may follow the rows.
"""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from typing import Any

from rowq.engines.base import Row, SynchronousEngine
from rowq.engines.sockets import ending_when_silent
from rowq.engines.sqlserver.calls import call_of
from rowq.engines.sqlserver.driver import (
    CONNECTION_GONE,
    DENIED,
    ROLLED_BACK,
    SHORTAGES,
    WRONG_SERVER,
    Transactions,
    drain,
    execute,
    is_by_freetds,
    load_driver,
    numbers_of,
    open_connection,
    plain_results,
    refusal_of,
    signals_held,
    states_of,
    text_of,
    value_of,
)
from rowq.engines.sqlserver.url import connection_string, default_driver, parse_url
from rowq.errors import CannotConnect, Refused

# Microsoft's driver could not reopen an idle connection before it sent the call.
_STATES_NOT_REOPENED = {"IMC01", "IMC02", "IMC03", "IMC04"}
# IMC05 and IMC06: it did not try; when the connection was lost is unknown.
_STATES_GONE = _STATES_NOT_REOPENED | {
    *("08S01", "08001", "08003", "08007", "HYT01", "IMC05", "IMC06"),
}
_STATES_SHORTAGE = {"40001", "HYT00"}


class SqlserverEngine(SynchronousEngine):
    """SQL Server 2017 and newer, Azure SQL Database and Managed Instance."""

    name = "sqlserver"
    schemes = ("sqlserver", "mssql", "sqlserver+pyodbc", "mssql+pyodbc")
    driver_package = "pyodbc"
    product = "SQL Server"

    def __init__(self) -> None:
        self._transactions = Transactions()

    def connect(self, url: str) -> Any:
        target = parse_url(url)
        pyodbc = load_driver()
        driver = target.driver or default_driver(pyodbc.drivers())
        text = connection_string(target, driver)
        host = target.host.partition("\\")[0]
        try:
            with ending_when_silent(host, target.port):
                return open_connection(text, target.connect_timeout)
        except (pyodbc.Error, UnicodeError) as error:
            raise CannotConnect(f"SQL Server: {text_of(error)}") from error

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        pyodbc = load_driver()
        call = call_of(routine)
        # pyodbc queries the type of None even if it is bound, but not of BinaryNull.
        values = [pyodbc.BinaryNull if value is None else value for value in call.values(arguments)]
        try:
            bindings = call.freetds_bindings if is_by_freetds(connection) else call.bindings
            with (
                signals_held(),
                plain_results(connection),
                closing(connection.cursor()) as cursor,
            ):
                cursor.setinputsizes(bindings)
                cursor.execute(call.text, values)
                return call.rows(drain(cursor))
        except pyodbc.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    def call_briefly(
        self, connection: Any, routine: str, arguments: Mapping[str, Any]
    ) -> list[Row]:
        execute(connection, "set lock_timeout 50")
        return self.call(connection, routine, arguments)

    def close(self, connection: Any) -> None:
        with suppress(load_driver().Error):
            connection.close()

    def is_usable(self, connection: Any) -> bool:
        if connection.closed:
            return False
        # Microsoft's driver reopens an idle connection before it sends anything.
        if not is_by_freetds(connection):
            return True
        try:
            return bool(value_of(connection, "select 1"))
        except load_driver().Error:
            self.close(connection)
            return False

    def in_transaction(self, connection: Any) -> bool:
        return self._transactions.is_open(connection)

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return self._transactions.nested(connection)
        return self._transactions.outermost(connection)

    def watch(self, connection: Any, target: str) -> None:
        """Do nothing: the methods of pyodbc's connections cannot be wrapped."""

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_of(error) if isinstance(error, load_driver().Error) else None

    def is_denied(self, error: Exception) -> bool:
        return isinstance(error, load_driver().Error) and DENIED in numbers_of(error)

    def grant(self, connection: Any, role: str, error: Exception) -> str:  # noqa: ARG002
        user = str(connection.getinfo(load_driver().SQL_USER_NAME)).replace("]", "]]")
        return f'"alter role {role} add member [{user}];"'

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        if not isinstance(error, load_driver().Error):
            return False
        states, numbers = states_of(error), numbers_of(error)
        return bool(states & _STATES_GONE or numbers & CONNECTION_GONE or _was_closed(error))

    def was_sent(self, error: Exception) -> bool:
        if not isinstance(error, load_driver().Error):
            return True
        return not states_of(error) & _STATES_NOT_REOPENED

    def is_wrong_server(self, error: Exception) -> bool:
        return _is_one_of(error, WRONG_SERVER)

    def is_rolled_back(self, error: Exception) -> bool:
        return _is_one_of(error, ROLLED_BACK)

    def is_shortage(self, error: Exception) -> bool:
        if _is_one_of(error, SHORTAGES):
            return True
        return isinstance(error, load_driver().Error) and bool(states_of(error) & _STATES_SHORTAGE)


def _is_one_of(error: Exception, numbers: frozenset[int]) -> bool:
    return isinstance(error, load_driver().Error) and bool(numbers_of(error) & numbers)


def _was_closed(error: Exception) -> bool:
    """Whether pyodbc reports a closed connection, or FreeTDS an error without text."""
    text = text_of(error)
    closed = len(error.args) == 1 and "connection" in text and "closed" in text
    return closed or text == "The driver did not supply an error!"


ENGINE = SqlserverEngine()
