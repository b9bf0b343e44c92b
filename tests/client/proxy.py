"""A TCP relay that simulates network failures."""

import contextlib
import ctypes
import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import pytest
from psycopg.conninfo import conninfo_to_dict

from rowq.engines import engine_for_url
from tests.engines.base import TO_RUN

_PORTS = {"mysql": 3306, "oracle": 1521, "sqlserver": 1433}
_SO_ATTACH_FILTER = 26
_RETURN_NOTHING = struct.pack("HBBI", 0x06, 0, 0, 0)
"""A packet filter that drops every incoming packet."""


def socket_option(port: int | None, name: str) -> int:
    """Return an option, such as SO_KEEPALIVE, of this process's connection to a port."""
    level = socket.SOL_SOCKET if name.startswith("SO_") else socket.IPPROTO_TCP
    for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
        with contextlib.suppress(OSError):
            # Copy sockets only: a copy of a pipe's end would keep it open.
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as duplicate:
                if (
                    duplicate.family in {socket.AF_INET, socket.AF_INET6}
                    and duplicate.getpeername()[1] == port
                ):
                    return duplicate.getsockopt(level, getattr(socket, name))
    raise AssertionError(f"no connection with port {port}")


class Relay:
    """A relay that forwards bytes, or fails as answer.

    url: of the same database, through this relay.
    accepted, refused, requests, lost: how many connections were made and refused so far, how often
        a client sent something, and how many replies were lost.
    delay_seconds: how long every piece is kept back on its way, in both directions.
    """

    def __init__(self, url: str) -> None:
        self._upstream, self.url, self._listener = _open(url)
        self._cut_after: int | None = None
        self._refuse = threading.Event()
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.delay_seconds = 0.0
        self.accepted = 0
        self.refused = 0
        self.requests = 0
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_reply(self) -> None:
        """Forward the next request, wait for its reply, and close without forwarding it."""
        self.cut_next_reply(0)

    def cut_next_reply(self, after: int) -> None:
        """Close during the next reply, after this many bytes of it."""
        with self._lock:
            self._cut_after = after

    def refuse(self, *, connections: bool) -> None:
        """Refuse or accept new connections."""
        (self._refuse.set if connections else self._refuse.clear)()

    def stall(self) -> None:
        """Forward nothing, but keep connections open and accept new ones."""
        self._flowing.clear()

    def go_on(self) -> None:
        """Forward waiting and later bytes."""
        self._flowing.set()

    def vanish(self) -> None:
        """Acknowledge no packet of the current clients, as a machine that has vanished."""
        instruction = ctypes.create_string_buffer(_RETURN_NOTHING)
        program = struct.pack("HP", 1, ctypes.addressof(instruction))
        with self._lock:
            for client, _ in self._pairs:
                try:
                    client.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
                except PermissionError:  # The system has no room for filters of such an account.
                    pytest.skip(f"no packet filter for this account{TO_RUN}root")

    def cut(self) -> None:
        """Close all open connections."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in (end for pair in pairs for end in pair):
            _close(end)

    def calm(self) -> None:
        """Forward everything again."""
        self.delay_seconds = 0.0
        with self._lock:
            self._cut_after = None
        self.refuse(connections=False)
        self.go_on()

    def close(self) -> None:
        """End the relay."""
        _close(self._listener)
        self.go_on()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._flowing.wait()
                if self._refuse.is_set():
                    self.refused += 1
                    client.close()
                    continue
                self._pass_on(client)

    def _pass_on(self, client: socket.socket) -> None:
        """Connect a client to the server; close if that fails."""
        try:
            server = _connect(self._upstream)
        except OSError:
            client.close()
            return
        with self._lock:
            self._pairs.append((client, server))
            self.accepted += 1
        for pump in (self._requests, self._replies):
            threading.Thread(target=pump, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                self._hold_back()
                server.sendall(data)
                self.requests += 1
        _close(server)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                self._hold_back()
                left = self._passes(len(data))
                client.sendall(data[:left])
                if left < len(data):
                    break
        _close(client)
        _close(server)

    def _hold_back(self) -> None:
        self._flowing.wait()
        if self.delay_seconds:
            time.sleep(self.delay_seconds)

    def _passes(self, size: int) -> int:
        """Return how many bytes of a reply to forward."""
        with self._lock:
            if self._cut_after is None:
                return size
            if self._cut_after > size:
                self._cut_after -= size
                return size
            left, self._cut_after = self._cut_after, None
            self.lost += 1
            return min(left, size - 1)


@contextlib.contextmanager
def relay(url: str) -> Iterator[Relay]:
    """Run a relay to the server of `url` during the block."""
    started = Relay(url)
    try:
        yield started
    finally:
        started.close()


def _open(url: str) -> tuple[tuple[str, int], str, socket.socket]:
    engine = engine_for_url(url).name
    if engine in _PORTS:
        return _open_network(url, _PORTS[engine])
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    upstream = (parts.pop("host", "localhost"), int(parts.pop("port", "5432")))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    user = quote(parts.pop("user", "postgres"), safe="")
    database = quote(parts.pop("dbname", ""), safe="")
    options = urlencode(parts, quote_via=quote)
    return upstream, f"postgresql://{user}@127.0.0.1:{port}/{database}?{options}", listener


def _open_network(url: str, port: int) -> tuple[tuple[str, int], str, socket.socket]:
    """Listen for the server of a URL with host and port."""
    parts = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0))
    user, _, _ = parts.netloc.rpartition("@")
    netloc = f"{user}@127.0.0.1:{listener.getsockname()[1]}"
    upstream = (parts.hostname or "localhost", parts.port or port)
    return upstream, urlunsplit(parts._replace(netloc=netloc)), listener


def _connect(address: tuple[str, int]) -> socket.socket:
    host, port = address
    if not host.startswith("/"):
        return socket.create_connection(address)
    local = socket.socket(socket.AF_UNIX)
    local.connect(f"{host}/.s.PGSQL.{port}")
    return local


def _close(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
