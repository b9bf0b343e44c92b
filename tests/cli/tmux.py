"""A terminal of a given size, by tmux, in which a shell runs."""

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
        # Rich takes these before it asks the terminal.
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
        """Return what tells whether these words are on the screen."""
        return lambda: words in self.screen()

    def hides(self, words: str) -> Callable[[], bool]:
        """Return what tells whether these words are not on the screen."""
        return lambda: words not in self.screen()

    def close(self) -> None:
        """End the terminal, with all that runs in it."""
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
    """Lend a terminal of so many columns and lines, with ROWQ_URL set."""
    if shutil.which("tmux") is None:
        pytest.skip("no tmux; to run it: apt-get install tmux")
    # The path of a socket may not be longer than some hundred characters.
    with tempfile.TemporaryDirectory(prefix="rowq-") as directory:
        terminal = Tmux(Path(directory) / "t", size, url)
        try:
            yield terminal
        finally:
            terminal.close()
