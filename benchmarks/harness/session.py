"""Sessions that run statements with named values, with as little of the client as possible."""

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.harness.closing import Closing

Row = tuple[bytes | None, ...]
Value = int | str | bytes | Sequence[int]

NAMED_VALUE = re.compile(r"(?<![:\w]):([a-z]\w*)")
"""A value in a statement of a form, by its name."""


class RetryError(RuntimeError):
    """A deadlock, a lock timeout or a lost race: nothing was done, the caller may try again."""


class Session(Closing):
    """An open session in autocommit.

    backend: the server's number of the session. affected: how many rows the last statement changed.
    """

    backend: int
    affected: int = 0

    @property
    def server_cpu(self) -> float:
        """Seconds that the server spent for this session alone; 0 where nobody can tell."""
        return 0.0

    @abstractmethod
    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement, return its rows; raises RetryError, or RuntimeError for the others."""

    @abstractmethod
    def script(self, text: str) -> None:
        """Run any number of statements."""


def as_bytes(value: Any) -> bytes | None:
    """Return a column as libpq and libmariadb give it: numbers and texts as their characters."""
    return value if value is None or isinstance(value, bytes) else str(value).encode()


OpenSession = Callable[[str], Session]
