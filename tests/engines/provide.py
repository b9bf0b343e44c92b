"""Finds a server for each engine and version: a given URL, a container, or local programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from tests.engines.base import EngineProvider, Server, Unavailable
from tests.engines.postgres import PostgresProvider

PROVIDERS: tuple[EngineProvider, ...] = (PostgresProvider(),)
REQUIRED_VARIABLE = "ROWQ_REQUIRE_ENGINES"


def url_variable(engine: str) -> str:
    """Return the name of the variable with the URL of a server to test on."""
    return f"ROWQ_TEST_{engine.upper()}_URL"


def required() -> set[str]:
    """Return the names of servers whose absence is a failure and not a skip."""
    return {name for name in os.environ.get(REQUIRED_VARIABLE, "").split(",") if name}


class Servers:
    """The servers of one test run, each started when it is first needed and kept to the end.

    A URL in the environment wins: then its server is the only one of that engine. Otherwise a
    container is tried, then the programs that are installed here.
    """

    def __init__(self) -> None:
        self.running: dict[str, Server] = {}
        self.refused: dict[str, str] = {}
        self.outlook: list[str] = []
        self._sources: dict[str, tuple[EngineProvider, int]] = {}
        for provider in PROVIDERS:
            self._add(provider)

    @property
    def names(self) -> list[str]:
        """All servers that a test may ask for, started or not, available or not."""
        return [*self.running, *self._sources]

    def get(self, name: str) -> Server:
        """Return a server, such as "postgres18"; raises Unavailable with every reason."""
        if name in self.refused:
            raise Unavailable(self.refused[name])
        if name not in self.running:
            self.running[name] = self._start(name)
        return self.running[name]

    def close(self) -> None:
        """Stop everything that was started, and drop what was made."""
        for server in self.running.values():
            server.close()

    def _add(self, provider: EngineProvider) -> None:
        """Note the servers of one engine."""
        if url := os.environ.get(url_variable(provider.engine)):
            server = provider.from_url(url)
            self.running[server.name] = server
            self.outlook.append(f"{server.name}: {server.how}")
            return
        self.outlook += provider.outlook()
        for version in provider.versions:
            self._sources[f"{provider.engine}{version}"] = provider, version

    def _start(self, name: str) -> Server:
        """Start a server in the first way that works."""
        reasons = []
        for way, start in self._ways(name):
            try:
                return start()
            except Unavailable as reason:
                reasons.append(f"{way}: {reason}")
        self.refused[name] = "; ".join(reasons)
        raise Unavailable(self.refused[name])

    def _ways(self, name: str) -> Iterator[tuple[str, Callable[[], Server]]]:
        provider, version = self._sources[name]
        yield "docker", lambda: provider.from_docker(version)
        yield "local binaries", lambda: provider.from_local(version)
