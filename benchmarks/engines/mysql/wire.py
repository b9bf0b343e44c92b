"""A connection through libmariadb, MariaDB's C client library.

PyMySQL can use more CPU time for a statement than the server; calls of the C library take
microseconds.
"""

import ctypes
import ctypes.util
from functools import cache
from typing import Any

from benchmarks.harness.host import Closing
from rowq.engines.mysql.url import connection_parameters

BARE = "rowq_bench"
"""The database of the other systems."""

_LIBRARY = "libmariadb.so.3"
_SET_CHARSET_NAME = 7
_PROTOCOL_TCP = 1
_OPT_PROTOCOL = 9

Row = tuple[bytes | None, ...]


class WireError(RuntimeError):
    """An error of the server or the library; number is its error number."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"{number}: {text}")
        self.number = number


class Connection(Closing):
    """An open session in autocommit, without TLS.

    affected: number of rows that the last statement changed.
    """

    def __init__(self, url: str) -> None:
        self.affected = 0
        parts = connection_parameters(url)
        self._lib = _library()
        self._handle = self._lib.mysql_init(None)
        self._lib.mysql_options(self._handle, _SET_CHARSET_NAME, b"utf8mb4")
        tcp = ctypes.c_uint(_PROTOCOL_TCP)
        self._lib.mysql_options(self._handle, _OPT_PROTOCOL, ctypes.byref(tcp))
        names = ("host", "user", "password", "database")
        words = [parts[name].encode() if name in parts else None for name in names]
        multi_results = 1 << 17
        if not self._lib.mysql_real_connect(
            self._handle, *words, parts["port"], None, multi_results
        ):
            raise self._error()

    def close(self) -> None:
        """Close the session."""
        self._lib.mysql_close(self._handle)

    def run(self, statement: bytes) -> list[Row]:
        """Run a statement; return the rows of its first result and discard the others."""
        lib, handle = self._lib, self._handle
        if lib.mysql_real_query(handle, statement, len(statement)):
            raise self._error()
        rows = self._rows()
        # Read the count now, because asking for the next result resets it.
        self.affected = int(lib.mysql_affected_rows(handle))
        while (more := lib.mysql_next_result(handle)) == 0:
            self._rows()
        if more > 0:
            raise self._error()
        return rows

    def _rows(self) -> list[Row]:
        lib = self._lib
        result = lib.mysql_store_result(self._handle)
        if not result:
            if lib.mysql_errno(self._handle):
                raise self._error()
            return []
        columns = range(lib.mysql_num_fields(result))
        rows = []
        while row := lib.mysql_fetch_row(result):
            rows.append(tuple(row[column] for column in columns))
        lib.mysql_free_result(result)
        return rows

    def _error(self) -> WireError:
        text = self._lib.mysql_error(self._handle).decode(errors="replace")
        return WireError(self._lib.mysql_errno(self._handle), text)


@cache
def _library() -> Any:
    """Load the library and declare its functions.

    Raises OSError if it is missing; it is in Debian's package libmariadb3.
    """
    lib = ctypes.CDLL(ctypes.util.find_library("mariadb") or _LIBRARY)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulong
    row = ctypes.POINTER(ctypes.c_char_p)
    for name, result, arguments in (
        ("mysql_init", pointer, [pointer]),
        ("mysql_options", ctypes.c_int, [pointer, ctypes.c_int, pointer]),
        (
            "mysql_real_connect",
            pointer,
            [pointer, text, text, text, text, ctypes.c_uint, text, number],
        ),
        ("mysql_close", None, [pointer]),
        ("mysql_real_query", ctypes.c_int, [pointer, text, number]),
        ("mysql_next_result", ctypes.c_int, [pointer]),
        ("mysql_store_result", pointer, [pointer]),
        ("mysql_num_fields", ctypes.c_uint, [pointer]),
        ("mysql_fetch_row", row, [pointer]),
        ("mysql_free_result", None, [pointer]),
        ("mysql_affected_rows", ctypes.c_ulonglong, [pointer]),
        ("mysql_error", text, [pointer]),
        ("mysql_errno", ctypes.c_uint, [pointer]),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
