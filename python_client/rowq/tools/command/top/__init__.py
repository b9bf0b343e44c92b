"""The command top."""

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
"""Maximum number of claims and dead messages in a snapshot: a screen holds no more."""

_NAMES = {
    "\x1b[A": "up",
    "\x1b[B": "down",
    "\x1bOA": "up",
    "\x1bOB": "down",
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
}
"""Escape sequences of named keys."""


class SnapshotReader:
    """Reads snapshots of one database."""

    def __init__(self, queue: Queue, url: str) -> None:
        self._queue = queue
        self._server = server_of(url)

    def read(self, view: View) -> Snapshot:
        """Return a snapshot of what a view shows."""
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


def watch(reader: SnapshotReader, view: View, snapshot: Snapshot, interval: float) -> None:
    """Show a snapshot every `interval` seconds until q or Ctrl-C.

    If reading fails, the error is shown above the last snapshot, and reading is retried.
    """
    with (
        suppress(KeyboardInterrupt),
        Live(console=console(), auto_refresh=False, screen=True) as live,
        _keyboard() as keyboard,
    ):
        while _wait(live, keyboard, view, snapshot, interval):
            if not view.is_paused:
                snapshot = _next(reader, view, snapshot)


def _wait(
    live: Live, keyboard: "_Keyboard", view: View, snapshot: Snapshot, seconds: float
) -> bool:
    """Show a snapshot until the next one is due; return False to quit."""
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


def _next(reader: SnapshotReader, view: View, last: Snapshot) -> Snapshot:
    """Return a new snapshot; on an error, record it in the view and return the last one."""
    try:
        snapshot = reader.read(view)
    except Exception as error:
        if not is_foreseen(error):
            raise
        view.error = hide_secrets(one_line(error))
        return last
    view.error = None
    return snapshot


class _Keyboard:
    """Keys of a terminal; none without a terminal."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def next(self, seconds: float) -> str | None:
        """Return the next key, such as q or up; None after `seconds`."""
        if self._descriptor is None:
            time.sleep(seconds)
            return None
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return None
        read = os.read(self._descriptor, 16).decode(errors="replace")
        return _NAMES.get(read, read[:1])


@contextmanager
def _keyboard() -> Iterator[_Keyboard]:
    """Read single keys for a block, then restore the terminal."""
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
    """Return the module termios; None on Windows, where keys are not read."""
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
        typer.Option("--queue", metavar="QUEUE", help="Queue to show first. Default: all queues."),
    ] = None,
    interval: Annotated[float, typer.Option(help="Refresh interval in seconds.", min=0.1)] = 2.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print one snapshot and exit, as without a terminal.")
    ] = False,
    max_count: Annotated[
        int, typer.Option(help="Stop counting at this number; then a + is shown.", min=1)
    ] = 10_000,
) -> None:
    """Show queues, workers, claims and problems on a live screen.

    The role rowq_monitor suffices; bodies are not shown. Workers report out/s and failed/s every 10
    seconds; in/s is the average of the last 10 seconds. Keys: arrows select a queue, Enter shows
    only that queue, Escape all queues, d dead messages, s changes the order, p pauses, q quits.
    """
    view = View(entered=queue_name, max_count=max_count)
    # Show a lost connection soon; the next snapshot reconnects.
    with open_queue(url, reconnect_seconds=1.0) as queue:
        reader = SnapshotReader(queue, url)
        snapshot = reader.read(view)
        if once or not sys.stdout.isatty():
            console().print(frame(view, snapshot, width=100, height=None))
        else:
            watch(reader, view, snapshot, interval)
