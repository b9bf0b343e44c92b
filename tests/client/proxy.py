"""A relay in front of a server that can lose the reply to a request the server has carried out."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from psycopg.conninfo import conninfo_to_dict

from rowq.engines import engine_for_url

# Of engines whose URL has the address in its usual place; PostgreSQL's may be a socket's.
_PORTS = {"mysql": 3306, "sqlserver": 1433}


class Relay:
    """Passes bytes on, until told to lose a reply.

    url: of the same database, through this relay.
    lost: how many replies were lost so far.
    """

    def __init__(self, url: str) -> None:
        self._upstream, self.url, self._listener = _open(url)
        self._lose = threading.Event()
        self._refuse = threading.Event()
        self._sockets: list[socket.socket] = []
        self.lost = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_reply(self) -> None:
        """Carry the next request to the server, wait for its reply, and close without a word."""
        self._lose.set()

    def refuse(self, *, connections: bool) -> None:
        """Close new connections at once, or accept them again."""
        (self._refuse.set if connections else self._refuse.clear)()

    def cut(self) -> None:
        """Close every connection that is open now."""
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            _close(one)

    def close(self) -> None:
        """End the relay."""
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._refuse.is_set():
                    client.close()
                    continue
                server = _connect(self._upstream)
                self._sockets += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._replies, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        _close(server)

    def _replies(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if self._lose.is_set():
                    self._lose.clear()
                    self.lost += 1
                    break
                client.sendall(data)
        _close(client)
        _close(server)


@contextlib.contextmanager
def relay(url: str) -> Iterator[Relay]:
    """Relay to the server of `url` inside the block."""
    one = Relay(url)
    try:
        yield one
    finally:
        one.close()


def _open(url: str) -> tuple[tuple[str, int], str, socket.socket]:
    if port := _PORTS.get(engine_for_url(url).name):
        return _open_tcp(url, port)
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    upstream = (parts.pop("host", "localhost"), int(parts.pop("port", "5432")))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    user = quote(parts.pop("user", "postgres"), safe="")
    database = quote(parts.pop("dbname", ""), safe="")
    options = urlencode(parts, quote_via=quote)
    return upstream, f"postgresql://{user}@127.0.0.1:{port}/{database}?{options}", listener


def _open_tcp(url: str, port: int) -> tuple[tuple[str, int], str, socket.socket]:
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


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
