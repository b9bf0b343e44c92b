"""Finds a server for each engine and version: a given URL, a container, or local programs."""

import os
import re
from collections.abc import Callable, Iterator

import pytest

from tests.engines.base import EngineProvider, Server, Unavailable, url_variable
from tests.engines.mysql import ways as mysql
from tests.engines.oracle import ways as oracle
from tests.engines.postgres import ways as postgres
from tests.engines.sqlserver import ways as sqlserver

PROVIDERS: tuple[EngineProvider, ...] = (
    *postgres.PROVIDERS,
    *mysql.PROVIDERS,
    *sqlserver.PROVIDERS,
    *oracle.PROVIDERS,
)
REQUIRED_VARIABLE = "ROWQ_REQUIRE_ENGINES"


def required() -> set[str]:
    """Return the words for servers whose absence is a failure and not a skip."""
    return {name for name in os.environ.get(REQUIRED_VARIABLE, "").split(",") if name}


class Servers:
    """The servers of one test run, each started when it is first needed and kept to the end.

    A URL in the environment wins: then its server is the only one of that product. Otherwise a
    container is tried, then the programs that are installed here.

    Attributes:
        running: by name, those that were started or given.
        refused: by name, why one cannot be had.
        outlook: for the head of a report, what there is.
        at_hand: the names of those that are tested unless others are named.
        migrated: by name, the URL of the database with rowq that all tests share.
        given: the names of those that have a URL in the environment.
        shared: the names of those that are one for all worker processes.
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
        """All servers that a test may ask for, started or not, available or not."""
        return [*self.running, *(name for name in self._sources if name not in self.running)]

    def named(self, word: str) -> list[str]:
        """Return the servers that a word means: one by its name, or a product's at hand.

        A product without any is meant with its preferred version, so that tests say why not; or
        with a given server of its engine, such as sqlserver with a Babelfish.
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
        """The servers whose absence is a failure and not a skip."""
        return {name for word in required() for name in self.named(word)}

    def engine_of(self, name: str) -> str:
        """Return the engine of a server, such as mysql of mariadb10.11."""
        if name in self.running:
            return self.running[name].engine
        return self._sources[name][0].engine

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
        """Note the servers of one product."""
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
        yield "local programs", lambda: provider.from_local(version)


SERVERS = pytest.StashKey[Servers]()
"""Where a run keeps its servers."""
