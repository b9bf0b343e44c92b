"""top: the queues on a screen that refreshes itself."""

import sys
from typing import Annotated

import typer

from rowq.tools.command.top.frame import frame
from rowq.tools.command.top.screen import watch
from rowq.tools.command.top.snapshots import Looker
from rowq.tools.command.top.view import View
from rowq.tools.console.database import open_queue
from rowq.tools.console.options import Url
from rowq.tools.console.output import console


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Operation")(top)


def top(
    url: Url,
    queue_name: Annotated[
        str | None,
        typer.Option("--queue", metavar="QUEUE", help="Begin with this queue alone."),
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two looks.", min=0.1)] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print one look and end, as without a terminal.")
    ] = False,
    max_count: Annotated[
        int, typer.Option(help="Count no further; a count that reaches it has a +.", min=1)
    ] = 10_000,
) -> None:
    """Show queues, workers, idle ones too, and what needs attention, until q or Ctrl-C.

    Looks as rowq_monitor may, and shows no message's body. out/s and failed/s are what workers
    report, every ten seconds; in/s is reckoned from the looks of the last ten seconds. Keys:
    arrows choose a queue and Enter shows it alone, Escape all of them; d its dead messages, s
    another order, p a pause, q the end.
    """
    view = View(entered=queue_name, max_count=max_count)
    # Whoever looks at the screen is told at once; the next look tries again.
    with open_queue(url, reconnect_seconds=1.0) as queue:
        looker = Looker(queue, url)
        snapshot = looker.look(view)
        if once or not sys.stdout.isatty():
            console().print(frame(view, snapshot, width=100, height=None))
        else:
            watch(looker, view, snapshot, interval)
