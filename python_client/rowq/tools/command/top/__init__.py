"""top: the queues on a screen that refreshes itself."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Annotated

import typer
from rich.live import Live

from rowq.engines import is_foreseen
from rowq.messages import LAST_ID
from rowq.queue import Queue
from rowq.tools.command.top.frame import Snapshot, View, frame
from rowq.tools.console.database import hide_secrets, open_queue, server_of
from rowq.tools.console.errors import one_line
from rowq.tools.console.options import Url
from rowq.tools.console.output import console
from rowq.tools.throughput import listed_workers

_MOST = 100
"""Claims, and dead messages, of a look: more are not on a screen."""

_NAMES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
}
"""What a terminal sends for keys that have a name."""


class Looker:
    """Looks at one database."""

    def __init__(self, queue: Queue, url: str) -> None:
        self._queue = queue
        self._server = server_of(url)

    def look(self, view: View) -> Snapshot:
        """Return what there is of what a view shows; raises what a call raises."""
        queue, name = self._queue, view.entered
        snapshot = Snapshot(
            at=time.monotonic(),
            server=self._server,
            queues=queue.queue_stats(name, max_count=view.max_count),
            workers=listed_workers(queue, name) or (),
            claims=queue.list_claims(name, max_claims=_MOST),
            checks=[check for check in queue.health() if check.status != "ok"],
            dead=queue.list_dead(name, max_messages=_MOST, before_message_id=LAST_ID)
            if name is not None and view.shows_dead
            else (),
        )
        view.remember(snapshot)
        return snapshot


def watch(looker: Looker, view: View, snapshot: Snapshot, interval: float) -> None:
    """Show looks, `interval` seconds apart, until q or Ctrl-C.

    A look that fails is shown as a line above the last one that did not, and is made again.
    """
    with (
        suppress(KeyboardInterrupt),
        Live(console=console(), auto_refresh=False, screen=True) as live,
        _keyboard() as keyboard,
    ):
        while _wait(live, keyboard, view, snapshot, interval):
            if not view.is_paused:
                snapshot = _next(looker, view, snapshot)


def _wait(
    live: Live, keyboard: "_Keyboard", view: View, snapshot: Snapshot, seconds: float
) -> bool:
    """Show a look until it is time for another one; return False when that shall not be."""
    _draw(live, view, snapshot)
    due_at = time.monotonic() + seconds
    while (left := due_at - time.monotonic()) > 0 and (key := keyboard.next(left)) is not None:
        if key == "q":
            return False
        before = view.entered, view.shows_dead
        view.press(key, snapshot.queues)
        if (view.entered, view.shows_dead) != before:
            view.is_paused = False
            return True
        _draw(live, view, snapshot)
    return True


def _draw(live: Live, view: View, snapshot: Snapshot) -> None:
    size = live.console.size
    live.update(frame(view, snapshot, width=size.width, height=size.height), refresh=True)


def _next(looker: Looker, view: View, last: Snapshot) -> Snapshot:
    """Return a new look, or the last one where it fails, which the view then says."""
    try:
        snapshot = looker.look(view)
    except Exception as error:
        if not is_foreseen(error):
            raise
        view.error = hide_secrets(one_line(error))
        return last
    view.error = None
    return snapshot


class _Keyboard:
    """Keys of a terminal; none without one."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def next(self, seconds: float) -> str | None:
        """Return the next key, such as q or up; None when none comes in this time."""
        if self._descriptor is None:
            time.sleep(seconds)
            return None
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return None
        read = os.read(self._descriptor, 16).decode(errors="replace")
        return _NAMES.get(read, read[:1])


@contextmanager
def _keyboard() -> Iterator[_Keyboard]:
    """Lend the keys as they are pressed, not line by line, and leave the terminal as it was."""
    termios = _termios()
    if termios is None or not sys.stdin.isatty():
        yield _Keyboard(None)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    changed = termios.tcgetattr(descriptor)
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(descriptor, termios.TCSADRAIN, changed)
    try:
        yield _Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _termios() -> ModuleType | None:
    """Return what sets terminals up; Windows has none, and no keys here."""
    try:
        import termios
    except ImportError:
        return None
    return termios


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
