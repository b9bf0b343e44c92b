"""A shell in a terminal of a given size, by tmux."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.working import ROOT, environment

SHELL = "PS1='shell> ' exec sh"


class Tmux:
    """A terminal; the prompt of its shell is "shell> "."""

    def __init__(self, socket: Path, size: tuple[int, int], url: str) -> None:
        self._command = ["tmux", "-S", str(socket), "-f", os.devnull, "-u"]
        self._environment = environment(url, LC_ALL="C.UTF-8")
        # Rich prefers these to the terminal's size.
        for name in ("COLUMNS", "LINES"):
            self._environment.pop(name, None)
        width, height = map(str, size)
        self._run("new-session", "-d", "-x", width, "-y", height, "-c", str(ROOT), SHELL)

    def type(self, *keys: str) -> None:
        """Press keys, such as q, Up or C-c."""
        self._run("send-keys", *keys)

    def screen(self) -> str:
        """Return what is on the screen."""
        return self._run("capture-pane", "-p")

    def says(self, words: str) -> Callable[[], bool]:
        """Return a condition: these words are on the screen."""
        return lambda: words in self.screen()

    def hides(self, words: str) -> Callable[[], bool]:
        """Return a condition: these words are not on the screen."""
        return lambda: words not in self.screen()

    def close(self) -> None:
        """End the terminal and everything that runs in it."""
        self._run("kill-server")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._command, *words],
            capture_output=True,
            text=True,
            env=self._environment,
            check=True,
        )
        return done.stdout


@contextmanager
def tmux(size: tuple[int, int], url: str) -> Iterator[Tmux]:
    """Open a terminal of these columns and lines, with ROWQ_URL set."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux; to run it: apt-get install tmux")
    # The path of a socket must be shorter than about 100 characters.
    with tempfile.TemporaryDirectory(prefix="rowq-") as directory:
        terminal = Tmux(Path(directory) / "t", size, url)
        try:
            yield terminal
        finally:
            terminal.close()
