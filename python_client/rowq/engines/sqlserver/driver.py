"""pyodbc itself: how it is loaded, and what it leaves to its users."""

import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from queue import SimpleQueue
from types import ModuleType
from typing import Any

from rowq.engines.base import Row
from rowq.engines.sqlserver.calls import RESULT_TYPES
from rowq.engines.sqlserver.url import is_freetds
from rowq.errors import DriverMissing


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


# The signals that programs have handlers of; what no handler waits for ends the program at once.
_SIGNALS = [
    getattr(signal, name)
    for name in (
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGALRM",
        "SIGUSR1",
        "SIGUSR2",
        "SIGCHLD",
        "SIGWINCH",
    )
    if hasattr(signal, "pthread_sigmask") and hasattr(signal, name)
]


@contextmanager
def signals_held() -> Iterator[None]:
    """Let no signal that has a handler interrupt a call of the driver: the handler runs after it.

    Microsoft's driver takes an interrupted read for a lost connection, and pyodbc, which then asks
    the driver for its words, drops what the handler has raised: Ctrl-C would be lost.
    """
    held = {number for number in _SIGNALS if callable(signal.getsignal(number))}
    if not held:
        yield
        return
    # A handler that runs as the signals are blocked may raise out of that call.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def open_connection(text: str, timeout: int) -> Any:
    """Connect in autocommit, in a thread, so that an exception of a signal's handler comes at once.

    What a handler raises while pyodbc makes an error of the driver's words would be lost. A
    connection that comes too late is closed by nobody wanting it.

    Args:
        text: the connection string.
        timeout: of the login, in seconds.
    """
    answers: SimpleQueue[Any] = SimpleQueue()

    def work() -> None:
        with signals_held():
            try:
                answers.put(load_driver().connect(text, autocommit=True, timeout=timeout))
            except BaseException as error:
                answers.put(error)

    threading.Thread(target=work, name="rowq-connect", daemon=True).start()
    answer = answers.get()
    if isinstance(answer, BaseException):
        raise answer
    return answer


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
    with signals_held(), closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        drain(cursor)


def value_of(connection: Any, query: str) -> Any:
    """Return the one value of a query's one row."""
    with signals_held(), closing(connection.cursor()) as cursor:
        cursor.execute(query)
        ((value,),) = drain(cursor)
        return value


def commit(connection: Any) -> None:
    """Commit the transaction; a signal's handler runs before it or after it."""
    with signals_held():
        connection.commit()


def roll_back(connection: Any) -> None:
    """Roll the transaction back."""
    with signals_held():
        connection.rollback()
