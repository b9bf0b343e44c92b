"""Sessions on SQL Server: statements with named values, prepared by pyodbc."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.engines.sqlserver.statistics_io import START, Reads, parse
from benchmarks.harness.session import NAMED_VALUE, RetryError, Row, Session, Value, as_bytes
from rowq.engines.sqlserver.driver import execute, is_by_freetds, load_driver, value_of
from rowq.engines.sqlserver.engine import ENGINE
from rowq.engines.sqlserver.errors import numbers_of, text_of
from rowq.tools.engines.sqlserver.statements import batches

LOST_RACE = 50001
"""The number that a form throws where another session has taken what it had found."""

_RETRY_NUMBERS = {1205, 1222, 3960, 3961, LOST_RACE}
# In T-SQL `begin` alone begins no transaction, and a rollback without one is an error.
_WORDS = {
    "begin": "begin transaction",
    "commit": "commit transaction",
    "rollback": "if @@trancount > 0 rollback transaction",
}
# These are ODBC's numbers of integers and of nvarchar(max), which FreeTDS sends under an older name
# only.
_INTEGER, _BIGINT, _NVARCHAR, _LONG_NVARCHAR = 4, -5, -9, -10
_LARGEST_INTEGER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement with a mark for each value, and the cursor that has it prepared."""

    text: str
    cursor: Any


class SqlserverSession(Session):
    """A session through pyodbc; a statement that has values is prepared when it is first run.

    A list of values gets a mark for each of its elements. All results are read, to the end.
    """

    def __init__(self, url: str) -> None:
        self._connection = ENGINE.connect(url)
        self._error: type[Exception] = load_driver().Error
        self._text_type = _LONG_NVARCHAR if is_by_freetds(self._connection) else _NVARCHAR
        self._prepared: dict[str, _Prepared] = {}
        self.backend = int(value_of(self._connection, "select @@spid"))
        self._reads: Reads | None = None

    def close(self) -> None:
        """Close the session."""
        ENGINE.close(self._connection)

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement, return the rows of all its results."""
        order = NAMED_VALUE.findall(statement)
        marks = {name: _marks(values[name]) for name in order}
        text = NAMED_VALUE.sub(lambda found: marks[found[1]], _WORDS.get(statement, statement))
        known = self._prepared.get(text)
        if known is None:
            known = self._prepared[text] = _Prepared(text, self._connection.cursor())
        given = [element for name in order for element in _elements(values[name])]
        try:
            if given:
                known.cursor.setinputsizes([self._type_of(element) for element in given])
            # Give the same text object again, because pyodbc prepares another object anew.
            known.cursor.execute(known.text, *given)
            return self._read(known.cursor)
        except self._error as error:
            is_passing = bool(numbers_of(error) & _RETRY_NUMBERS)
            raise (RetryError if is_passing else RuntimeError)(text_of(error)) from error

    def script(self, text: str) -> None:
        """Run a script whose batches end with `go`."""
        for batch in batches(text):
            execute(self._connection, batch)

    def tell_reads(self) -> Reads:
        """Return the pages that statements have read since this was first called."""
        if self._reads is None:
            execute(self._connection, START)
            self._reads = Reads()
        return self._reads

    def _read(self, cursor: Any) -> list[Row]:
        rows: list[Row] = []
        self.affected = 0
        while True:
            if cursor.description:
                rows.extend(tuple(map(as_bytes, row)) for row in cursor.fetchall())
            else:
                self.affected = max(self.affected, cursor.rowcount)
            # The driver makes a new list for each result; what was read comes after its rows.
            told = cursor.messages
            self._hear(told)
            if not cursor.nextset():
                break
        if cursor.messages is not told:
            self._hear(cursor.messages)
        return rows

    def _hear(self, told: Sequence[tuple[str, str]] | None) -> None:
        if self._reads is not None:
            self._reads = self._reads.plus(parse(text for _, text in told or ()))

    def _type_of(self, value: int | str) -> tuple[int, int, int]:
        """Return the type that a value is sent as; always the same one for texts of any length."""
        if isinstance(value, str):
            return self._text_type, 0, 0
        return _INTEGER if abs(value) <= _LARGEST_INTEGER else _BIGINT, 0, 0


def _marks(value: Value) -> str:
    return ", ".join("?" * len(_elements(value)))


def _elements(value: Value) -> Sequence[int | str]:
    if isinstance(value, bytes):
        return [value.decode()]
    return [value] if isinstance(value, int | str) else value
