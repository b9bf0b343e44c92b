"""The tables of procrastinate.

A lock becomes a group key: jobs of one lock run one at a time, the one that was deferred first
before the others, and only rowq's groups keep that. A queueing lock becomes a dedup key.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

from rowq.cli.imports.ranks import ranks
from rowq.cli.imports.source import Item, group_key_of, key_or
from rowq.cli.imports.tables import FOR_UPDATE, TableSource
from rowq.messages import NewMessage


class Tables(TableSource):
    """One table of jobs."""

    system = "procrastinate"
    default_schema = "public"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        "procrastinate_jobs": (
            *("id", "queue_name", "task_name", "priority", "lock", "queueing_lock", "args"),
            *("status", "scheduled_at", "attempts"),
        ),
    }

    def __init__(self, connection: Any, schema: str | None) -> None:
        """Look whether the table is there."""
        super().__init__(connection, schema)
        self._jobs = self.table("procrastinate_jobs")
        self._ranks = cache(self._find_ranks)

    def queues(self) -> list[str]:
        """Return the queues of all jobs that have not ended."""
        rows = self.rows(
            "select distinct queue_name from {jobs} where status in ('todo', 'doing') order by 1",
            jobs=self._jobs,
        )
        return [row[0] for row in rows]

    def page(
        self, name: str, after: tuple[Any, ...] | None, count: int, *, lock: bool
    ) -> list[Item]:
        """Return jobs in the order in which they were deferred."""
        rows = self.rows(
            "select j.id, j.task_name, j.priority, j.lock, j.queueing_lock, j.args::text,"
            " j.scheduled_at, j.attempts, coalesce(j.scheduled_at > now(), false)"
            " from {jobs} j where j.queue_name = %s and j.status = 'todo' and j.id > %s"
            " order by j.id limit %s{lock}",
            (name, after[0] if after else -1, count),
            jobs=self._jobs,
            lock=FOR_UPDATE[lock],
        )
        return [self._item(name, *row) for row in rows]

    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete jobs, and with them their events."""
        ids = [item.id for item in items]
        statement = "delete from {jobs} where queue_name = %s and id = any(%s)"
        return self.deleted(statement, (name, ids), jobs=self._jobs)

    def left(self, name: str) -> int:
        """Return how many a worker has."""
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
        return Item(
            key=(number,),
            label=label,
            id=number,
            message=NewMessage(
                text=args,
                message_type=task_name,
                priority=self._ranks(name)[priority],
                run_at=scheduled_at if later else None,
                dedup_key=key_or(queueing_lock, f"procrastinate:{number}"),
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
