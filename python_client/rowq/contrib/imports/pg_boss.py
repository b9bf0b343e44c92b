"""The tables of pg-boss 10 and newer."""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from psycopg import sql

from rowq.contrib.imports.source import Item, group_key_of, key_or
from rowq.contrib.imports.tables import FOR_UPDATE, TableSource, rank_of, ranks
from rowq.messages import NewMessage

_MOST_ATTEMPTS = 10_000
_OWN = "__pgboss__"
"""Prefix of pg-boss's internal maintenance queues."""
_WAITS = sql.SQL("j.state in ('created', 'retry')")
_WAITS_UNBLOCKED = sql.SQL("j.state in ('created', 'retry') and not j.blocked")
_ACTIVE = sql.SQL("j.state = 'active'")
_ACTIVE_OR_BLOCKED = sql.SQL("j.state = 'active' or j.state in ('created', 'retry') and j.blocked")


class Tables(TableSource):
    """A table of queues and one of jobs."""

    system = "pg-boss"
    default_schema = "pgboss"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        "queue": ("name", "policy"),
        "job": (
            *("id", "name", "priority", "data", "state", "retry_limit", "retry_count"),
            *("singleton_key", "start_after", "created_on"),
        ),
    }

    def __init__(self, connection: Any, schema: str | None) -> None:
        super().__init__(connection, schema)
        self._jobs = self.table("job")
        has_blocked = "blocked" in self.columns_of("job")
        self._waits = _WAITS_UNBLOCKED if has_blocked else _WAITS
        self._stays = _ACTIVE_OR_BLOCKED if has_blocked else _ACTIVE
        self._policy = cache(self._find_policy)
        self._ranks = cache(self._find_ranks)

    def queues(self) -> list[str]:
        """Return the names of the queues."""
        rows = self.rows("select name from {queue} order by 1", queue=self.table("queue"))
        return [row[0] for row in rows]

    def importable(self, names: list[str]) -> list[str]:
        """Return the queues that are not pg-boss's own."""
        return [name for name in names if not name.startswith(_OWN)]

    def ids(self, cursor: Any, name: str) -> None:
        """Select jobs in the order of creation."""
        statement = sql.SQL(
            "select j.id from {jobs} j where j.name = %s and {waits} order by j.created_on, j.id"
        )
        cursor.execute(statement.format(jobs=self._jobs, waits=self._waits), (name,))

    def items(self, name: str, ids: Sequence[Any], *, lock: bool) -> list[Item]:
        """Return waiting jobs."""
        rows = self.rows(
            "select j.id, j.priority, j.data::text, j.retry_limit,"
            " j.retry_count + (j.state = 'retry')::integer, j.singleton_key, j.start_after,"
            " j.start_after > now()"
            " from {jobs} j where j.name = %s and j.id = any(%s) and {waits}{lock}",
            (name, list(ids)),
            jobs=self._jobs,
            waits=self._waits,
            lock=FOR_UPDATE[lock],
        )
        return [self._item(name, *row) for row in rows]

    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete jobs."""
        ids = [item.id for item in items]
        statement = "delete from {jobs} where name = %s and id = any(%s)"
        return self.deleted(statement, (name, ids), jobs=self._jobs)

    def left(self, name: str) -> int:
        """Return the number of jobs that are active, or wait for others."""
        return self.number(
            "select count(*) from {jobs} j where j.name = %s and ({stays})",
            (name,),
            jobs=self._jobs,
            stays=self._stays,
        )

    def _item(
        self,
        name: str,
        number: Any,
        priority: int,
        data: str | None,
        retry_limit: int,
        tried: int,
        singleton_key: str | None,
        start_after: Any,
        later: bool,
    ) -> Item:
        label = f"job {number} of {name}"
        own_key = f"pg-boss:{self.origin('job')}:{number}"
        policy = self._policy(name)
        # Other policies allow several waiting jobs with one key, or one beside an active job.
        unique_key = singleton_key if policy == "exclusive" else None
        ordered_key = singleton_key if policy == "key_strict_fifo" else None
        return Item(
            label=label,
            id=number,
            own_key=own_key,
            message=NewMessage(
                text=data,
                priority=rank_of(priority, self._ranks(name)),
                run_at=start_after if later else None,
                dedup_key=key_or(unique_key, own_key),
                max_attempts=min(retry_limit + 1, _MOST_ATTEMPTS),
                group_key=group_key_of(ordered_key, label),
            ),
            later=later,
            tried=tried,
        )

    def _find_policy(self, name: str) -> str:
        statement = "select policy from {queue} where name = %s"
        return str(self.rows(statement, (name,), queue=self.table("queue"))[0][0])

    def _find_ranks(self, name: str) -> dict[int, int]:
        rows = self.rows(
            "select distinct j.priority from {jobs} j where j.name = %s and {waits}",
            (name,),
            jobs=self._jobs,
            waits=self._waits,
        )
        return ranks(row[0] for row in rows)
