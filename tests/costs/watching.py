"""Statements that routines run inside a server, alike on all engines."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

from rowq.contract import load_contract
from tests.engine_only.mysql.statements import run_by
from tests.engine_only.oracle.executions import executed
from tests.engine_only.postgres.test_plans import Watched, nodes
from tests.engine_only.sqlserver import showplan
from tests.engines.base import Connection, Server
from tests.engines.oracle.server import OracleServer
from tests.engines.sqlserver.catalog import execute_named
from tests.engines.values import spelled
from tests.helpers.calls import call

_NAMED = re.compile(r"\browq[._](\w+)", re.IGNORECASE)


class Statement:
    """One statement; names: the tables of rowq it uses, and the routines it calls."""

    def __init__(self, text: str, *tables: object) -> None:
        self.text = " ".join(text.split())
        self.names = {name.lower() for name in _NAMED.findall(text)} | set(map(str, tables))

    def __repr__(self) -> str:
        return self.text[:200]


class Watch(ABC):
    """A session in which every statement is seen."""

    def __init__(self, server: Server, url: str) -> None:
        self.server = server
        self.admin: Connection = server.connect(url)
        self.session: Connection = server.connect(url)

    def close(self) -> None:
        """Close its sessions."""
        self.session.close()
        self.admin.close()

    def call(self, routine: str, **arguments: Any) -> Any:
        """Call a routine; return the claim_id of its first row, None if it has none."""
        rows = call(self.session, routine, **arguments)
        return getattr(rows[0], "claim_id", None) if rows else None

    @abstractmethod
    def run(self, work: Callable[[], object]) -> list[Statement]:
        """Do some work and return the statements that ran in it."""


class _Postgres(Watch):
    def __init__(self, server: Server, url: str) -> None:
        super().__init__(server, url)
        self._watched = Watched(self.session)

    def run(self, work: Callable[[], object]) -> list[Statement]:
        return [
            Statement(plan["Query Text"], *_relations(plan["Plan"]))
            for plan in self._watched.run(lambda _: work())
        ]


def _relations(plan: dict[str, Any]) -> Iterator[str]:
    return (node["Relation Name"] for node in nodes(plan) if "Relation Name" in node)


class _MySQL(Watch):
    def run(self, work: Callable[[], object]) -> list[Statement]:
        return [Statement(text) for text in run_by(self.admin, self.session, work)]


class _SQLServer(Watch):
    def __init__(self, server: Server, url: str) -> None:
        super().__init__(server, url)
        self._ran: list[Statement] = []

    def call(self, routine: str, **arguments: Any) -> Any:
        types = {each.name: each.type for each in load_contract().routine(routine).parameters}
        values = {name: spelled(types[name], value) for name, value in arguments.items()}
        rows, plans = showplan.run_by(
            self.session, lambda cursor: execute_named(self.session, cursor, routine, values)
        )
        for plan in plans:
            tables = [access.table for access in plan.accesses]
            self._ran.append(Statement(plan.text, *tables))
        return rows[0][0] if rows else None

    def run(self, work: Callable[[], object]) -> list[Statement]:
        self._ran.clear()
        work()
        return list(self._ran)


class _Oracle(Watch):
    def run(self, work: Callable[[], object]) -> list[Statement]:
        assert isinstance(self.server, OracleServer)
        before = executed(self.server, self.session)
        work()
        after = executed(self.server, self.session)
        return [Statement(text) for text in after if after[text] > before.get(text, 0)]


WATCHES: dict[str, type[Watch]] = {
    "postgres": _Postgres,
    "mysql": _MySQL,
    "sqlserver": _SQLServer,
    "oracle": _Oracle,
}


def watch(server: Server, url: str) -> closing[Watch]:
    """Return a watch on its own session; close it afterwards."""
    return closing(WATCHES[server.engine](server, url))
