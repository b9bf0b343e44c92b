"""pyodbc, imported when it is first needed: signals, errors and transactions.

pyodbc puts all that a driver says about one failure into one text:
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

# The session or the server ended: killed, shut down, failed over, thrown out of an idle pool.
# FreeTDS's own numbers are cannot connect, read, write, end of file, out of step, dead.
CONNECTION_GONE = frozenset(
    {
        *(596, 6002, 6005, 17142, 17147, 17148, 17188, 17197, 40197, 40613, 40642),
        *(20002, 20004, 20006, 20009, 20017, 20020, 20047),
    }
)
# The database is read-only, or not here, as while its role changes.
WRONG_SERVER = frozenset({976, 978, 979, 982, 983, 3906})
# A lock was not granted in time, or a scan lost its place; locks, memory, disk or log are used up;
# Azure is busy; a database comes up or changes its state. 650, 3951 and 3952 are not among them
# (READPAST under serializable, snapshot where it cannot be): the isolation level of the caller's
# transaction is wrong, and stays so however often it is tried.
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
# These are a deadlock, an update conflict of a snapshot, and conflicts of tables in memory.
UNDONE = frozenset({1205, 3960, 3961, 41301, 41302, 41305, 41325})

# SQLSTATE and the names of those who passed them on come before the server's words.
_ORIGIN = r"(?:^|; )(?:\[[^\]]*\] ?)+"
_END = r"(?= \(SQL\w+\)|; \[\w{5}\] |$)"
_FAULT = re.compile(rf"{_ORIGIN}(RQ(\d{{3}}) \w+: .*?) \(52\2\){_END}", re.DOTALL)
_WORDS = re.compile(rf"^(?:\[[^\]]*\] ?)*(.*?)(?: \(\d+\))?{_END}", re.DOTALL)
_NUMBER = re.compile(rf" \((\d+)\){_END}")
_STATE = re.compile(r"(?:^|; )\[(\w{5})\] ")

# This leaves one transaction open, whether the driver has opened it already or leaves that to the
# first statement, where an explicit one counts twice.
_OPEN = """
    set nocount on;
    if @@trancount = 0 begin transaction;
    while @@trancount > 1 commit transaction;
"""
# Open a transaction where the server, or somebody's statement, has ended it: the driver's rollback
# needs one.
_REOPEN = "if @@trancount = 0 begin transaction;"
_IDENTITY = "select current_transaction_id()"
_BACK_TO = """
    if xact_state() = 1 rollback transaction {name};
    else if @@trancount > 0 rollback transaction;
"""
_savepoints = count(1)


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


def text_of(error: Exception) -> str:
    """Return what an error says, without the SQLSTATE that pyodbc puts before it."""
    return str(error.args[1]) if len(error.args) > 1 else str(error)


def states_of(error: Exception) -> set[str]:
    """Return the SQLSTATEs of all that went wrong."""
    first = {str(error.args[0])} if len(error.args) > 1 else set()
    return first | set(_STATE.findall(text_of(error)))


def numbers_of(error: Exception) -> set[int]:
    """Return the server's numbers, or the driver's own, of all that went wrong."""
    return {int(number) for number in _NUMBER.findall(text_of(error))}


def fault_of(error: Exception) -> str | None:
    """Return what rowq's own code on the server said, such as RQ701 queue_not_found: ...; or None.

    Only words that the server sent under the number that belongs to them: RQ701 under 52701.
    """
    found = _FAULT.search(text_of(error))
    return found[1] if found else None


def refusal_of(error: Exception) -> Refused | None:
    """Return the refusal of a routine that an error of the driver stands for, or None."""
    fault = fault_of(error)
    return refusal_from_text(fault) if fault else None


def words_of(text: str) -> str:
    """Return the server's own words of what a driver passed on, the first ones of several."""
    found = _WORDS.match(text)
    return found[1] if found else text


class Transactions:
    """The transactions that were opened here, by the connection that each is on."""

    def __init__(self) -> None:
        # Each value is the server's number of the transaction.
        self._opened: dict[int, int] = {}

    def is_open(self, connection: Any) -> bool:
        """Whether a call made now would be inside a transaction that the caller must end."""
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
        """Leave autocommit for a block, so that commit and rollback of the driver have a meaning.

        Autocommit comes back only where nothing is open: the driver would commit that.
        Raises RowqError when the transaction was ended inside.
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
        """Roll back to here on an exception; T-SQL has no word to release a savepoint.

        Raises RowqError when the transaction was ended inside: what went before is then undone,
        or committed, without anybody having asked for that.
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
    """Roll back and return to autocommit; a connection that cannot do that is closed."""
    error = load_driver().Error
    try:
        execute(connection, _REOPEN)
        roll_back(connection)
        connection.autocommit = True
    except error:
        with suppress(error):
            connection.close()


def _back_to(connection: Any, savepoint: str) -> None:
    """Roll back to a savepoint, and all of the transaction where that is no longer possible."""
    error = load_driver().Error
    try:
        execute(connection, _BACK_TO.format(name=savepoint))
    except error:
        with suppress(error):
            roll_back(connection)


def _require_same(connection: Any, opened: int) -> None:
    if value_of(connection, _IDENTITY) != opened:
        raise RowqError("the transaction was ended inside the block that it was opened for")
