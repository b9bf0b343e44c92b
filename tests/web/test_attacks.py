"""A client without a login cannot block rowq web, or fill its memory or log."""

import base64
import http.client
import re
import resource
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import rowq.web
from rowq.web import limits, passwords, view
from rowq.web.databases import Database
from rowq.web.passwords import Passwords, write_password
from rowq.web.serving import serving
from tests.cli.working import PROGRAM, environment
from tests.engines.base import wait_until
from tests.metrics.reading import get

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
RIGHT = "Basic " + base64.b64encode(b"anna:right").decode()


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return a password file with one user."""
    file = tmp_path / "passwords"
    write_password(file, "anna", "right")
    return file


@contextmanager
def served(authorize: Any) -> Iterator[str]:
    """Serve a page without a database, and yield its address."""
    app = rowq.web.create_app(NOWHERE, authorize=authorize)
    with serving(app, "127.0.0.1", 0) as page:
        yield page.address
    app.state.site.end()


@pytest.fixture
def guarded(secrets: Path) -> Iterator[str]:
    """Return the address of a page with a login."""
    with served(Passwords(secrets)) as address:
        yield address


def connected(address: str) -> socket.socket:
    port = urlsplit(address).port
    assert port
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def is_ended(connection: socket.socket) -> bool:
    """Return whether the server has closed a connection, after discarding its data."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_idle_connections_do_not_block_requests(
    monkeypatch: pytest.MonkeyPatch, secrets: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 20)
    with served(Passwords(secrets)) as address, ExitStack() as stack:
        idle = [stack.enter_context(connected(address)) for _ in range(60)]
        for _ in range(10):
            assert get(f"{address}live")[0] == 200
            assert get(f"{address}static/rowq.css", Authorization=RIGHT)[0] == 200
        wait_until(lambda: sum(map(is_ended, idle)) >= 40, "the oldest are closed")
        assert not is_ended(idle[-1])
    assert "Traceback" not in caplog.text


@pytest.mark.slow("waits for time limits")
def test_more_connections_than_open_files_are_harmless(secrets: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"ulimit -n 256; exec '{PROGRAM}' web --port 0 --password-file '{secrets}'"
    with log.open("w") as written:
        web = subprocess.Popen(
            ["bash", "-c", command], stderr=written, env=environment(NOWHERE), text=True
        )
    try:
        wait_until(lambda: "serving the queues" in log.read_text(), "it serves")
        found = re.search(r"http://\S+/", log.read_text())
        assert found
        with ExitStack() as stack:
            for _ in range(300):
                with suppress(OSError):
                    stack.enter_context(connected(found[0]))
            for _ in range(5):
                assert get(f"{found[0]}live")[0] == 200
                assert get(f"{found[0]}static/rowq.js", Authorization=RIGHT)[0] == 200
        assert len(log.read_text()) < 1000
    finally:
        web.kill()
        web.wait()


REQUEST = b"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize("first", [b"", REQUEST + b"X: ", REQUEST + b"\r\n"])
def test_endless_headers_end_connection(
    monkeypatch: pytest.MonkeyPatch, guarded: str, first: bytes
) -> None:
    monkeypatch.setattr(limits, "REQUEST_SECONDS", 0.5)
    with connected(guarded) as connection:
        connection.sendall(first)

        def drip_ends() -> bool:
            with suppress(OSError):
                connection.send(b"x" if first else b"")
            return is_ended(connection)

        wait_until(drip_ends, "the server ends the connection", seconds=10)


def test_large_headers_are_refused(guarded: str, caplog: pytest.LogCaptureFixture) -> None:
    with connected(guarded) as connection:
        with suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 1024 * 1024)
        wait_until(lambda: is_ended(connection), "the server ends the connection", seconds=10)
    for _ in range(20):
        with connected(guarded) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    assert caplog.text == ""


def test_upgrade_request_is_answered_normally(guarded: str) -> None:
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    status, _ = get(f"{guarded}live", **{**upgrade, "Sec-WebSocket-Key": "x" * 24})
    assert status == 200


def asked_from(source: str, address: str, authorization: str) -> int:
    """Return the status of a request from an address of this machine."""
    port = urlsplit(address).port
    assert port
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=60, source_address=(source, 0)
    )
    try:
        connection.request("GET", "/static/rowq.css", headers={"Authorization": authorization})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.slow("waits for time limits")
def test_password_guesses_do_not_block_other_addresses(secrets: Path) -> None:
    guard = Passwords(secrets)
    found: list[int] = []
    stop = threading.Event()

    def guess(number: int) -> None:
        while not stop.is_set():
            wrong = base64.b64encode(f"anna:{number} {len(found)}".encode()).decode()
            found.append(asked_from("127.0.0.1", address, f"Basic {wrong}"))

    with served(guard) as address:
        threads = [threading.Thread(target=guess, args=(number,)) for number in range(30)]
        for thread in threads:
            thread.start()
        try:
            wait_until(lambda: found.count(503) > 50, "guesses are refused")
            for number in range(2, 7):
                assert asked_from(f"127.0.0.{number}", address, RIGHT) == 200
                guard._known.clear()
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    assert set(found) == {401, 503}
    assert not guard._waiting


def test_parallel_logins_share_one_check(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks: list[str] = []
    is_of = passwords._Secret.is_of

    def counted(self: Any, password: str) -> bool:
        checks.append(password)
        return is_of(self, password)

    monkeypatch.setattr(passwords._Secret, "is_of", counted)
    statuses: list[int] = []
    with served(Passwords(secrets)) as address:
        threads = [
            threading.Thread(
                target=lambda: statuses.append(asked_from("127.0.0.1", address, RIGHT))
            )
            for _ in range(12)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * 12
    assert checks == ["right"]


@pytest.mark.slow("waits for time limits")
def test_endless_forms_use_little_memory_and_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view, "_FORM_SECONDS", 2.0)
    monkeypatch.setattr(Database, "rights", lambda _: frozenset())
    size = 15 * 1024 * 1024
    request = (
        "POST /queue/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n"
        f"Content-Length: {size}\r\n\r\n"
    ).encode()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with served(lambda _: "act") as address, ExitStack() as stack:
        uploads = [stack.enter_context(connected(address)) for _ in range(40)]
        chunk = b"a=" + b"b" * (size - 1000)

        def upload(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.sendall(request)
                connection.sendall(chunk)

        threads = [threading.Thread(target=upload, args=(one,)) for one in uploads]
        for thread in threads:
            thread.start()
        wait_until(lambda: all(map(is_ended, uploads)), "all are closed", seconds=60)
        for thread in threads:
            thread.join()
        assert get(f"{address}live")[0] == 200
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown < 200, f"{grown} MiB"
