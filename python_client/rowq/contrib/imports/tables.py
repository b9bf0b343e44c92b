"""A queue in tables of PostgreSQL. This module is imported once the driver is known to be there."""

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from itertools import islice
from typing import Any, ClassVar

from psycopg import sql

from rowq.contrib.imports.source import Batch, Item, Source, origin_of
from rowq.contrib.imports.trust import require_trust
from rowq.engines import engine_for_connection
from rowq.tools.console.errors import BadInput

_IDS_AT_A_TIME = 10_000
FOR_UPDATE = {True: sql.SQL(" for update"), False: sql.SQL("")}


class TableSource(Source):
    """A queue in tables of PostgreSQL."""

    system: ClassVar[str]
    """What the other queue is called."""
    default_schema: ClassVar[str]
    columns: ClassVar[dict[str, tuple[str, ...]]]
    """By table, the columns that are needed of it."""

    def __init__(self, connection: Any, schema: str | None) -> None:
        """Look whether the tables are there; raises BadInput if not, and MissingPrivilege."""
        self.connection = connection
        self.schema = schema or self.default_schema
        require_trust(connection, self.schema)
        self.origin = cache(self._find_origin)
        self._ids: Iterator[Any] = iter(())
        self._ahead: deque[Any] = deque()
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

    @abstractmethod
    def ids(self, cursor: Any, name: str) -> None:
        """Select the ids of the messages that wait, in the order in which they are to be read."""

    @abstractmethod
    def items(self, name: str, ids: Sequence[Any], *, lock: bool) -> list[Item]:
        """Return those of some messages that still wait, in any order."""

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Sort the ids once, for all batches; what comes to the queue later is not among them."""
        with self.connection.cursor(name="rowq_import", withhold=True) as cursor:
            cursor.itersize = _IDS_AT_A_TIME
            self.ids(cursor, name)
            self._ids = (row[0] for row in cursor)
            self._ahead.clear()
            yield

    def page(self, name: str, count: int, *, lock: bool) -> list[Item]:
        """Return the next messages; read twice as many each time, as they may be large."""
        batch = Batch(count)
        step = 1
        while ids := self._next_ids(min(step, batch.room)):
            items = {item.id: item for item in self.items(name, ids, lock=lock)}
            for number in ids:
                if number in items and not batch.add(items[number]):
                    return batch.items
                self._ahead.popleft()
            step *= 2
        return batch.items

    def _next_ids(self, count: int) -> list[Any]:
        self._ahead.extend(islice(self._ids, max(0, count - len(self._ahead))))
        return list(islice(self._ahead, count))

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
        """Run a delete and return how many rows it met; the transaction is to end after it.

        Triggers of the other queue may name its tables without the schema.
        """
        self._run("set local search_path to {schema}", (), {"schema": sql.Identifier(self.schema)})
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

    def _find_origin(self, table: str) -> str:
        """Return what tells a table from all others, of other databases and before it was dropped.

        The system identifier is that of the server's files.
        """
        (row,) = self.rows(
            "select s.system_identifier, d.oid, c.oid"
            " from pg_catalog.pg_control_system() s, pg_catalog.pg_database d,"
            " pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
            " where d.datname = pg_catalog.current_database()"
            " and n.nspname = %s and c.relname = %s",
            (self.schema, table),
        )
        return origin_of(*row)

    def _require(self, table: str, needed: Sequence[str]) -> None:
        there = self.columns_of(table)
        if not there:
            raise BadInput(f"there is no {self.system} here: no table {self.schema}.{table}")
        if missing := [name for name in needed if name not in there]:
            raise BadInput(
                f"table {self.schema}.{table} has no column {', '.join(missing)}: is it of another"
                f" release of {self.system}?"
            )
