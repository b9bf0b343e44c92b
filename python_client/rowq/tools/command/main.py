"""The program `rowq`."""

import logging
import os
import sys
from typing import Annotated

import typer

import rowq
from rowq.contrib import imports
from rowq.tools.command import (
    consume,
    demo,
    load,
    metrics,
    migrate,
    operation,
    produce,
    queues,
    repair,
    schedules,
    stats,
    top,
    web,
    work,
)
from rowq.tools.console.errors import Guarded, one_line, say_error
from rowq.tools.console.exit_codes import MEANINGS, ExitCode
from rowq.tools.console.options import AsJson
from rowq.tools.console.output import print_json
from rowq.tools.console.streams import Output, ReaderGone, say, take_over

_CODES = "\n".join(f"- {code}: {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    cls=Guarded,
    help=(
        "A message queue inside your SQL database.\n\nSet the database in ROWQ_URL, or with --url,"
        " which other users of the machine can see in the process list."
    ),
    epilog=f"Exit status:\n\n{_CODES}",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


def version(as_json: AsJson = False) -> None:
    """Print the version of this program.

    `rowq status` shows the version in a database.
    """
    if as_json:
        print_json({"rowq_version": rowq.__version__})
    else:
        say(f"rowq {rowq.__version__}")


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Define the options before the command's name."""


demo.register(app)
migrate.register(app)
operation.register_doctor(app)
app.add_typer(queues.app, name="queue", rich_help_panel="Queues")
app.add_typer(schedules.app, name="schedule", rich_help_panel="Queues")
app.add_typer(queues.topics, name="topic", rich_help_panel="Queues")
produce.register(app)
load.register(app)
imports.register(app)
consume.register(app)
repair.register(app)
work.register(app)
stats.register(app)
operation.register(app)
top.register(app)
metrics.register(app)
web.register(app)
app.command(rich_help_panel="Operation")(version)


def main() -> None:
    """Run the program; raise SystemExit with its exit status."""
    # psycopg warns if Python does not know the server's time zone; rowq reads times as UTC.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    if os.name != "posix":
        app()
    output = take_over()
    try:
        app()
    except SystemExit as ended:
        sys.exit(_status(ended.code, output))


def _status(code: str | int | None, output: Output) -> str | int | None:
    """Return the exit status, given the command's code and whether its output could be written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        say_error(one_line(error))
    match output.failure:
        case None:
            return code
        case ReaderGone():
            return ExitCode.BROKEN_PIPE
        case _:
            return code or ExitCode.FAILED
