"""SQL Server and Azure SQL through pyodbc, with Microsoft's ODBC driver or FreeTDS.

Every routine is a procedure that is called by the ODBC escape {call ...}, which drivers send as one
remote procedure call: nothing is prepared and no plan is kept for a text. Each parameter is bound
with the contract's type, so that no driver has to ask the server for it. Results are read to their
end: an error may come after the rows.
"""

# ruff: noqa: D102 - the methods are described in base.py

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from itertools import count
from types import ModuleType
from typing import Any, NoReturn

from rowq.engines.base import Engine, Row
from rowq.engines.sqlserver_calls import RESULT_TYPES, call_of
from rowq.engines.sqlserver_errors import (
    CONNECTION_GONE,
    PASSING,
    numbers_of,
    refusal_of,
    states_of,
    text_of,
)
from rowq.engines.sqlserver_url import connection_string, default_driver, is_freetds, parse_url
from rowq.errors import CannotConnect, DriverMissing, EngineUnknown, Refused, RowqError

# One transaction, whether the driver has opened it already or leaves that to the first statement:
# there, an explicit one counts twice.
_OPEN = """
    set nocount on;
    if @@trancount = 0 begin transaction;
    while @@trancount > 1 commit transaction;
"""
_IDENTITY = "select current_transaction_id()"
_BACK_TO = """
    if xact_state() = 1 rollback transaction {name};
    else if @@trancount > 0 rollback transaction;
"""
_savepoints = count(1)


class SqlserverEngine(Engine):
    """SQL Server 2017 and newer, Azure SQL Database and Managed Instance."""

    name = "sqlserver"
    schemes = ("sqlserver", "mssql", "sqlserver+pyodbc", "mssql+pyodbc")
    driver_package = "pyodbc"

    def __init__(self) -> None:
        # The server's number of each transaction that transaction() has opened, by the connection.
        self._opened: dict[int, int] = {}

    def connect(self, url: str) -> Any:
        target = parse_url(url)
        pyodbc = _driver()
        driver = target.driver or default_driver(pyodbc.drivers())
        text = connection_string(target, driver)
        try:
            return pyodbc.connect(text, autocommit=True, timeout=target.connect_timeout)
        except (pyodbc.Error, UnicodeError) as error:
            raise CannotConnect(f"SQL Server: {text_of(error)}") from error

    async def connect_async(self, url: str) -> Any:  # noqa: ARG002 - said for every URL
        _only_synchronous()

    def call(self, connection: Any, routine: str, arguments: Mapping[str, Any]) -> list[Row]:
        pyodbc = _driver()
        call = call_of(routine)
        values = call.values(arguments)
        try:
            with _plain(connection), closing(connection.cursor()) as cursor:
                cursor.setinputsizes(call.bindings)
                cursor.execute(call.text, values)
                return call.rows(_drain(cursor))
        except pyodbc.Error as error:
            if refusal := self.refusal(error):
                raise refusal from error
            raise

    async def call_async(
        self,
        connection: Any,  # noqa: ARG002 - there is none
        routine: str,  # noqa: ARG002
        arguments: Mapping[str, Any],  # noqa: ARG002
    ) -> list[Row]:
        _only_synchronous()

    def close(self, connection: Any) -> None:
        with suppress(_driver().Error):
            connection.close()

    async def close_async(self, connection: Any) -> None:
        self.close(connection)

    def is_async(self, connection: Any) -> bool:  # noqa: ARG002 - the driver has no such one
        return False

    def is_usable(self, connection: Any) -> bool:
        if connection.closed:
            return False
        # Microsoft's driver mends an idle connection by itself, before it sends anything on it.
        if not is_freetds(connection.getinfo(_driver().SQL_DRIVER_NAME)):
            return True
        try:
            return bool(_value(connection, "select 1"))
        except _driver().Error:
            self.close(connection)
            return False

    def in_transaction(self, connection: Any) -> bool:
        if connection.closed:
            return False
        opened = self._opened.get(id(connection))
        if opened is None and not connection.autocommit:
            return True
        try:
            if opened is None:
                return bool(_value(connection, "select @@trancount"))
            return bool(_value(connection, _IDENTITY) == opened)
        except _driver().Error:
            return False

    def transaction(self, connection: Any) -> AbstractContextManager[Any]:
        if self.in_transaction(connection):
            return _savepoint(connection, f"rowq_{next(_savepoints)}")
        return self._transaction(connection)

    @contextmanager
    def _transaction(self, connection: Any) -> Iterator[None]:
        """Leave autocommit for a block, so that commit and rollback of the driver have a meaning.

        Autocommit comes back only where nothing is open: the driver would commit that.
        """
        connection.autocommit = False
        try:
            _execute(connection, _OPEN)
            opened = _value(connection, _IDENTITY)
            self._opened[id(connection)] = opened
            yield
            _require_same(connection, opened)
            connection.commit()
            connection.autocommit = True
        except BaseException:
            self._undo(connection)
            raise
        finally:
            self._opened.pop(id(connection), None)

    def _undo(self, connection: Any) -> None:
        try:
            connection.rollback()
            connection.autocommit = True
        except _driver().Error:
            self.close(connection)

    def refusal(self, error: Exception) -> Refused | None:
        return refusal_of(error) if isinstance(error, _driver().Error) else None

    def is_connection_lost(self, error: Exception) -> bool:
        if isinstance(error, CannotConnect):
            return True
        if not isinstance(error, _driver().Error):
            return False
        lost = states_of(error) & {"08S01", "08001", "08003", "08007", "HYT01"}
        return bool(lost or numbers_of(error) & CONNECTION_GONE or _is_closed(error))

    def is_passing(self, error: Exception) -> bool:
        if self.is_connection_lost(error):
            return True
        if not isinstance(error, _driver().Error):
            return False
        return bool(states_of(error) & {"40001", "HYT00"} or numbers_of(error) & PASSING)


