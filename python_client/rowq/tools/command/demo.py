"""The command demo."""

from contextlib import ExitStack
from typing import Annotated

import typer
from rich.console import Console

from rowq.engines import without_password
from rowq.tools.console.database import NotInstalled, is_bare, remember_url
from rowq.tools.console.errors import CommandFailed
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import AsJson
from rowq.tools.console.output import print_json, record
from rowq.tools.demo.demo import private_server, run
from rowq.tools.demo.report import Report, Show, print_report


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="The installation")(demo)


DemoUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        help="Database to use. Default: a private PostgreSQL server.",
        show_default=False,
        callback=remember_url,
    ),
]


def demo(url: DemoUrl = None, as_json: AsJson = False) -> None:
    """Run 69,659 real orders through a queue, and kill a worker.

    Then every total is checked. Without --url it starts a private PostgreSQL and removes it at the
    end; ROWQ_URL is ignored. With --url it creates a queue and a table in that database, which
    needs rowq, and drops both at the end.
    """
    console = Console(stderr=as_json, highlight=False)
    with ExitStack() as stack:
        show = stack.enter_context(Show(console))
        if url is None:
            report = run(stack.enter_context(private_server(show)), show)
        else:
            if is_bare(url):
                raise NotInstalled(
                    "rowq is not installed in this database; install it with: rowq migrate"
                )
            show.say(f"using {without_password(url)}")
            report = run(url, show)
    print_result(report, console, as_json)


def print_result(report: Report, console: Console, as_json: bool) -> None:
    """Print the result; raise CommandFailed if a total is wrong."""
    if as_json:
        rates = {
            "enqueued_per_second": round(report.enqueued_per_second),
            "drained_per_second": round(report.drained_per_second),
        }
        print_json(record(report) | rates | {"faults": report.faults()})
    else:
        print_report(console, report)
    if faults := report.faults():
        raise CommandFailed(ExitCode.INCOMPLETE, "the demo failed: " + "; ".join(faults))
