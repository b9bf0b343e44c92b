"""A queue in tables of PostgreSQL. This module is imported once the driver is known to be there."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

from psycopg import sql

from rowq.cli.errors import BadInput
from rowq.cli.imports.source import Source
from rowq.engines import engine_for_connection

FOR_UPDATE = {True: sql.SQL(" for update"), False: sql.SQL("")}


class TableSource(Source):
    """A queue in tables of PostgreSQL."""

    system: ClassVar[str]
    """What the other queue is called."""
    default_schema: ClassVar[str]
    columns: ClassVar[dict[str, tuple[str, ...]]]
    """By table, the columns that are needed of it."""

    def __init__(self, connection: Any, schema: str | None) -> None:
        """Look whether the tables are there; raises BadInput if not."""
        self.connection = connection
        self.schema = schema or self.default_schema
        for table, needed in self.columns.items():
            self._require(table, needed)

    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the queues, in the order of the command line, or of their names."""
        there = self.queues()
        for name in names or ():
            if name not in there:
                known = ", ".join(there) or "none"
                raise BadInput(f"{self.system} has no queue {name!r}; it has {known}")
        return list(dict.fromkeys(names)) if names else self.all_of(there)

    @abstractmethod
    def queues(self) -> list[str]:
        """Return the names of all queues, in their order."""

    def all_of(self, there: list[str]) -> list[str]:
        """Return what is imported when no queue is named."""
        return there

    def transaction(self) -> AbstractContextManager[Any]:
        """Return a transaction of the connection."""
        return engine_for_connection(self.connection).transaction(self.connection)

    def table(self, name: str) -> sql.Identifier:
        """Return a table of the other queue's as a part of a statement."""
        return sql.Identifier(self.schema, name)

    def rows(
        self, statement: str, values: Sequence[Any] = (), **parts: sql.Composable
    ) -> list[tuple[Any, ...]]:
        """Run a statement, whose {words} are the parts, and return its rows."""
        found: list[tuple[Any, ...]] = self._run(statement, values, parts).fetchall()
        return found

    def number(self, statement: str, values: Sequence[Any] = (), **parts: sql.Composable) -> int:
        """Run a statement and return the number that it gives."""
        return int(self.rows(statement, values, **parts)[0][0])

    def deleted(self, statement: str, values: Sequence[Any], **parts: sql.Composable) -> int:
        """Run a delete and return how many rows it met."""
        return int(self._run(statement, values, parts).rowcount)

    def _run(
        self, statement: str, values: Sequence[Any], parts: Mapping[str, sql.Composable]
    ) -> Any:
        return self.connection.execute(sql.SQL(statement).format(**parts), values)

    def columns_of(self, table: str) -> set[str]:
        """Return the columns of a table; there are none where there is no such table."""
        return {
            row[0]
            for row in self.rows(
                "select a.attname from pg_catalog.pg_attribute a"
                " join pg_catalog.pg_class c on c.oid = a.attrelid"
                " join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
                " where n.nspname = %s and c.relname = %s and a.attnum > 0 and not a.attisdropped",
                (self.schema, table),
            )
        }

    def _require(self, table: str, needed: Sequence[str]) -> None:
        there = self.columns_of(table)
        if not there:
            raise BadInput(f"there is no {self.system} here: no table {self.schema}.{table}")
        if missing := [name for name in needed if name not in there]:
            raise BadInput(
                f"table {self.schema}.{table} has no column {', '.join(missing)}: is it of another"
                f" release of {self.system}?"
            )
