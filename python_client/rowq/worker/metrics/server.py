"""A small HTTP server in a thread: /metrics, /live and /ready."""

import logging
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rowq.forks import after_fork

_log = logging.getLogger("rowq.metrics")
# Timeout for a silent client.
_SILENT_SECONDS = 10.0
# Maximum duration of a connection, including slow clients and slow pages.
_LONGEST_SECONDS = 30.0
# Maximum number of connections; each is a thread.
_MOST_CONNECTIONS = 32
# Maximum number of connections with requests for slow pages; more get status 503.
_MOST_SLOW = 24
LIVE = "/live"
"""This page is answered even if all others hang: otherwise a supervisor kills the process."""
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a page."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN


Page = Callable[[str], Answer]
"""A function of the request's Accept header."""


def probe_answer(why_not: str) -> Answer:
    """Return the answer of a probe: ok for an empty string, else 503 with the reason."""
    if why_not:
        return Answer(f"{why_not}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
    return Answer(b"ok\n")


def metrics_page(registry: Any) -> Page:
    """Return the page of a prometheus_client registry."""
    from prometheus_client.exposition import choose_encoder

    def page(accept: str) -> Answer:
        encoder, content_type = choose_encoder(accept)
        return Answer(encoder(registry), content_type=content_type)

    return page


@contextmanager
def serving(host: str, port: int, pages: Mapping[str, Page]) -> Iterator[str]:
    """Serve `pages`, by path, during a block; yield the URL of the server.

    port: 0 for any free port. Raises OSError if the address is unavailable.
    """
    server = _server(host, port, pages)
    thread = threading.Thread(target=server.serve_forever, name="rowq-http", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        server.server_close()
        raise
    shown = f"[{host}]" if ":" in host else host
    try:
        yield f"http://{shown}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _server(host: str, port: int, pages: Mapping[str, Page]) -> ThreadingHTTPServer:
    class Handler(_Handler):
        """Handler of this server's pages."""

    Handler.pages = pages
    open_connections = Handler.connections = _Connections()
    (family, *_), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    class Server(ThreadingHTTPServer):
        """Server that does not wait for running requests at its end."""

        address_family = family
        daemon_threads = True
        block_on_close = False

        def process_request(self, request: Any, client_address: Any) -> None:
            if open_connections.add(request):
                super().process_request(request, client_address)
            else:
                _log.debug("too many connections, refused %s", client_address)
                self.shutdown_request(request)

        def shutdown_request(self, request: Any) -> None:
            open_connections.remove(request)
            super().shutdown_request(request)

        def service_actions(self) -> None:
            # Called twice a second, and after each accepted connection.
            open_connections.end_overdue()

        def server_bind(self) -> None:
            # The base class looks up the host's full name, which is slow without DNS.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = host, self.server_address[1]

        def handle_error(self, request: Any, client_address: Any) -> None:
            del request
            _log.debug("request of %s failed", client_address, exc_info=True)

    server = Server((host, port), Handler)
    _servers.add(server)
    return server


class _Connections:
    """The open connections of a server, and when each began.

    If the server is full, a new connection replaces the oldest one without a request. Requests for
    other pages than LIVE never use all connections.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began_at: dict[socket.socket, float] = {}
        self._slow: set[socket.socket] = set()
        self._probing: set[socket.socket] = set()

    def add(self, connection: socket.socket) -> bool:
        """Add a connection; return whether there was capacity for it."""
        with self._lock:
            if len(self._began_at) >= _MOST_CONNECTIONS and not self._end_silent():
                return False
            self._began_at[connection] = time.monotonic()
        return True

    def admit_slow(self, connection: socket.socket) -> bool:
        """Add a connection with a request for a slow page; return whether there was capacity."""
        with self._lock:
            if len(self._slow) >= _MOST_SLOW:
                return False
            self._slow.add(connection)
        return True

    @contextmanager
    def probing(self, connection: socket.socket) -> Iterator[None]:
        """Protect a connection with a request for LIVE from being replaced."""
        with self._lock:
            self._probing.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._probing.discard(connection)

    def remove(self, connection: socket.socket) -> None:
        """Remove a connection."""
        with self._lock:
            self._began_at.pop(connection, None)
            self._slow.discard(connection)

    def _end_silent(self) -> bool:
        """End the oldest connection without a request; return whether there was one."""
        busy = self._slow | self._probing
        silent = next((one for one in self._began_at if one not in busy), None)
        if silent is None:
            return False
        del self._began_at[silent]
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)
        return True

    def end_overdue(self) -> None:
        """End connections that take too long: their threads read the end, or fail to write."""
        overdue = time.monotonic() - _LONGEST_SECONDS
        # A connection is removed before it is closed, so none of these is closed.
        with self._lock:
            for connection, began_at in self._began_at.items():
                if began_at < overdue:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)


_servers: "weakref.WeakSet[ThreadingHTTPServer]" = weakref.WeakSet()


def _close_inherited() -> None:
    """Close the parent's server sockets in a forked process, which would keep the ports in use."""
    for server in list(_servers):
        server.socket.close()


after_fork(_close_inherited)


class _Handler(BaseHTTPRequestHandler):
    """Handler of GET and HEAD requests."""

    pages: Mapping[str, Page]
    connections: _Connections
    timeout = _SILENT_SECONDS
    server_version = "rowq"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with a page's headers."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - name of the base class
        """Log a request."""
        _log.debug(format, *args)

    def _answer(self, *, with_body: bool) -> None:
        is_probe = self._path() == LIVE
        with self.connections.probing(self.connection) if is_probe else nullcontext():
            answer = self._page()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(answer.body)

    def _path(self) -> str:
        return self.path.partition("?")[0]

    def _page(self) -> Answer:
        path = self._path()
        page = self.pages.get(path)
        if page is None:
            known = ", ".join(self.pages)
            return Answer(f"not found; pages: {known}\n".encode(), HTTPStatus.NOT_FOUND)
        if path != LIVE and not self.connections.admit_slow(self.connection):
            return Answer(b"too many requests; retry\n", HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            return page(self.headers.get("Accept", ""))
        except Exception:
            _log.exception("%s failed", path)
            return Answer(b"failed; see the log\n", HTTPStatus.INTERNAL_SERVER_ERROR)
