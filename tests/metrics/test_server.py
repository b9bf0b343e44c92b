"""The server of /metrics, /live and /ready."""

import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from rowq.worker.metrics import server
from rowq.worker.metrics.server import Answer, probe_answer, serving
from tests.engines.base import wait_until
from tests.metrics.reading import get


def fail(_accept: str) -> Answer:
    raise RuntimeError("broken, and nobody's business")


PAGES = {
    "/live": lambda _accept: probe_answer(""),
    "/ready": lambda _accept: probe_answer("not yet"),
    "/echo": lambda accept: Answer(accept.encode()),
    "/broken": fail,
}


@pytest.fixture
def address() -> Iterator[str]:
    with serving("127.0.0.1", 0, PAGES) as found:
        yield found


def connected(address: str) -> socket.socket:
    """Return a connection to the server with a timeout of 30 seconds."""
    port = urlsplit(address).port
    assert port
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def test_server_responds_to_pages(address: str, caplog: pytest.LogCaptureFixture) -> None:
    assert get(f"{address}/live") == (200, "ok\n")
    assert get(f"{address}/ready") == (503, "not yet\n")
    assert get(f"{address}/echo?x=/live", Accept="a/b") == (200, "a/b")
    assert get(f"{address}/live", method="HEAD") == (200, "")
    assert get(f"{address}/") == (404, "not found; pages: /live, /ready, /echo, /broken\n")
    assert get(f"{address}/live", method="POST")[0] == 501
    assert get(f"{address}/broken") == (500, "failed; see the log\n")
    assert "broken, and nobody's business" in caplog.text


def test_silent_client_does_not_block_other_requests(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.2)
    with connected(address) as silent:
        assert get(f"{address}/live") == (200, "ok\n")
        assert silent.recv(1) == b""


def test_endless_request_is_closed(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte arrives in time, the complete request never."""
    monkeypatch.setattr(server, "_LONGEST_SECONDS", 0.5)
    with connected(address) as slow:

        def is_ended() -> bool:
            slow.send(b"x")
            return False

        with pytest.raises(OSError):  # noqa: PT011 - each system has an error of its own
            wait_until(is_ended, "the server ends the connection")


def test_new_connection_replaces_longest_idle_connection(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 3)
    with ExitStack() as opened:
        silent = [opened.enter_context(connected(address)) for _ in range(4)]
        assert silent[0].recv(1) == b""
        assert get(f"{address}/echo", Accept="a/b") == (200, "a/b")
        assert silent[1].recv(1) == b""

        def has_few_threads() -> bool:
            names = [thread.name for thread in threading.enumerate()]
            return sum("process_request_thread" in name for name in names) <= 3

        wait_until(has_few_threads, "the threads of the others have ended")
        silent[3].sendall(b"GET /live HTTP/1.0\r\n\r\n")
        assert silent[3].recv(12) == b"HTTP/1.0 200"


def test_running_probe_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 2)
    asked, may_end = threading.Event(), threading.Event()

    def live(_accept: str) -> Answer:
        asked.set()
        may_end.wait(60)
        return Answer(b"ok\n")

    with ExitStack() as opened:
        address = opened.enter_context(serving("127.0.0.1", 0, {"/live": live}))
        probe = opened.enter_context(connected(address))
        probe.sendall(b"GET /live HTTP/1.0\r\n\r\n")
        assert asked.wait(30)
        silent = [opened.enter_context(connected(address)) for _ in range(2)]
        assert silent[0].recv(1) == b""
        may_end.set()
        assert probe.recv(12) == b"HTTP/1.0 200"


def test_live_responds_while_scrapes_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "_MOST_CONNECTIONS", 4)
    monkeypatch.setattr(server, "_MOST_SLOW", 3)
    asked, may_end = threading.Semaphore(0), threading.Event()

    def hang(_accept: str) -> Answer:
        asked.release()
        may_end.wait(60)
        return Answer(b"late\n")

    answers: list[tuple[int, str]] = []
    with ExitStack() as opened:
        pages = {**PAGES, "/metrics": hang}
        address = opened.enter_context(serving("127.0.0.1", 0, pages))
        scrapes = [
            threading.Thread(target=lambda: answers.append(get(f"{address}/metrics")))
            for _ in range(3)
        ]
        for scrape in scrapes:
            scrape.start()
            assert asked.acquire(timeout=30)
        assert get(f"{address}/metrics") == (503, "too many requests; retry\n")
        for _ in range(3):
            opened.enter_context(connected(address))
        assert get(f"{address}/live") == (200, "ok\n")
        may_end.set()
        for scrape in scrapes:
            scrape.join(30)
        assert answers == [(200, "late\n")] * 3
        wait_until(lambda: get(f"{address}/metrics")[0] == 200, "there is room again")


def test_shutdown_does_not_wait_for_connections() -> None:
    with serving("127.0.0.1", 0, PAGES) as address:
        place = urlsplit(address)
        assert place.port
        silent = socket.create_connection(("127.0.0.1", place.port))
        time.sleep(0.1)
        began_at = time.monotonic()
    assert time.monotonic() - began_at < 5
    silent.close()
    with pytest.raises(OSError):  # noqa: PT011 - each system has an error of its own
        http.client.HTTPConnection("127.0.0.1", place.port, timeout=5).request("GET", "/live")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork; to run it: Linux")
def test_forked_process_does_not_keep_port() -> None:
    may_end, tell = os.pipe()
    with serving("127.0.0.1", 0, PAGES) as address:
        child = os.fork()
        if child == 0:
            os.read(may_end, 1)
            os._exit(0)
        assert get(f"{address}/live") == (200, "ok\n")
    try:
        port = urlsplit(address).port
        assert port
        with serving("127.0.0.1", port, PAGES) as again:
            assert get(f"{again}/live") == (200, "ok\n")
    finally:
        os.write(tell, b"x")
        os.waitpid(child, 0)
        os.close(may_end)
        os.close(tell)


def test_ipv6_address_has_brackets() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6; to run it: a machine with the address ::1")
    with serving("::1", 0, PAGES) as address:
        assert address.startswith("http://[::1]:")
        assert get(f"{address}/live") == (200, "ok\n")
