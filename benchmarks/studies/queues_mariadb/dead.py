"""Counts what rowq's calls cost beside dead rows, wherever an old read view can keep them."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pymysql

from benchmarks.harness.measure import Figures
from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.queues_mariadb.client import QUEUE
from benchmarks.studies.queues_mariadb.systems import System
from rowq.engines.mysql.url import connection_parameters

Cursor = pymysql.cursors.Cursor

_LANES = 20
_CALLS = {
    "dequeue_ms": f"call rowq.dequeue_fast('{QUEUE}', 10, 'bench', 3600)",
    "promote_ms": f"call rowq.promote('{QUEUE}', null)",
    "reap_ms": f"call rowq.reap('{QUEUE}', null)",
    "maintain_ms": f"call rowq.maintain('{QUEUE}', null)",
}
_SEQ = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) - 60000000"
# These statements fill the tables as rowq's own routines do, but faster than so many calls of them.
_ROWS = {
    "ready": "(part_id, lane, seq, message_id, attempt, is_keyed)"
    f" select 1, s.seq mod {_LANES}, {_SEQ} + s.seq, s.seq, 0, 0 from seq_1_to_{{count}} s",
    "delayed": "(part_id, due_at, message_id, lane, attempt)"
    " select 1, utc_timestamp(6) - interval 1 day + interval s.seq microsecond, s.seq,"
    " 11, 0 from seq_1_to_{count} s",
    "claim": "(part_id, claim_id, lease_until, is_keyed, lane, attempt, first_id, last_id)"
    " select 1, s.seq, utc_timestamp(6), 0, 11, 1, s.seq, s.seq from seq_1_to_{count} s",
}
_KEYS = {"ready": "message_id", "delayed": "message_id", "claim": "claim_id"}


def dead(url: str, system: System, scenario: Scenario) -> Figures:
    """Time calls with little to do before and after so many rows of each table have died."""
    parameters = connection_parameters(url)
    with system.client(url) as control:
        control.create()
        with (
            pymysql.connect(**parameters, autocommit=True) as connection,
            pymysql.connect(**parameters) as holder,
            connection.cursor() as cursor,
        ):
            _open_lanes(cursor)
            free = _time(cursor, scenario.samples)
            with holder.cursor() as old:
                old.execute("set transaction isolation level repeatable read")
                old.execute("start transaction with consistent snapshot")
                old.execute("select count(*) from rowq.queue")
                _kill(cursor, scenario.messages)
                # Take one claim and keep it: the floor of claims stands at the oldest one that is
                # held.
                control.fill(1)
                control.dequeue(1)
                _run(cursor, "update rowq.lane set check_after = '1970-01-01'")
                started = time.perf_counter()
                _run(cursor, _CALLS["maintain_ms"])
                first = (time.perf_counter() - started) * 1e3
                beside = _time(cursor, scenario.samples)
    return {
        **{f"{name}_free": value for name, value in free.items()},
        **beside,
        "rescan_ms": round(first, 1),
    }


def _open_lanes(cursor: Cursor) -> None:
    """Let a message pass through every lane: the tails at first, the fronts when it comes back."""
    for priority in range(_LANES // 2):
        values = (
            f"'1', null, null, null, {priority}, null, null, null, null, null, null, null, null"
        )
        _run(cursor, f"call rowq.enqueue('{QUEUE}', {values})")
    for routine, nulls in (("release", "null"), ("complete", "null, null")):
        claim = _run(cursor, _CALLS["dequeue_ms"])[0][0]
        _run(cursor, f"call rowq.{routine}('{QUEUE}', {claim}, {nulls})")


def _kill(cursor: Cursor, count: int) -> None:
    """Insert and delete so many rows of each table."""
    _run(cursor, "use rowq")
    for table, rows in _ROWS.items():
        _run(cursor, f"insert into rowq.{table} {rows.format(count=count)}")
        _run(cursor, f"delete from rowq.{table} where {_KEYS[table]} > 0")


def _time(cursor: Cursor, samples: int) -> Figures:
    """Return the median milliseconds of each call."""
    return {
        name: _median(partial(_run, cursor, statement), samples)
        for name, statement in _CALLS.items()
    }


def _median(act: Callable[[], object], samples: int) -> float:
    lengths = []
    for _ in range(samples):
        started = time.perf_counter()
        act()
        lengths.append((time.perf_counter() - started) * 1e3)
    return round(statistics.median(lengths), 4)


def _run(cursor: Cursor, statement: str) -> Sequence[tuple[Any, ...]]:
    cursor.execute(statement)
    rows = cursor.fetchall()
    while cursor.nextset():
        pass
    return rows
