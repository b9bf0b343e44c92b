"""The program's standard streams: UTF-8 whatever the locale, and what happens when one fails."""

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

# A standard stream that is closed is opened with these flags, so that no file or connection takes
# its number. Writing to standard output then fails, as it should; standard error is just not seen.
_STAND_INS = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)


def say(text: str, *, err: bool = False) -> None:
    """Write lines to standard output or standard error; no character commands the terminal."""
    typer.echo(printable_lines(text), err=err)


def can_ask() -> bool:
    """Whether there is a terminal to ask a question on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(effect: str) -> None:
    """Say what a command is about to do, and ask; raises typer.Abort for a no."""
    typer.confirm(printable_lines(f"{effect} Go on?"), abort=True, err=True)


class ReaderGone(BrokenPipeError):  # noqa: N818 - named by what happened
    """Nobody reads standard output any more."""


class Output(io.FileIO):
    """Standard output. Once a write has failed, it takes everything and writes nothing.

    What still lies in a buffer then must not come out later: its messages may have been given back.
    """

    failure: OSError | None = None

    def write(self, data: Any, /) -> int:
        """Write; raises OSError, once, which is ReaderGone when nobody reads."""
        if self.failure is not None:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            kind = ReaderGone if isinstance(error, BrokenPipeError) else OSError
            self.failure = kind(error.errno, error.strerror, "standard output")
            raise self.failure from None


class Errors(io.FileIO):
    """Standard error; what cannot be written is dropped, so that it fails no command."""

    def write(self, data: Any, /) -> int:
        """Write what can be written, and drop the rest."""
        with suppress(OSError):
            return super().write(data) or len(data)
        return len(data)


def take_over() -> Output:
    """Replace the standard streams, and return what is below standard output; for Unix."""
    for number, flags in enumerate(_STAND_INS):
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
