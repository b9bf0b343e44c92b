"""wait_for_result: it returns when the message has ended, or at its timeout."""

import threading
import time

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import refused, rolled_back
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue
from tests.helpers.results import KEPT_SECONDS, keeping, wait_for

__all__ = ["keeping"]

pytestmark = [pytest.mark.promise("P32"), pytest.mark.requires("results")]

LONG = 20.0
"""Seconds, longer than any wait of these tests."""


class Waiter(threading.Thread):
    """A session that waits for a result, in a thread."""

    def __init__(self, queue: CheckedQueue, message_id: int) -> None:
        super().__init__(daemon=True)
        self._queue, self._message_id = queue, message_id
        self._end: object = None
        self.start()

    def run(self) -> None:
        """Wait."""
        self._end = wait_for(self._queue, self._message_id, LONG)

    def end(self) -> object:
        """Return what the call returned, which must be soon."""
        self.join(LONG / 2)
        assert not self.is_alive()
        return self._end


def test_wait_for_result_returns_the_result(keeping: CheckedQueue, elsewhere: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    waiter = Waiter(elsewhere, message)
    time.sleep(0.3)
    assert waiter.is_alive()
    keeping.finish_one(results=[{"a": [1]}])
    assert waiter.end() == ("completed", {"a": [1]}, None)


def test_wait_for_result_returns_at_once_after_the_end(keeping: CheckedQueue) -> None:
    (message,) = keeping.enqueue("a")
    keeping.finish_one(results=[7])
    (dead,) = keeping.make_dead("b")
    began = time.monotonic()
    assert wait_for(keeping, message, LONG) == ("completed", 7, None)
    assert wait_for(keeping, dead, LONG) == ("dead", None, "broken")
    assert wait_for(keeping, 0, LONG) is None
    keeping.pass_seconds(KEPT_SECONDS + 60)
    keeping.call("maintain")
    assert wait_for(keeping, message, LONG) is None
    assert wait_for(keeping, dead, LONG) == ("dead", None, "broken")
    assert time.monotonic() - began < LONG / 2


@pytest.mark.parametrize("seconds", [0, 0.3])
def test_wait_for_result_returns_the_state_at_timeout(
    keeping: CheckedQueue, seconds: float
) -> None:
    (message,) = keeping.enqueue("a")
    began = time.monotonic()
    assert wait_for(keeping, message, seconds) == ("ready", None, None)
    assert time.monotonic() - began >= seconds
    keeping.dequeue_one()
    assert wait_for(keeping, message, seconds) == ("leased", None, None)


@pytest.mark.promise("P15")
def test_wait_for_result_requires_result_seconds(queue: CheckedQueue) -> None:
    (message,) = queue.enqueue("a")
    text = queue.refused("RQ711", "wait_for_result", message_id=message, wait_seconds=5)
    assert "result_seconds" in text
    assert wait_for(queue, message, 0) == ("ready", None, None)


@pytest.mark.promise("P15")
@pytest.mark.parametrize("seconds", [-1, 3601, float("nan")])
def test_wait_seconds_out_of_range_is_refused(keeping: CheckedQueue, seconds: float) -> None:
    (message,) = keeping.enqueue("a")
    keeping.refused("RQ711", "wait_for_result", message_id=message, wait_seconds=seconds)


@pytest.mark.promise("P15")
def test_wait_for_result_refuses_invalid_arguments(
    keeping: CheckedQueue, connection: Connection
) -> None:
    keeping.refused("RQ711", "wait_for_result", message_id=None, wait_seconds=1)
    refused(connection, "RQ711", "wait_for_result", queue_name=None, message_id=1)
    refused(connection, "RQ701", "wait_for_result", queue_name="nowhere", message_id=1)


def test_wait_for_result_raises_after_the_queue_is_dropped(
    keeping: CheckedQueue, connect: type[Connection]
) -> None:
    (message,) = keeping.enqueue("a")
    other = connect()
    found: list[Exception] = []

    def wait() -> None:
        try:
            wait_for(keeping.via(other), message, LONG)
        except dialect_of(other).database_error as error:
            found.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    time.sleep(0.1)
    keeping.call("drop_queue", force=True)
    waiting.join(LONG / 2)
    assert [dialect_of(other).error(error)[0] for error in found] == ["RQ701"]


@pytest.mark.promise("P17")
def test_wait_for_result_refuses_an_open_transaction(
    keeping: CheckedQueue, connection: Connection, elsewhere: CheckedQueue
) -> None:
    with rolled_back(connection):
        (message,) = keeping.enqueue("a")
        keeping.refused("RQ713", "wait_for_result", message_id=message, wait_seconds=1)
    assert elsewhere.counts() == (0, 0, 0, 0)
