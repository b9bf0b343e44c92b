"""pyodbc itself: how it is loaded, and what it leaves to its users."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from types import ModuleType
from typing import Any

from rowq.engines.base import Row
from rowq.errors import DriverMissing
from rowq.sqlserver.calls import RESULT_TYPES
from rowq.sqlserver.url import is_freetds


def load_driver() -> ModuleType:
    """Return pyodbc; raises DriverMissing with what to install."""
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


def is_by_freetds(connection: Any) -> bool:
    """Whether a connection of pyodbc's is one of FreeTDS."""
    return is_freetds(connection.getinfo(load_driver().SQL_DRIVER_NAME))


@contextmanager
def plain_results(connection: Any) -> Iterator[None]:
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


def drain(cursor: Any) -> list[Row]:
    """Return the rows of the one result set; what comes after them may still be an error."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(map(tuple, cursor.fetchall()))
        if not cursor.nextset():
            return rows


def execute(connection: Any, statement: str) -> None:
    """Run a statement, or several, to the end."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        drain(cursor)


def value_of(connection: Any, query: str) -> Any:
    """Return the one value of a query's one row."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        ((value,),) = drain(cursor)
        return value
