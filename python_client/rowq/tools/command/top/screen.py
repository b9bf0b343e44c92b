"""Shows looks on a terminal until somebody presses q."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import ModuleType

from rich.live import Live

from rowq.engines import is_foreseen
from rowq.tools.command.top.frame import frame
from rowq.tools.command.top.snapshots import Looker
from rowq.tools.command.top.view import Snapshot, View
from rowq.tools.console.database import hide_secrets
from rowq.tools.console.errors import one_line
from rowq.tools.console.output import console

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
