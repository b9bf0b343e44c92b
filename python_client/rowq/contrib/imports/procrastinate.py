"""The tables of procrastinate.

A lock becomes a group key: jobs with one lock run one at a time, by priority, then by age. They are
read in that order, because rowq orders a group by enqueue. Unlike in procrastinate, later jobs pass
a delayed one. A queueing lock becomes a dedup key.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from psycopg import sql

from rowq.contrib.imports.source import Item, group_key_of, key_or
from rowq.contrib.imports.tables import FOR_UPDATE, TableSource, rank_of, ranks
from rowq.messages import NewMessage

_JOBS = "procrastinate_jobs"


class Tables(TableSource):
    """One table of jobs."""

    system = "procrastinate"
    default_schema = "public"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        _JOBS: (
            *("id", "queue_name", "task_name", "priority", "lock", "queueing_lock", "args"),
            *("status", "scheduled_at", "attempts"),
        ),
    }

    def __init__(self, connection: Any, schema: str | None) -> None:
        super().__init__(connection, schema)
        self._jobs = self.table(_JOBS)
        self._ranks = cache(self._find_ranks)

    def queues(self) -> list[str]:
        """Return the queues of all unfinished jobs."""
        rows = self.rows(
            "select distinct queue_name from {jobs} where status in ('todo', 'doing') order by 1",
            jobs=self._jobs,
        )
        return [row[0] for row in rows]

    def ids(self, cursor: Any, name: str) -> None:
        """Select jobs in the order in which jobs with one lock run."""
        statement = sql.SQL(
            "select id from {jobs} where queue_name = %s and status = 'todo'"
            " order by priority desc, id"
        )
        cursor.execute(statement.format(jobs=self._jobs), (name,))

    def items(self, name: str, ids: Sequence[Any], *, lock: bool) -> list[Item]:
        """Return waiting jobs."""
        rows = self.rows(
            "select j.id, j.task_name, j.priority, j.lock, j.queueing_lock, j.args::text,"
            " j.scheduled_at, j.attempts, coalesce(j.scheduled_at > now(), false)"
            " from {jobs} j where j.queue_name = %s and j.status = 'todo' and j.id = any(%s){lock}",
            (name, list(ids)),
            jobs=self._jobs,
            lock=FOR_UPDATE[lock],
        )
        return [self._item(name, *row) for row in rows]

    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete jobs with their events."""
        ids = [item.id for item in items]
        statement = "delete from {jobs} where queue_name = %s and id = any(%s)"
        return self.deleted(statement, (name, ids), jobs=self._jobs)

    def left(self, name: str) -> int:
        """Return the number of running jobs."""
        return self.number(
            "select count(*) from {jobs} where queue_name = %s and status = 'doing'",
            (name,),
            jobs=self._jobs,
        )

    def _item(
        self,
        name: str,
        number: int,
        task_name: str,
        priority: int,
        lock: str | None,
        queueing_lock: str | None,
        args: str,
        scheduled_at: Any,
        attempts: int,
        later: bool,
    ) -> Item:
        label = f"job {number} of {name}"
        own_key = f"procrastinate:{self.origin(_JOBS)}:{number}"
        return Item(
            label=label,
            id=number,
            own_key=own_key,
            message=NewMessage(
                text=args,
                message_type=task_name,
                priority=rank_of(priority, self._ranks(name)),
                run_at=scheduled_at if later else None,
                dedup_key=key_or(queueing_lock, own_key),
                group_key=group_key_of(lock, label),
            ),
            later=later,
            tried=attempts,
        )

    def _find_ranks(self, name: str) -> dict[int, int]:
        rows = self.rows(
            "select distinct priority from {jobs} where queue_name = %s and status = 'todo'",
            (name,),
            jobs=self._jobs,
        )
        return ranks(row[0] for row in rows)
