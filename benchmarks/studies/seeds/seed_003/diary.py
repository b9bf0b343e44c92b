"""Writes down what happened to each message, in a file that survives the death of its writer."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

What = Literal["started", "ended"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: when (monotonic seconds), who, what, which message, and the message's text."""

    at: float
    who: str
    what: str
    message: int
    text: str


@dataclass(frozen=True, slots=True)
class Diary:
    """One writer's file; it is opened anew for each line, which is written at once."""

    path: Path

    def note(self, what: What, message: int, text: str) -> None:
        """Add a line."""
        line = f"{time.monotonic()} {self.path.stem} {what} {message} {text}\n"
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)


def read_diaries(folder: Path) -> list[Entry]:
    """Return what all writers noted in a directory, in the order of time."""
    return sorted(_entries(folder), key=lambda entry: entry.at)


def _entries(folder: Path) -> Iterator[Entry]:
    for path in folder.glob("*.diary"):
        for line in path.read_text("utf-8").splitlines():
            at, who, what, message, text = line.split(" ")
            yield Entry(float(at), who, what, int(message), text)
