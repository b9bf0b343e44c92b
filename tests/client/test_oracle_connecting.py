"""Connecting with python-oracledb to a silent listener."""

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

import rowq
from rowq.engines.sockets import TimedOutError, within
from tests.client.proxy import socket_option
from tests.client.signals import interrupted


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Return a listener that never accepts a connection itself."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


def url_of(listener: socket.socket, options: str) -> str:
    return f"oracle://me:secret@127.0.0.1:{listener.getsockname()[1]}/service?{options}"


def test_silent_oracle_listener_raises(silent: socket.socket) -> None:
    with pytest.raises(rowq.CannotConnect, match=r"^Oracle: no answer within 0.2 seconds$"):
        rowq.connect(url_of(silent, "connect_timeout=0.2"))


@pytest.mark.skipif(
    sys.platform != "linux", reason="open files are listed as Linux lists them; to run it: Linux"
)
@pytest.mark.parametrize(("given", "wanted"), [("", (1, 60)), ("expire_time=2", (1, 120))])
def test_oracle_connection_has_keepalive(
    silent: socket.socket, given: str, wanted: tuple[int, int]
) -> None:
    def connect() -> None:
        with suppress(rowq.CannotConnect):
            rowq.connect(url_of(silent, given))

    connecting = threading.Thread(target=connect)
    connecting.start()
    accepted, _ = silent.accept()
    with closing(accepted):
        assert accepted.recv(1)
        port = silent.getsockname()[1]
        names = ("SO_KEEPALIVE", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        asks, idle, interval, count = (socket_option(port, name) for name in names)
    connecting.join(30)
    assert (asks, idle) == wanted
    assert interval * count <= 60


def test_late_result_is_discarded() -> None:
    go_on, discarded = threading.Event(), threading.Event()
    with pytest.raises(TimedOutError, match=r"^no answer within 0.01 seconds$"):
        within(0.01, lambda: go_on.wait(30), lambda _: discarded.set())
    go_on.set()
    assert discarded.wait(30)


def test_result_after_an_interruption_is_discarded() -> None:
    go_on, discarded = threading.Event(), threading.Event()
    with (
        pytest.raises(TimeoutError, match="soft limit"),
        interrupted(0.1, TimeoutError("soft limit")),
    ):
        within(30, lambda: go_on.wait(30), lambda _: discarded.set())
    go_on.set()
    assert discarded.wait(30)


def test_error_is_raised_in_the_waiting_thread() -> None:
    with pytest.raises(TimeoutError, match="its own"):
        within(30, _fail, lambda _: None)
    assert within(30, lambda: 7, lambda _: None) == 7


def _fail() -> int:
    raise TimeoutError("its own")
