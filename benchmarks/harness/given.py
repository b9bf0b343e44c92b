"""A server at a given URL, with a fresh database for each run."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol


class Installed(Protocol):
    """A system that a template database is made for."""

    @property
    def name(self) -> str:
        """A word."""

    @property
    def install(self) -> Callable[[str], object]:
        """A function that brings it into the empty database of a URL."""


class GivenServer(Protocol):
    """Makes and drops a server's databases."""

    def fresh_database(self) -> str:
        """Make an empty database and return its URL."""

    def drop_database(self, url: str) -> None:
        """Drop it."""


class FreshDatabases:
    """The part of a lab that such servers share; there is no directory of their disk."""

    directory: Path | None = None

    def __init__(self, databases: GivenServer) -> None:
        self._databases = databases

    def prepare(self, system: Installed) -> None:
        """Do nothing: each run installs anew."""

    @contextlib.contextmanager
    def fresh(self) -> Iterator[str]:
        """Make an empty database, and drop it afterwards."""
        url = self._databases.fresh_database()
        try:
            yield url
        finally:
            self._databases.drop_database(url)

    @contextlib.contextmanager
    def database(self, system: Installed) -> Iterator[str]:
        """Bring a system into a fresh database, and drop that afterwards."""
        with self.fresh() as url:
            system.install(url)
            yield url
