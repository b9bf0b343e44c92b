"""Servers for each engine and version: at a URL, in a container, or from local programs."""

import os
import re
from collections.abc import Callable, Iterator

import pytest

from tests.engines.base import EngineProvider, Server, Unavailable, url_variable
from tests.engines.mysql import providers as mysql
from tests.engines.oracle import providers as oracle
from tests.engines.postgres import providers as postgres
from tests.engines.sqlserver import providers as sqlserver

PROVIDERS: tuple[EngineProvider, ...] = (
    *postgres.PROVIDERS,
    *mysql.PROVIDERS,
    *sqlserver.PROVIDERS,
    *oracle.PROVIDERS,
)
REQUIRED_VARIABLE = "ROWQ_REQUIRE_ENGINES"


def required() -> set[str]:
    """Return the servers that must be available, from ROWQ_REQUIRE_ENGINES."""
    return {name for name in os.environ.get(REQUIRED_VARIABLE, "").split(",") if name}


class Servers:
    """The servers of a test run, each started on first use and kept until the end.

    A URL in the environment replaces all servers of its product. Otherwise a container is tried,
    then local programs.

    Attributes:
        running: the started servers and those at a URL, by name.
        refused: why a server is not available, by name.
        outlook: lines for the head of a report.
        at_hand: the names of the servers that are tested by default.
        migrated: the URL of each server's shared database with rowq, by name.
        given: the names of the servers at a URL in the environment.
        shared: the names of the servers that all worker processes share.
    """

    def __init__(self) -> None:
        self.running: dict[str, Server] = {}
        self.refused: dict[str, str] = {}
        self.outlook: list[str] = []
        self.at_hand: list[str] = []
        self.migrated: dict[str, str] = {}
        self.given: set[str] = set()
        self.shared: set[str] = set()
        self._sources: dict[str, tuple[EngineProvider, str]] = {}
        for provider in PROVIDERS:
            self._add(provider)

    @property
    def names(self) -> list[str]:
        """The names of all servers, started or not, available or not."""
        return [*self.running, *(name for name in self._sources if name not in self.running)]

    def named(self, word: str) -> list[str]:
        """Return the server of this name, or a product's available servers.

        If a product has none, return its preferred version, so that tests skip with the reason, or
        a server of its engine at a URL, such as a Babelfish for sqlserver.
        """
        if word in self.names:
            return [word]
        versions = re.compile(re.escape(word) + r"[\d.]+")
        return (
            [name for name in self.at_hand if versions.fullmatch(name)]
            or [name for name in self.names if versions.fullmatch(name)][:1]
            or [name for name in self.running if self.engine_of(name) == word]
        )

    @property
    def required(self) -> set[str]:
        """The servers that must be available."""
        return {name for word in required() for name in self.named(word)}

    def engine_of(self, name: str) -> str:
        """Return the engine of a server, such as mysql for mariadb10.11."""
        if name in self.running:
            return self.running[name].engine
        return self._sources[name][0].engine

    def get(self, name: str) -> Server:
        """Return a running server by name; raise Unavailable with the reasons."""
        if name in self.refused:
            raise Unavailable(self.refused[name])
        if name not in self.running:
            self.running[name] = self._start(name)
        return self.running[name]

    def close(self) -> None:
        """Close all running servers."""
        for server in self.running.values():
            server.close()

    def _add(self, provider: EngineProvider) -> None:
        """Add the servers of one product."""
        if url := os.environ.get(url_variable(provider.product)):
            server = provider.from_url(url)
            self.running[server.name] = server
            self.at_hand.append(server.name)
            self.given.add(server.name)
            self.shared.add(server.name)
            self.outlook.append(f"{server.name}: {server.how}")
            return
        self.outlook += provider.outlook()
        at_hand = provider.at_hand()
        self.at_hand += [f"{provider.product}{version}" for version in at_hand]
        for version in dict.fromkeys([*provider.versions, *at_hand]):
            self._sources[f"{provider.product}{version}"] = provider, version
            if provider.is_large:
                self.shared.add(f"{provider.product}{version}")

    def _start(self, name: str) -> Server:
        """Start a server by the first method that works."""
        reasons = []
        for method, start in self._methods(name):
            try:
                return start()
            except Unavailable as reason:
                reasons.append(f"{method}: {reason}")
        self.refused[name] = "; ".join(reasons)
        raise Unavailable(self.refused[name])

    def _methods(self, name: str) -> Iterator[tuple[str, Callable[[], Server]]]:
        provider, version = self._sources[name]
        yield "docker", lambda: provider.from_docker(version)
        yield "local programs", lambda: provider.from_local(version)


SERVERS = pytest.StashKey[Servers]()
"""The key of a run's servers."""
