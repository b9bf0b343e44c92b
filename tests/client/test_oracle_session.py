"""An OwnedSession with fake connections of python-oracledb."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from oracledb.errors import _Error

import rowq
from rowq.engines.oracle.engine import ENGINE
from rowq.session import OwnedSession
from tests.client.signals import SoftLimit

URL = "oracle://me@host/service"


class Made:
    """A fake connection."""

    autocommit = True

    def __init__(self) -> None:
        self.call_timeout = 0
        self.closed_with: int | None = None

    def is_healthy(self) -> bool:
        return self.closed_with is None

    def ping(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.closed_with = self.call_timeout


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Made]:
    """Return the connections opened so far."""
    connections: list[Made] = []

    def connect(_url: str) -> Made:
        connections.append(Made())
        return connections[-1]

    monkeypatch.setattr(ENGINE, "connect", connect)
    return connections


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets the errors of the next calls."""

    def answer_with(*errors: BaseException) -> None:
        left = list(errors)

        def call(*_: Any) -> list[tuple[int]]:
            if left:
                raise left.pop(0)
            return [(7,)]

        monkeypatch.setattr(ENGINE, "call", call)

    return answer_with


def expected(number: int) -> Exception:
    error = _Error(f"ORA-{number:05}: expected", code=number)
    made: Exception = error.exc_type(error)
    return made


def session() -> OwnedSession:
    return OwnedSession(URL, reconnect_seconds=60, sleep=lambda _seconds: None)


@pytest.mark.parametrize(
    ("error", "connections"),
    [
        (expected(16000), 2),
        (expected(8177), 1),
        (expected(60), 1),
    ],
    ids=["read-only", "not serializable", "deadlock"],
)
def test_call_without_effect_is_repeated(
    made: list[Made], answer: Callable[..., None], error: Exception, connections: int
) -> None:
    answer(error)
    assert session().call("enqueue", {}) == [(7,)]
    assert len(made) == connections


def test_repeat_and_reconnect_have_separate_limits(
    made: list[Made], answer: Callable[..., None]
) -> None:
    patient = OwnedSession(URL, reconnect_seconds=0, repeat_seconds=60, sleep=lambda _seconds: None)
    answer(expected(60), expected(60))
    assert patient.call("enqueue", {}) == [(7,)]
    answer(expected(16000))
    with pytest.raises(rowq.ConnectionLost):
        patient.call("enqueue", {})
    striped = rowq.connect_striped("orders", 1, URL)
    answer(expected(60))
    assert striped.queue_of(striped.stripes[0])._session.call("enqueue", {}) == [(7,)]
    assert len(made) == 2


def test_close_waits_for_another_threads_call(
    made: list[Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()
    shared = session()

    def call(*_: Any) -> list[tuple[int]]:
        begun.set()
        assert may_end.wait(60)
        return [(7,)]

    monkeypatch.setattr(ENGINE, "call", call)
    thread = threading.Thread(target=lambda: shared.call("enqueue", {}))
    thread.start()
    assert begun.wait(60)
    shared.close_after_calls()
    assert made[0].is_healthy()
    may_end.set()
    thread.join(60)
    assert not made[0].is_healthy()
    assert shared.call("enqueue", {}) == [(7,)]
    assert [one.is_healthy() for one in made] == [False, False]


@pytest.mark.parametrize(
    "error",
    [expected(54), expected(1653), rowq.QueueBusy("an open transaction")],
    ids=["locked", "full", "RQ705"],
)
def test_transient_refusal_is_retried_for_workers_only(
    made: list[Made], answer: Callable[..., None], error: Exception
) -> None:
    context = rowq.Worker(URL, "q", print)._context
    worker = context.session(context.servers[0])
    answer(error, error)
    assert worker.call("complete", {}) == [(7,)]
    answer(error)
    with pytest.raises(type(error)):
        session().call("complete", {})
    assert len(made) == 2


@pytest.mark.parametrize(
    "error", [expected(3113), TimeoutError(110, "Connection timed out")], ids=str
)
def test_lost_call_is_repeated_only_if_safe(
    made: list[Made], answer: Callable[..., None], error: Exception
) -> None:
    answer(error)
    assert session().call("complete", {}) == [(7,)]
    answer(error)
    with pytest.raises(rowq.ConnectionLost, match="may or may not have taken effect"):
        session().call("enqueue", {})
    assert len(made) == 3


@pytest.mark.parametrize("error", [SoftLimit(), KeyboardInterrupt(), TimeoutError("too long")])
def test_break_off_closes_without_waiting(
    made: list[Made], answer: Callable[..., None], error: BaseException
) -> None:
    opened = session()
    answer(error)
    with pytest.raises(type(error)):
        opened.call("complete", {})
    assert made[0].closed_with == 1000, "milliseconds"
    assert opened.call("complete", {}) == [(7,)]
    assert len(made) == 2
