"""The command `rowq`."""

from typing import Annotated

import typer

import rowq
from rowq.cli import consume, demo, doctor, look, migrate, produce, queues, repair, work
from rowq.cli.errors import MEANINGS, Guarded

_CODES = "\n".join(f"- {code}: {meaning}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    cls=Guarded,
    help=(
        "A message queue that lives in your SQL database.\n\nName the database in ROWQ_URL, or with"
        " --url, which other users of the machine can see in the process list."
    ),
    epilog=f"Exit status:\n\n{_CODES}",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rowq {rowq.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Do what every command needs: nothing."""


demo.register(app)
migrate.register(app)
doctor.register(app)
app.add_typer(queues.app, name="queue", rich_help_panel="Queues")
produce.register(app)
consume.register(app)
repair.register(app)
work.register(app)
look.register(app)
