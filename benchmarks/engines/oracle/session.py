"""Sessions on Oracle through python-oracledb's thin mode, statements with named values."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeGuard

from benchmarks.harness.session import NAMED_VALUE, RetryError, Row, Session, Value, as_bytes
from rowq.engines.oracle.engine import ENGINE
from rowq.tools.engines.oracle.statements import units

IMPATIENT = "wait for a second at most"
"""A word for the driver, which breaks calls off: Oracle cannot limit a session's waits for rows."""

ROWS = "rows"
"""The value by which a call hands back a cursor; what it has are the statement's rows."""

RETURNED = "returned"
"""The value by which a statement hands back one number; that is its only row."""

_BLOCK = re.compile(r"(?:begin|declare)\s")
# The server says by these: deadlock, busy, not granted in time, not serializable.
_RETRY_NUMBERS = {60, 54, 30006, 8177}
_BROKEN_OFF = "DPY-4024"
_PATIENCE_MS = 1000
# A text of at most so many bytes is sent as a value, in a block and in a statement; a longer one is
# sent as a LOB.
_FITS_A_BLOCK, _FITS_A_STATEMENT = 32_767, 4000
_ROWS_AT_A_TIME = 1000
_FAULTS = """
    select e.type, e.name, e.line, e.text
    from user_errors e
    where e.attribute = 'ERROR'
    order by e.name, e.type, e.sequence
"""


class OracleSession(Session):
    """A session; each statement commits by itself, unless `begin` has been run before.

    backend: the session's SID. The words begin, commit, rollback and IMPATIENT are for the driver.
    A list of numbers stands for that many values: `in (:ids)`.
    """

    def __init__(self, url: str) -> None:
        self._connection = ENGINE.connect(url)
        self.backend = int(self._connection.session_id)
        self._words: Mapping[str, Callable[[], None]] = {
            "begin": self._begin,
            "commit": lambda: self._end(self._connection.commit),
            "rollback": lambda: self._end(self._connection.rollback),
            IMPATIENT: self._be_impatient,
        }

    def close(self) -> None:
        """Close the session."""
        ENGINE.close(self._connection)

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement and return its rows; LOBs come as values, like everything else."""
        oracledb = _driver()
        try:
            if statement in self._words:
                self._words[statement]()
                return []
            with self._connection.cursor() as cursor, self._connection.cursor() as lent:
                return self._execute(cursor, lent, statement, values)
        except oracledb.Error as error:
            raise _told(error) from error

    def script(self, text: str) -> None:
        """Run units that end with a line of `/`; raises RuntimeError for code with errors in it."""
        with self._connection.cursor() as cursor:
            for unit in units(text):
                cursor.execute(unit)
        if faults := self.run(_FAULTS):
            lines = (" ".join((part or b"").decode() for part in fault) for fault in faults)
            raise RuntimeError("; ".join(lines))

    def _execute(
        self, cursor: Any, lent: Any, statement: str, values: Mapping[str, Value]
    ) -> list[Row]:
        sizes = tuple((name, len(value)) for name, value in values.items() if _is_list(value))
        text, names = spelled(statement, sizes)
        binds = self._binds(text, {name: values[name] for name in names if name in values})
        if ROWS in names:
            binds[f"p_{ROWS}"] = _wide(lent)
        if RETURNED in names:
            binds[f"p_{RETURNED}"] = cursor.var(int)
        _wide(cursor).execute(text, binds)
        self.affected = max(cursor.rowcount, 0)
        if RETURNED in names:
            return [_row(_returned(binds[f"p_{RETURNED}"].getvalue()))]
        if ROWS in names:
            return [_row(row) for row in lent.fetchall()]
        return [_row(row) for row in cursor.fetchall()] if cursor.description else []

    def _binds(self, text: str, values: Mapping[str, Value]) -> dict[str, Any]:
        """Return the driver's values; a text that is too long for one is sent as a LOB here."""
        longest = _FITS_A_BLOCK if is_block(text) else _FITS_A_STATEMENT
        binds: dict[str, Any] = {}
        for name, value in values.items():
            for key, bound in _named(name, value):
                is_long = isinstance(bound, str) and len(bound.encode()) > longest
                binds[key] = self._lob(bound) if is_long else bound
        return binds

    def _lob(self, text: Any) -> Any:
        return self._connection.createlob(_driver().DB_TYPE_CLOB, text)

    def _begin(self) -> None:
        self._connection.autocommit = False

    def _end(self, how: Callable[[], None]) -> None:
        how()
        self._connection.autocommit = True

    def _be_impatient(self) -> None:
        self._connection.call_timeout = _PATIENCE_MS


@cache
def spelled(statement: str, sizes: tuple[tuple[str, int], ...]) -> tuple[str, list[str]]:
    """Return a statement as the driver takes it, and the names of the values in it.

    sizes: how many values each list has. A name gets a `p_` in front, as some are words of SQL
    (`:session`), and a block the semicolon that the end of its section has lost.
    """
    counts = dict(sizes)

    def marks(found: re.Match[str]) -> str:
        name = found[1]
        if name not in counts:
            return f":p_{name}"
        return ", ".join(f":p_{name}_{place}" for place in range(counts[name]))

    names = list(dict.fromkeys(NAMED_VALUE.findall(statement)))
    return NAMED_VALUE.sub(marks, statement) + ";" * is_block(statement), names


def is_block(statement: str) -> bool:
    """Return whether a statement is a block of PL/SQL."""
    return _BLOCK.match(statement) is not None


def _is_list(value: Value) -> TypeGuard[Sequence[int]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _named(name: str, value: Value) -> Iterator[tuple[str, int | str]]:
    """Yield what a value is called in the text, and its parts."""
    if isinstance(value, int | str):
        yield f"p_{name}", value
    elif isinstance(value, bytes):
        yield f"p_{name}", value.decode()
    else:
        yield from ((f"p_{name}_{place}", element) for place, element in enumerate(value))


def _wide(cursor: Any) -> Any:
    """Let a cursor fetch whole results at a time, LOBs as values; return it."""
    cursor.arraysize = cursor.prefetchrows = _ROWS_AT_A_TIME
    cursor.outputtypehandler = _fetched
    return cursor


def _row(row: Sequence[Any]) -> Row:
    return tuple(map(as_bytes, row))


def _returned(value: Any) -> Sequence[Any]:
    """Return the number of a block, or of the row that a statement has changed, as a row."""
    return value if isinstance(value, list) else [value]


def _fetched(cursor: Any, metadata: Any) -> Any:
    """Let the driver fetch LOBs as values."""
    oracledb = _driver()
    kinds = {
        oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
        oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
    }
    kind = kinds.get(metadata.type_code)
    return kind and cursor.var(kind, arraysize=cursor.arraysize)


def _told(error: Exception) -> RuntimeError:
    """Return a driver's error in the words of the sessions."""
    detail = error.args[0]
    number, code = getattr(detail, "code", 0), getattr(detail, "full_code", "")
    kind = RetryError if number in _RETRY_NUMBERS or code == _BROKEN_OFF else RuntimeError
    return kind(str(error))


def _driver() -> Any:
    """Return python-oracledb, which is loaded by then: a session has been opened."""
    import oracledb

    return oracledb
