"""The tables of pg-boss 10 and newer."""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from psycopg import sql

from rowq.cli.imports.ranks import ranks
from rowq.cli.imports.source import Item, key_or
from rowq.cli.imports.tables import FOR_UPDATE, TableSource
from rowq.messages import NewMessage

_MOST_ATTEMPTS = 10_000
_OWN = "__pgboss__"
"""Begins the names of the queues that pg-boss keeps house by."""
_BEYOND = sql.SQL(" and (j.created_on, j.id) > (%s, %s)")
_WAITS = sql.SQL("j.state in ('created', 'retry')")
_WAITS_UNBLOCKED = sql.SQL("j.state in ('created', 'retry') and not j.blocked")
_ACTIVE = sql.SQL("j.state = 'active'")
_ACTIVE_OR_BLOCKED = sql.SQL("j.state = 'active' or j.state in ('created', 'retry') and j.blocked")


class Tables(TableSource):
    """A table of queues and one of jobs."""

    system = "pg-boss"
    default_schema = "pgboss"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        "queue": ("name",),
        "job": (
            *("id", "name", "priority", "data", "state", "retry_limit", "retry_count"),
            *("singleton_key", "start_after", "created_on"),
        ),
    }

    def __init__(self, connection: Any, schema: str | None) -> None:
        """Look whether this release has jobs that wait for others."""
        super().__init__(connection, schema)
        self._jobs = self.table("job")
        has_blocked = "blocked" in self.columns_of("job")
        self._waits = _WAITS_UNBLOCKED if has_blocked else _WAITS
        self._stays = _ACTIVE_OR_BLOCKED if has_blocked else _ACTIVE
        self._repeated = cache(self._find_repeated)
        self._ranks = cache(self._find_ranks)

    def queues(self) -> list[str]:
        """Return the names of the queues."""
        rows = self.rows("select name from {queue} order by 1", queue=self.table("queue"))
        return [row[0] for row in rows]

    def all_of(self, there: list[str]) -> list[str]:
        """Return those that are not pg-boss's own."""
        return [name for name in there if not name.startswith(_OWN)]

    def page(
        self, name: str, after: tuple[Any, ...] | None, count: int, *, lock: bool
    ) -> list[Item]:
        """Return jobs in the order in which they were created."""
        rows = self.rows(
            "select j.created_on, j.id, j.priority, j.data::text, j.retry_limit,"
            " j.retry_count + (j.state = 'retry')::integer, j.singleton_key, j.start_after,"
            " j.start_after > now()"
            " from {jobs} j where j.name = %s and {waits}{beyond}"
            " order by j.created_on, j.id limit %s{lock}",
            (name, *(after or ()), count),
            jobs=self._jobs,
            waits=self._waits,
            beyond=_BEYOND if after else sql.SQL(""),
            lock=FOR_UPDATE[lock],
        )
        return [self._item(name, *row) for row in rows]

    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete jobs."""
        ids = [item.id for item in items]
        statement = "delete from {jobs} where name = %s and id = any(%s)"
        return self.deleted(statement, (name, ids), jobs=self._jobs)

    def left(self, name: str) -> int:
        """Return how many are active, or wait for other jobs."""
        return self.number(
            "select count(*) from {jobs} j where j.name = %s and ({stays})",
            (name,),
            jobs=self._jobs,
            stays=self._stays,
        )

    def _item(
        self,
        name: str,
        created_on: Any,
        number: Any,
        priority: int,
        data: str | None,
        retry_limit: int,
        tried: int,
        singleton_key: str | None,
        start_after: Any,
        later: bool,
    ) -> Item:
        # A key that several jobs have, as its policy may allow, must not make one of them.
        is_single = singleton_key not in self._repeated(name)
        return Item(
            key=(created_on, number),
            label=f"job {number} of {name}",
            id=number,
            message=NewMessage(
                text=data,
                priority=self._ranks(name)[priority],
                run_at=start_after if later else None,
                dedup_key=key_or(singleton_key if is_single else None, f"pg-boss:{number}"),
                max_attempts=min(retry_limit + 1, _MOST_ATTEMPTS),
            ),
            later=later,
            tried=tried,
        )

    def _find_repeated(self, name: str) -> frozenset[str]:
        rows = self.rows(
            "select j.singleton_key from {jobs} j"
            " where j.name = %s and {waits} and j.singleton_key is not null"
            " group by 1 having count(*) > 1",
            (name,),
            jobs=self._jobs,
            waits=self._waits,
        )
        return frozenset(row[0] for row in rows)

    def _find_ranks(self, name: str) -> dict[int, int]:
        rows = self.rows(
            "select distinct j.priority from {jobs} j where j.name = %s and {waits}",
            (name,),
            jobs=self._jobs,
            waits=self._waits,
        )
        return ranks(row[0] for row in rows)
