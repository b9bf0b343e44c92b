"""Arguments and results of routines, for drivers that agree about them."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rowq import Queue
from rowq.contract import Parameter, Routine
from tests.engines.base import Connection
from tests.helpers.json_text import json_text

Kinds = Mapping[str, tuple[tuple[type, ...], Callable[[Any], Any]]]
"""For each contract type, the types that a driver may return and how to convert them."""


def _same(value: Any) -> Any:
    return value


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


KINDS: Kinds = {
    "boolean": ((bool,), _same),
    "int32": ((int,), _same),
    "int64": ((int,), _same),
    "int64s": ((str,), json.loads),
    "float": ((float,), _same),
    "text": ((str,), _same),
    "binary": ((bytes,), _same),
    "json": ((str,), json.loads),
    "timestamp": ((datetime,), _in_utc),
}


def given(routine: Routine) -> list[Parameter]:
    """Return the input parameters of a routine."""
    return [parameter for parameter in routine.parameters if parameter.direction == "in"]


def probes(connection: Connection, queue: str) -> dict[str, Any]:
    """Return arguments by name for any routine, after enqueuing and leasing a message."""
    own = Queue(connection)
    message = own.enqueue(queue, "probe").message_id
    own.create_schedule(queue, "probe", interval_seconds=3600)
    return {
        "queue_name": queue,
        "claim_id": own.dequeue_fast(queue, 10)[0].claim_id,
        "message_id": message,
        "message_ids": f"[{message}]",
        "messages": "[]",
        "topic": "probe",
        "topic_pattern": "probe",
        "wait_seconds": 0,
        "force": 1,
        "schedule_name": "probe",
        "worker_id": "probe",
        "cron": "0 3 * * *",
        "enqueued_before": "2000-01-01",
        "dedup_key": "probe",
        "max_attempts": 3,
    }


def is_finite(parameter: Parameter, value: Any) -> bool:
    """Return whether a value is finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not (parameter.type == "timestamp" and value in {"infinity", "-infinity"})


def spelled(kind: str, value: Any) -> Any:
    """Return an argument as the driver takes it."""
    match value:
        case None:
            return None
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds")
        case _ if kind in {"json", "int64s"}:
            return json_text(value)
    return value


def read(
    routine: Routine, columns: Sequence[str], rows: Iterable[Iterable[Any]], kinds: Kinds = KINDS
) -> list[tuple[Any, ...]]:
    """Return rows in the contract's Python types; assert that the server sent matching ones."""
    types = [column.type for column in routine.columns]
    assert len(types) == len(columns), f"columns of {routine.name}: {columns}"
    return [
        tuple(_read(kinds, *cell) for cell in zip(columns, types, row, strict=True)) for row in rows
    ]


def _read(kinds: Kinds, column: str, kind: str, value: Any) -> Any:
    if value is None:
        return None
    sent, reading = kinds[kind]
    assert type(value) in sent, f"{column}: expected {kind}, got {value!r}"
    return reading(value)
