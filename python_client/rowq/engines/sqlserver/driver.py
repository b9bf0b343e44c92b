"""pyodbc, imported at first use: signals, errors and transactions.

pyodbc joins all of a driver's messages about one failure:
    [42000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]RQ701 queue_not_found: no queue
    is named 'x' (52701) (SQLExecDirectW); [01000] [Microsoft]...[SQL Server]... (3621)
"""

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from queue import SimpleQueue
from types import ModuleType
from typing import Any

from rowq.engines.base import Row
from rowq.engines.sqlserver.calls import RESULT_TYPES
from rowq.engines.sqlserver.url import is_freetds
from rowq.errors import DriverMissing, Refused, RowqError, refusal_from_text

# Signals that programs usually handle.
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

# The session or the server ended: killed, shut down, failed over, removed from an idle pool.
# FreeTDS's own numbers mean cannot connect, read, write, end of file, out of step, dead.
CONNECTION_GONE = frozenset(
    {
        *(596, 6002, 6005, 17142, 17147, 17148, 17188, 17197, 40197, 40613, 40642),
        *(20002, 20004, 20006, 20009, 20017, 20020, 20047),
    }
)
# The database is read-only, or unavailable during a role change.
WRONG_SERVER = frozenset({976, 978, 979, 982, 983, 3906})
# Lock timeout, or a scan lost its position; no more locks, memory, disk or log; Azure is busy; a
# database starts or changes its state. Not 650, 3951 and 3952 (READPAST under serializable,
# snapshot not allowed): the isolation level is wrong, so a retry does not help.
SHORTAGES = frozenset(
    {
        *(1222, 601),
        *(1204, 1221, 701, 802, 845, 1101, 1105, 8628, 8645, 8651, 8657, 9002, 40544),
        *(10922, 10928, 10929, 10930, 10936, 40143, 40501, 40540),
        *(40549, 40550, 40551, 40552, 40553),
        *(49918, 49919, 49920),
        *(921, 952, 3908, 4221, 18401, 41301, 41302, 41305, 41325, 41839),
    }
)

DENIED = 229
# Deadlock, update conflict of a snapshot, conflicts of memory-optimized tables.
ROLLED_BACK = frozenset({1205, 3960, 3961, 41301, 41302, 41305, 41325})

# SQLSTATE and the names of the drivers come before the server's message.
_ORIGIN = r"(?:^|; )(?:\[[^\]]*\] ?)+"
_END = r"(?= \(SQL\w+\)|; \[\w{5}\] |$)"
_ROWQ_ERROR = re.compile(rf"{_ORIGIN}(RQ(\d{{3}}) \w+: .*?) \(52\2\){_END}", re.DOTALL)
_MESSAGE = re.compile(rf"^(?:\[[^\]]*\] ?)*(.*?)(?: \(\d+\))?{_END}", re.DOTALL)
_NUMBER = re.compile(rf" \((\d+)\){_END}")
_STATE = re.compile(r"(?:^|; )\[(\w{5})\] ")

# Leave exactly one transaction open. The driver may have opened it already, or may open it with the
# first statement, so that an explicit one counts twice.
_OPEN = """
    set nocount on;
    if @@trancount = 0 begin transaction;
    while @@trancount > 1 commit transaction;
"""
# The driver's rollback needs a transaction, but the server or a statement may have ended it.
_REOPEN = "if @@trancount = 0 begin transaction;"
_IDENTITY = "select current_transaction_id()"
_BACK_TO = """
    if xact_state() = 1 rollback transaction {name};
    else if @@trancount > 0 rollback transaction;
"""
_savepoints = count(1)


def load_driver() -> ModuleType:
    """Return pyodbc; raises DriverMissing with the install command."""
    try:
        import pyodbc
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            hint = "SQL Server needs pyodbc: pip install 'rowq[sqlserver]'"
        else:
            hint = (
                f"pyodbc does not load ({error}); install unixODBC (package unixodbc) and a"
                " driver, msodbcsql18 or tdsodbc"
            )
        raise DriverMissing(hint) from error
    driver: ModuleType = pyodbc
    return driver


def is_by_freetds(connection: Any) -> bool:
    """Whether a pyodbc connection uses FreeTDS."""
    return is_freetds(connection.getinfo(load_driver().SQL_DRIVER_NAME))


