"""The rows that the hot routines touch do not depend on the size of the tables.

A wrong plan (a scan, a wrong join order, another index) touches more rows as tables grow. The
sessions started while the tables were small, as a worker's does.
"""

from collections.abc import Callable

import pytest

from tests.engine_only.mysql.costs import rows
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue, dequeue_one, enqueue
from tests.helpers.queues import Connect

pytestmark = pytest.mark.slow("fills large tables")

Work = Callable[[Connection, str], Callable[[], object]]

FEW, MANY = 150, 10_000


def _take(count: int) -> Work:
    return lambda session, queue: lambda: dequeue(session, queue, count)


def _on_claim(routine: str, **arguments: object) -> Work:
    def prepare(session: Connection, queue: str) -> Callable[[], object]:
        claim = dequeue(session, queue, 10)[0].claim_id
        return lambda: call(session, routine, queue_name=queue, claim_id=claim, **arguments)

    return prepare


def _some_of_claim(session: Connection, queue: str) -> Callable[[], object]:
    held = dequeue(session, queue, 10)
    ids = [row.message_id for row in held[3:6]]
    return lambda: call(
        session, "complete", queue_name=queue, claim_id=held[0].claim_id, message_ids=ids
    )


def _simple(routine: str, **arguments: object) -> Work:
    return lambda session, queue: lambda: call(session, routine, queue_name=queue, **arguments)


def _expired(session: Connection, queue: str) -> Callable[[], object]:
    claim = dequeue_one(session, queue).claim_id
    session.execute(
        "update rowq.claim set lease_until = utc_timestamp(6) where claim_id = %s", [claim]
    )
    return lambda: call(session, "reap", queue_name=queue)


def _cancelled(session: Connection, queue: str) -> Callable[[], object]:
    ids = enqueue(session, queue, *"0123456789")
    return lambda: call(session, "cancel", queue_name=queue, message_ids=ids)


WORK = {
    "enqueue": _simple("enqueue", body="x"),
    "enqueue with a key": _simple("enqueue", dedup_key="key"),
    "enqueue_batch": _simple("enqueue_batch", messages=[{"body": "x"}] * 10),
    "dequeue one": _take(1),
    "dequeue a hundred": _take(100),
    "peek": _simple("peek", max_messages=10),
    "complete": _on_claim("complete"),
    "complete and dequeue": _on_claim("complete_and_dequeue", batch_size=10),
    "complete a part": _some_of_claim,
    "retry_later": _on_claim("retry_later", delay_seconds=60),
    "fail_now": _on_claim("fail_now"),
    "release": _on_claim("release"),
    "extend_lease": _on_claim("extend_lease"),
    "cancel": _cancelled,
    "promote nothing": _simple("promote"),
    "reap": _expired,
}


@pytest.mark.pitfall("mysql 16")
@pytest.mark.promise("P13")
@pytest.mark.parametrize("name", WORK)
def test_calls_touch_the_same_rows_in_a_large_queue(
    connection: Connection, connect: Connect, queue_name: str, name: str
) -> None:
    veteran = connect()
    for size in ("few", "many"):
        call(connection, "create_queue", queue_name=f"{queue_name}{size}")
    _fill(connection, f"{queue_name}few", FEW)
    first = _cost(veteran, f"{queue_name}few", name)
    _fill(connection, f"{queue_name}many", MANY)
    assert _cost(veteran, f"{queue_name}many", name) <= first + 15
    assert _cost(connect(), f"{queue_name}many", name, again=True) <= first + 15


def _fill(connection: Connection, queue: str, count: int) -> None:
    messages = [{"body": "x"}] * count
    call(connection, "enqueue_batch", queue_name=queue, messages=messages)
    later = [{"delay_seconds": 1000 + n} for n in range(count // 10)]
    call(connection, "enqueue_batch", queue_name=queue, messages=later)


def _cost(session: Connection, queue: str, name: str, *, again: bool = False) -> int:
    # Warm up: the first call of a session also reads the procedures.
    enqueue(session, queue, "one more")
    if again and name == "enqueue with a key":
        return rows(session, WORK["enqueue"](session, queue))
    return rows(session, WORK[name](session, queue))
