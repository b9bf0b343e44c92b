"""Leases of the broker, without a database."""

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest

import rowq
from rowq.contrib.celery.broker import Broker, Delivery, Options, _Lease

DELIVERIES = [Delivery("orders", number, number) for number in range(1, 4)]


class Calls:
    """A queue object that records calls, and raises configured errors by claim."""

    def __init__(self, **errors: Exception) -> None:
        self.errors = {int(name.removeprefix("of_")): error for name, error in errors.items()}
        self.claims: list[int] = []

    def release(self, _queue_name: str, claim_id: int) -> None:
        self.claims.append(claim_id)
        if claim_id in self.errors:
            raise self.errors[claim_id]

    def extend_lease(self, queue_name: str, claim_id: int, *, lease_seconds: int) -> None:
        del lease_seconds
        self.release(queue_name, claim_id)


@pytest.fixture
def broker() -> Broker:
    """Return a broker with held messages whose leases are due, the last one first."""
    made = Broker("postgresql://nobody@127.0.0.1:1/none", Options())
    for number, delivery in enumerate(DELIVERIES):
        made._held[delivery] = _Lease(60, time.monotonic() - 30 - number)
    return made


def extend(broker: Broker, calls: Any) -> None:
    broker._extend_due(calls)


def test_refused_extension_stops_no_other(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    calls = Calls(of_3=PermissionError("permission denied"))
    extend(broker, calls)
    assert calls.claims == [3, 2, 1]
    for lease in broker._held.values():
        lease.called_at -= 30
        lease.refused_at = lease.refused_at and lease.refused_at - 30
    extend(broker, calls)
    assert calls.claims == [3, 2, 1, 2, 1, 3]
    assert set(broker._held) == set(DELIVERIES)
    answer = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert [one.getMessage() for one in answer] == [
        "orders: cannot extend the lease of message 3, will retry: permission denied"
    ]


@pytest.mark.parametrize("error", [rowq.StaleClaim, rowq.QueueNotFound])
def test_lost_lease_is_dropped(broker: Broker, error: Callable[[str], Exception]) -> None:
    extend(broker, Calls(of_3=error("orders")))
    assert set(broker._held) == set(DELIVERIES[:2])


def test_lost_connection_ends_the_round(broker: Broker) -> None:
    calls = Calls(of_3=rowq.ConnectionLost("gone"))
    with pytest.raises(rowq.ConnectionLost):
        extend(broker, calls)
    assert calls.claims == [3]


@pytest.mark.parametrize(
    "error", [rowq.ConnectionLost("gone"), rowq.QueueBusy("an open transaction")]
)
def test_release_ends_with_a_lost_connection(
    broker: Broker, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    calls: Any = Calls(of_1=rowq.StaleClaim("1"), of_2=error)
    broker._queue = calls
    broker.release(DELIVERIES)
    assert calls.claims == [1, 2]
    assert not broker._held
    (answer,) = caplog.records
    assert answer.getMessage().startswith("2 messages not released")
