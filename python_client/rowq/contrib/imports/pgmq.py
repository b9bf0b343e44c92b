"""The tables of pgmq: vt becomes run_at, and the group of grouped reads a group key."""

from collections.abc import Sequence
from typing import Any, ClassVar

from psycopg import sql

from rowq.contrib.imports.source import Item, group_key_of
from rowq.contrib.imports.tables import FOR_UPDATE, TableSource
from rowq.messages import NewMessage
from rowq.tools.console.errors import BadInput

_GROUP = "x-pgmq-group"


class Tables(TableSource):
    """pgmq.meta, and one table per queue."""

    system = "pgmq"
    default_schema = "pgmq"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {"meta": ("queue_name",)}

    def queues(self) -> list[str]:
        """Return the names in pgmq.meta."""
        rows = self.rows("select queue_name from {meta} order by 1", meta=self.table("meta"))
        return [row[0] for row in rows]

    def ids(self, cursor: Any, name: str) -> None:
        """Select all messages by id, including those that a worker has read."""
        statement = sql.SQL("select msg_id from {queue} order by msg_id")
        cursor.execute(statement.format(queue=self._queue(name)))

    def items(self, name: str, ids: Sequence[Any], *, lock: bool) -> list[Item]:
        """Return messages; their ids restart at 1 in each queue, and after a truncate or drop."""
        rows = self.rows(
            "select m.msg_id, (extract(epoch from m.enqueued_at) * 1000000)::bigint, m.read_ct,"
            " m.vt, m.message::text, m.headers, m.vt > now()"
            " from {queue} m where m.msg_id = any(%s){lock}",
            (list(ids),),
            queue=self._queue(name),
            lock=FOR_UPDATE[lock],
        )
        origin = self.origin(_table(name))
        return [_item(name, f"pgmq:{origin}:{row[0]}:{row[1]}", row[0], *row[2:]) for row in rows]

    def remove(self, name: str, items: Sequence[Item]) -> int:
        """Delete messages without archiving them."""
        ids = [item.id for item in items]
        statement = "delete from {queue} where msg_id = any(%s)"
        return self.deleted(statement, (ids,), queue=self._queue(name))

    def left(self, name: str) -> int:  # noqa: ARG002
        """Return 0: messages that a worker has read are imported with their vt."""
        return 0

    def _queue(self, name: str) -> sql.Identifier:
        return self.table(_table(name))


def _table(name: str) -> str:
    return f"q_{name}".lower()


def _item(
    name: str,
    own_key: str,
    msg_id: int,
    read_ct: int,
    vt: Any,
    message: str | None,
    headers: Any,
    later: bool,
) -> Item:
    label = f"message {msg_id} of {name}"
    if headers is not None and not isinstance(headers, dict):
        raise BadInput(f"{label}: headers must be a JSON object, got {headers!r}")
    group = (headers or {}).get(_GROUP)
    return Item(
        label=label,
        id=msg_id,
        own_key=own_key,
        message=NewMessage(
            text=message,
            headers=headers,
            run_at=vt if later else None,
            dedup_key=own_key,
            group_key=group_key_of(None if group is None else str(group), label),
        ),
        later=later,
        tried=read_ct,
    )
