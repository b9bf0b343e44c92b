"""Lets time pass for one queue by moving its stored times back, so that no test has to wait."""

from __future__ import annotations

from tests.engines.base import Connection

_PART = "part_id = (select part_id from rowq.queue where queue_name = %s)"
_FLOOR = (
    "update rowq.floor set rescan_at = rescan_at - interval '{0}' second,"
    " sweep_at = sweep_at - interval '{0}' second where " + _PART
)
_SHIFTS = (
    "update rowq.claim set lease_until = lease_until - interval '{0}' second where " + _PART,
    "update rowq.delayed set due_at = due_at - interval '{0}' second where " + _PART,
    "update rowq.dead set died_at = died_at - interval '{0}' second where " + _PART,
    "update rowq.finished set finished_at = finished_at - interval '{0}' second where " + _PART,
    "update rowq.message set enqueued_at = enqueued_at - interval '{0}' second where " + _PART,
    _FLOOR,
    # The floor of the delayed messages is a moment too.
    "update rowq.floor set seq = seq - {0} * 1000000::bigint, safe = safe - {0} * 1000000::bigint,"
    " frontier = frontier - {0} * 1000000::bigint where lane = -2 and " + _PART,
)


def pass_seconds(connection: Connection, queue_name: str, seconds: int) -> None:
    """Move every stored time of a queue back, as the tables' owner, in autocommit.

    Rows that other sessions hold locked are waited for; rows not committed yet stay as they are.
    """
    cursor = connection.cursor()
    for shift in _SHIFTS:
        cursor.execute(shift.format(int(seconds)), (queue_name,))


def tick(connection: Connection, queue_name: str) -> None:
    """Let the moment come at which the next maintain looks for late committers again.

    Unlike pass_seconds it touches no row that an open transaction could hold.
    """
    connection.cursor().execute(_FLOOR.format(2), (queue_name,))


def expire_claim(connection: Connection, claim_id: int) -> None:
    """Let the lease of one claim run out now."""
    connection.cursor().execute(
        "update rowq.claim set lease_until = lease_until - interval '2' day where claim_id = %s",
        (claim_id,),
    )