def _driver() -> ModuleType:
    try:
        import pyodbc
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            hint = "SQL Server needs pyodbc: pip install 'rowq[sqlserver]'"
        else:
            hint = (
                f"pyodbc does not load ({error}): it needs unixODBC (Debian: apt-get install"
                " unixodbc; macOS: brew install unixodbc) and a driver, msodbcsql18 or tdsodbc"
            )
        raise DriverMissing(hint) from error
    driver: ModuleType = pyodbc
    return driver


def _only_synchronous() -> NoReturn:
    raise EngineUnknown(
        "AsyncQueue does not serve SQL Server: use rowq.connect, in a thread if need be"
    )


@contextmanager
def _plain(connection: Any) -> Iterator[None]:
    """Let rows come as the driver gives them, whatever the connection's owner makes of a type."""
    types = {kind: connection.get_output_converter(kind) for kind in RESULT_TYPES}
    own = {kind: converter for kind, converter in types.items() if converter is not None}
    for kind in own:
        connection.remove_output_converter(kind)
    try:
        yield
    finally:
        for kind, converter in own.items():
            connection.add_output_converter(kind, converter)


def _drain(cursor: Any) -> list[Row]:
    """Return the rows of the one result set; what comes after them may still be an error."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(map(tuple, cursor.fetchall()))
        if not cursor.nextset():
            return rows


@contextmanager
def _savepoint(connection: Any, name: str) -> Iterator[None]:
    """Roll back to here on an exception; a savepoint is never released, T-SQL has no word for it.

    Raises RowqError when the transaction was ended inside: what went before is then undone, or
    committed, without anybody having asked for that.
    """
    opened = _value(connection, _IDENTITY)
    _execute(connection, f"save transaction {name}")
    try:
        yield
        _require_same(connection, opened)
    except BaseException:
        _back_to(connection, name)
        raise


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where that is no longer possible."""
    error = _driver().Error
    try:
        _execute(connection, _BACK_TO.format(name=savepoint))
    except error:
        with suppress(error):
            connection.rollback()


def _require_same(connection: Any, opened: int) -> None:
    if _value(connection, _IDENTITY) != opened:
        raise RowqError("the transaction was ended inside the block that it was opened for")


def _is_closed(error: Exception) -> bool:
    """Whether the error is pyodbc's own, that the connection was closed already."""
    words = text_of(error)
    return len(error.args) == 1 and "connection" in words and "closed" in words


def _execute(connection: Any, statement: str) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        while cursor.nextset():
            pass


def _value(connection: Any, query: str) -> Any:
    with closing(connection.cursor()) as cursor:
        return cursor.execute(query).fetchone()[0]


ENGINE = SqlserverEngine()
