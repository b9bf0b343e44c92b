"""Sessions that run statements with named values, with as little of the client as possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

Row = tuple[bytes | None, ...]
Value = int | str | bytes | Sequence[int]

NAMED_VALUE = re.compile(r"(?<![:\w]):([a-z]\w*)")
"""A value in a statement of a form, by its name."""


class RetryError(RuntimeError):
    """A deadlock, a lock timeout or a lost race: nothing was done, the caller may try again."""


class Session(Protocol):
    """An open session in autocommit."""

    def __enter__(self) -> Self:
        """Return the session."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the session."""

    def close(self) -> None:
        """Close the session, as leaving a `with` does."""

    @property
    def backend(self) -> int:
        """The server's number of the session."""

    @property
    def server_cpu(self) -> float:
        """Seconds that the server spent for this session alone; 0 where nobody can tell."""

    @property
    def affected(self) -> int:
        """How many rows the last statement changed."""

    def run(self, statement: str, **values: Value) -> list[Row]:
        """Run a statement, return its rows; raises RetryError, or RuntimeError for the others."""

    def script(self, text: str) -> None:
        """Run any number of statements."""


OpenSession = Callable[[str], Session]
