"""Logs of this process's private servers, for the reports of failed tests."""

from pathlib import Path

LINES = 60
"""Maximum number of lines of a log in a report."""


class ServerLogs:
    """Log files of running servers; missing files are ignored."""

    def __init__(self) -> None:
        self._names: dict[Path, str] = {}
        self._sizes: dict[Path, int] = {}

    def add(self, path: Path, name: str) -> None:
        """Watch a server's log from now on."""
        self._names[path] = name

    def begin(self) -> None:
        """Store the end of each log before a test."""
        self._names = {path: name for path, name in self._names.items() if path.exists()}
        self._sizes = {path: path.stat().st_size for path in self._names}

    def sections(self) -> list[tuple[str, str]]:
        """Return a title and the last lines of each log that has grown since the test began."""
        found = []
        for path, name in self._names.items():
            if lines := self._lines(path):
                title = f"log of {name} since the test began, last {LINES} lines at most"
                found.append((title, "\n".join(lines[-LINES:])))
        return found

    def _lines(self, path: Path) -> list[str]:
        """Return the lines written since the test began."""
        try:
            with path.open("rb") as log:
                log.seek(self._sizes.get(path, 0))
                return log.read().decode("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []


LOGS = ServerLogs()
"""The logs of this process's servers, which servers add and the plugin reads."""