@contextmanager
def signals_held() -> Iterator[None]:
    """Block handled signals during a driver call; the handlers run after it.

    Microsoft's driver takes an interrupted read for a lost connection, and pyodbc then drops the
    exception of the handler: Ctrl-C would be lost.
    """
    held = {number for number in _SIGNALS if callable(signal.getsignal(number))}
    if not held:
        yield
        return
    # A handler may run, and raise, while the signals are being blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def open_connection(text: str, timeout: int) -> Any:
    """Connect in autocommit, in a thread, so that a signal handler's exception is raised at once.

    pyodbc drops such an exception while it reads the driver's error. A connection that comes too
    late is closed by the garbage collector.

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
    """Disable the connection's output converters for the types of results."""
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
    """Return the rows of the only result set, and read on: an error may follow it."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(map(tuple, cursor.fetchall()))
        if not cursor.nextset():
            return rows


def execute(connection: Any, statement: str) -> None:
    """Run one or more statements to the end."""
    with signals_held(), closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        drain(cursor)


def value_of(connection: Any, query: str) -> Any:
    """Return the value of a query with one row and one column."""
    with signals_held(), closing(connection.cursor()) as cursor:
        cursor.execute(query)
        ((value,),) = drain(cursor)
        return value


def commit(connection: Any) -> None:
    """Commit the transaction; signal handlers run before or after it."""
    with signals_held():
        connection.commit()


def roll_back(connection: Any) -> None:
    """Roll the transaction back."""
    with signals_held():
        connection.rollback()


def text_of(error: Exception) -> str:
    """Return the text of an error, without the SQLSTATE before it."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def states_of(error: Exception) -> set[str]:
    """Return the SQLSTATEs in an error."""
    first = {str(error.args[0])} if len(error.args) > 1 else set()
    return first | set(_STATE.findall(text_of(error)))


def numbers_of(error: Exception) -> set[int]:
    """Return the numbers of the server, or of the driver, in an error."""
    return {int(number) for number in _NUMBER.findall(text_of(error))}


def rowq_error_of(error: Exception) -> str | None:
    """Return the message of rowq's own code, such as RQ701 queue_not_found: ..., or None.

    The message must have the matching server number: RQ701 has 52701.
    """
    found = _ROWQ_ERROR.search(text_of(error))
    return found[1] if found else None


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal in a driver's error, or None."""
    text = rowq_error_of(error)
    return refusal_from_text(text) if text else None


def message_of(text: str) -> str:
    """Return the first message of the server in a driver's text."""
    found = _MESSAGE.match(text)
    return found[1] if found else text


class Transactions:
    """Transactions that rowq opened: the server's number of each, by id of the connection."""

    def __init__(self) -> None:
        self._opened: dict[int, int] = {}

    def is_open(self, connection: Any) -> bool:
        """Whether a call now would be inside a transaction that the caller must end."""
        if connection.closed:
            return False
        opened = self._opened.get(id(connection))
        if opened is None and not connection.autocommit:
            return True
        try:
            if opened is None:
                return bool(value_of(connection, "select @@trancount"))
            return bool(value_of(connection, _IDENTITY) == opened)
        except load_driver().Error:
            return False

    @contextmanager
    def outermost(self, connection: Any) -> Iterator[None]:
        """Leave autocommit for a block; commit or roll back at its end.

        Autocommit is restored only if no transaction is open, which the driver would commit.
        Raises RowqError if the block ended the transaction.
        """
        connection.autocommit = False
        try:
            execute(connection, _OPEN)
            opened = value_of(connection, _IDENTITY)
            self._opened[id(connection)] = opened
            yield
            _require_same(connection, opened)
            commit(connection)
            connection.autocommit = True
        except BaseException:
            _undo(connection)
            raise
        finally:
            self._opened.pop(id(connection), None)

    @contextmanager
    def nested(self, connection: Any) -> Iterator[None]:
        """Roll back to here on an exception; T-SQL cannot release a savepoint.

        Raises RowqError if the block ended the transaction, and so committed or rolled back the
        earlier statements.
        """
        name = f"rowq_{next(_savepoints)}"
        opened = value_of(connection, _IDENTITY)
        execute(connection, f"save transaction {name}")
        try:
            yield
            _require_same(connection, opened)
        except BaseException:
            _back_to(connection, name)
            raise


def _undo(connection: Any) -> None:
    """Roll back and restore autocommit; close the connection if that fails."""
    error = load_driver().Error
    try:
        execute(connection, _REOPEN)
        roll_back(connection)
        connection.autocommit = True
    except error:
        with suppress(error):
            connection.close()


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, or the whole transaction if that is no longer possible."""
    error = load_driver().Error
    try:
        execute(connection, _BACK_TO.format(name=savepoint))
    except error:
        with suppress(error):
            roll_back(connection)


def _require_same(connection: Any, opened: int) -> None:
    if value_of(connection, _IDENTITY) != opened:
        raise RowqError("the block must not end its transaction")
