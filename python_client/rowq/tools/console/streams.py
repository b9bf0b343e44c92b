"""Standard streams: always UTF-8, with defined behavior if one fails."""

import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from rowq.tools.terminal import printable_lines

STANDARD_INPUT = Path("-")
"""The name of a file that means standard input."""

# Flags to reopen a closed standard stream, so that no file or connection gets its number. Writing
# to standard output then fails, as it should; standard error is discarded.
_REOPEN_FLAGS = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


def say(text: str, *, err: bool = False) -> None:
    """Write lines to standard output or error, without terminal control characters."""
    typer.echo(printable_lines(text), err=err)


def can_ask() -> bool:
    """Return whether a terminal can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(effect: str) -> None:
    """Print the effect of a command and ask for confirmation; raise typer.Abort for a no."""
    typer.confirm(printable_lines(f"{effect} Continue?"), abort=True, err=True)


class ReaderGone(BrokenPipeError):  # noqa: N818 - named by what happened
    """The reader closed standard output."""


class Output(io.FileIO):
    """Standard output that discards everything after a failed write.

    A buffer must not be written later: its messages may have been released.
    """

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write; raise OSError once, as ReaderGone if the reader is gone."""
        if self.failure is not None:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            kind = ReaderGone if isinstance(error, BrokenPipeError) else OSError
            self.failure = kind(error.errno, error.strerror, "standard output")
            raise self.failure from None


class Errors(io.FileIO):
    """Standard error that ignores failed writes, so that they fail no command."""

    def write(self, data: Any, /) -> int:
        """Write, and ignore an OSError."""
        with suppress(OSError):
            return super().write(data) or len(data)
        return len(data)


def take_over() -> Output:
    """Replace the standard streams, and return the raw standard output; Unix only."""
    for number, flags in enumerate(_REOPEN_FLAGS):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    output = Output(1, "w", closefd=False)
    sys.stdout = _text(output)
    sys.stderr = _text(Errors(2, "w", closefd=False))
    return output


def _text(raw: io.FileIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )
