"""Errors as one line on standard error and an exit code."""

import os
import traceback
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperGroup

from rowq.engines import is_driver_error
from rowq.errors import (
    CannotConnect,
    ConnectionLost,
    DriverMissing,
    EngineUnknown,
    PackageMissing,
    Refused,
    RowqError,
    StaleClaim,
)
from rowq.rights import remedy_of
from rowq.tools.console.database import NotInstalled, hide_secrets
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.streams import ReaderGone, say
from rowq.tools.migrate.errors import MigrationError
from rowq.tools.terminal import printable_lines

# The base of every error that typer raises about the command line.
_USAGE_ERROR = cast(type[Exception], typer.BadParameter.__base__)


class CommandFailed(Exception):  # noqa: N818 - named by what happened, as the package's errors are
    """Ends the command with `code` after one line on standard error."""

    def __init__(self, code: ExitCode, text: str) -> None:
        super().__init__(text)
        self.code = code


class BadInput(CommandFailed):
    """The input is invalid."""

    def __init__(self, text: str) -> None:
        super().__init__(ExitCode.BAD_INPUT, text)


class Guarded(TyperGroup):
    """The root of all commands: prints an error as one line, and sets the exit code.

    With ROWQ_TRACEBACK=1 in the environment it prints the traceback first.
    """

    _CODES: ClassVar[tuple[tuple[type[Exception], ExitCode], ...]] = (
        (StaleClaim, ExitCode.INCOMPLETE),
        (Refused, ExitCode.REFUSED),
        (MigrationError, ExitCode.REFUSED),
        (CannotConnect, ExitCode.NO_CONNECTION),
        (ConnectionLost, ExitCode.NO_CONNECTION),
        (EngineUnknown, ExitCode.USAGE),
        (NotInstalled, ExitCode.NOT_INSTALLED),
        (DriverMissing, ExitCode.NOT_INSTALLED),
        (PackageMissing, ExitCode.NOT_INSTALLED),
        (RowqError, ExitCode.FAILED),
        (OSError, ExitCode.FAILED),
    )

    def invoke(self, ctx: Any) -> Any:
        """Run the command; raise typer.Exit with its code."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except _USAGE_ERROR as error:
            # typer prints it. It may quote names that another account chose.
            cast(Any, error).message = printable_lines(str(error))
            raise
        except KeyboardInterrupt:
            say_error("interrupted")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except ReaderGone:
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except Exception as error:
            if os.environ.get("ROWQ_TRACEBACK") == "1":
                say_error("".join(traceback.format_exception(error)).rstrip())
            say_error(self._line(error))
            raise typer.Exit(self._code(error) or ExitCode.FAILED) from None

    def _code(self, error: Exception) -> ExitCode | None:
        if isinstance(error, CommandFailed):
            return error.code
        if remedy_of(error):
            return ExitCode.REFUSED
        for kind, code in self._CODES:
            if isinstance(error, kind):
                return code
        return ExitCode.FAILED if is_driver_error(error) else None

    def _line(self, error: Exception) -> str:
        """Return the error as a line; an unexpected one with its type."""
        remedy = remedy_of(error)
        if remedy and remedy not in str(error):
            return f"{one_line(error)}: {remedy}"
        if self._code(error) is not None:
            return one_line(error)
        return f"{type(error).__name__}: {one_line(error)} (set ROWQ_TRACEBACK=1 for the traceback)"


def exit_code_of(error: BaseException) -> ExitCode:
    """Return the exit code for an error in the middle of a command."""
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, Refused):
        return ExitCode.REFUSED
    lost = isinstance(error, CannotConnect | ConnectionLost)
    return ExitCode.NO_CONNECTION if lost else ExitCode.FAILED


def one_line(error: BaseException) -> str:
    """Return the error's text as one line; a migration's remedy keeps its own line."""
    text = str(error)
    if isinstance(error, OSError) and error.filename and error.strerror:
        text = f"{error.filename}: {error.strerror}"
    # There PostgreSQL shows the position in its own code.
    text = text.partition("\nCONTEXT:")[0]
    lines = text.splitlines() or [type(error).__name__]
    if isinstance(error, MigrationError):
        return "\n".join(lines)
    return " ".join(line.strip() for line in lines if line.strip())


def say_error(text: str) -> None:
    """Write `rowq: text` to standard error, without secrets of the URL."""
    say(f"rowq: {hide_secrets(text)}", err=True)
