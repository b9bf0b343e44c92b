"""Lets time pass for one queue by moving its stored times back, so that no test has to wait."""

from __future__ import annotations

from tests.engines.base import Connection

_PART = "part_id = (select part_id from rowq.queue where queue_name = %s)"
# A new row of the ledger: the old one may be held by an open transaction that has moved the floor.
# The floor of the delayed messages is a moment too.
_FLOOR = (
    "insert into rowq.floor select n.part_id, n.lane, least(n.generation, 0) - 5000000000,"
    " n.seq - s.shift, n.safe - s.shift, n.frontier - s.shift, n.writers,"
    " n.rescan_at - interval '{0}' second, n.sweep_at - interval '{0}' second"
    " from (select distinct on (lane) * from rowq.floor where "
    + _PART
    + " order by lane, generation) n"
    " cross join lateral (select case lane when -2 then {1} * 1000000::bigint else 0 end) s (shift)"
)
_SHIFTS = (
    "update rowq.claim set lease_until = lease_until - interval '{0}' second where " + _PART,
    "update rowq.delayed set due_at = due_at - interval '{0}' second where " + _PART,
    "update rowq.dead set died_at = died_at - interval '{0}' second where " + _PART,
    "update rowq.finished set finished_at = finished_at - interval '{0}' second where " + _PART,
    "update rowq.message set enqueued_at = enqueued_at - interval '{0}' second where " + _PART,
)


def pass_seconds(connection: Connection, queue_name: str, seconds: int) -> None:
    """Move every stored time of a queue back, as the tables' owner, in autocommit.

    Rows that other sessions hold locked are waited for; rows not committed yet stay as they are.
    """
    cursor = connection.cursor()
    for shift in (*_SHIFTS, _FLOOR.format(int(seconds), int(seconds))):
        cursor.execute(shift.format(int(seconds)), (queue_name,))


def tick(connection: Connection, queue_name: str) -> None:
    """Let the moment come at which the next maintain looks for late committers again.

    Unlike pass_seconds it touches no row that an open transaction could hold.
    """
    connection.cursor().execute(_FLOOR.format(2, 0), (queue_name,))


def expire_claim(connection: Connection, claim_id: int) -> None:
    """Let the lease of one claim run out now."""
    connection.cursor().execute(
        "update rowq.claim set lease_until = lease_until - interval '2' day where claim_id = %s",
        (claim_id,),
    )
