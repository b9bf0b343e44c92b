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
# Who says nothing for so many seconds is not waited for.
_PATIENCE_SECONDS = 10.0
# However slowly somebody asks or reads, a connection is ended after so many seconds; a look may
# take several of them.
_LONGEST_SECONDS = 30.0
# Each connection is a thread, so the server has no more than so many.
_MOST_CONNECTIONS = 32
# So many of them may have asked for pages that can take long; more are told to come again.
_MOST_ASKING = 24
LIVE = "/live"
"""The page that is answered however many others hang: who watches a program ends it otherwise."""
PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a page says."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = PLAIN


Page = Callable[[str], Answer]
"""Takes the header Accept of a request."""


def told(why_not: str) -> Answer:
    """Return the answer of a probe: ok for an empty text, else 503 with the reason."""
    if why_not:
        return Answer(f"{why_not}\n".encode(), HTTPStatus.SERVICE_UNAVAILABLE)
    return Answer(b"ok\n")


def metrics_page(registry: Any) -> Page:
    """Return the page that shows what a registry of prometheus_client collects."""
    from prometheus_client.exposition import choose_encoder

    def page(accept: str) -> Answer:
        encoder, content_type = choose_encoder(accept)
        return Answer(encoder(registry), content_type=content_type)

    return page


@contextmanager
def serving(host: str, port: int, pages: Mapping[str, Page]) -> Iterator[str]:
    """Serve `pages`, by their paths, for the length of a block; yield the address as a URL.

    port: 0 is any that is free. Raises OSError when the address cannot be had.
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
        """Knows the pages of this server."""

    Handler.pages = pages
    open_connections = Handler.connections = _Connections()
    (family, *_), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)

    class Server(ThreadingHTTPServer):
        """Does not wait for requests under way when it ends."""

        address_family = family
        daemon_threads = True
        block_on_close = False

        def process_request(self, request: Any, client_address: Any) -> None:
            if open_connections.add(request):
                super().process_request(request, client_address)
            else:
                _log.debug("%s is one connection too many", client_address)
                self.shutdown_request(request)

        def shutdown_request(self, request: Any) -> None:
            open_connections.remove(request)
            super().shutdown_request(request)

        def service_actions(self) -> None:
            # The server calls this twice a second, and after each connection that it accepts.
            open_connections.end_overdue()

        def server_bind(self) -> None:
            # The base class asks for the host's full name, which can take long where no DNS is.
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.socket.bind(self.server_address)
            self.server_address = self.socket.getsockname()
            self.server_name, self.server_port = host, self.server_address[1]

        def handle_error(self, request: Any, client_address: Any) -> None:
            del request
            _log.debug("a request of %s has failed", client_address, exc_info=True)

    server = Server((host, port), Handler)
    _servers.add(server)
    return server


class _Connections:
    """The connections that threads of a server are at work on, and when each has begun.

    One that comes when all places are taken is given that of the oldest one which has asked for
    nothing yet: those that ask for more than LIVE never have all places.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began_at: dict[socket.socket, float] = {}
        self._asking: set[socket.socket] = set()
        self._probing: set[socket.socket] = set()

    def add(self, connection: socket.socket) -> bool:
        """Count a connection in; whether there was room for it."""
        with self._lock:
            if len(self._began_at) >= _MOST_CONNECTIONS and not self._end_silent():
                return False
            self._began_at[connection] = time.monotonic()
        return True

    def ask(self, connection: socket.socket) -> bool:
        """Note that a connection asks for a page that may take long; whether there is room."""
        with self._lock:
            if len(self._asking) >= _MOST_ASKING:
                return False
            self._asking.add(connection)
        return True

    @contextmanager
    def probing(self, connection: socket.socket) -> Iterator[None]:
        """Keep a connection that asks for LIVE from losing its place while it is answered."""
        with self._lock:
            self._probing.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._probing.discard(connection)

    def remove(self, connection: socket.socket) -> None:
        """Count a connection out, if it was counted in."""
        with self._lock:
            self._began_at.pop(connection, None)
            self._asking.discard(connection)

    def _end_silent(self) -> bool:
        """End the oldest connection that has asked for nothing yet; whether there was one."""
        busy = self._asking | self._probing
        silent = next((one for one in self._began_at if one not in busy), None)
        if silent is None:
            return False
        del self._began_at[silent]
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)
        return True

    def end_overdue(self) -> None:
        """End what takes too long: its thread reads the end, or fails to write."""
        overdue = time.monotonic() - _LONGEST_SECONDS
        # A connection is closed only after it was counted out, so none of these is closed here.
        with self._lock:
            for connection, began_at in self._began_at.items():
                if began_at < overdue:
                    with suppress(OSError):
                        connection.shutdown(socket.SHUT_RDWR)


_servers: "weakref.WeakSet[ThreadingHTTPServer]" = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    """Close what a forked process has of its parent's servers: it would keep their ports taken."""
    for server in list(_servers):
        server.socket.close()


after_fork(_leave_to_the_parent)


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the server's pages, and refuses everything else."""

    pages: Mapping[str, Page]
    connections: _Connections
    timeout = _PATIENCE_SECONDS
    server_version = "rowq"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Answer with a page's headers."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - so it is called there
        """Log a request, which says nothing new."""
        _log.debug(format, *args)

    def _answer(self, *, with_body: bool) -> None:
        is_probe = self._asked_for() == LIVE
        with self.connections.probing(self.connection) if is_probe else nullcontext():
            answer = self._page()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(answer.body)

    def _asked_for(self) -> str:
        return self.path.partition("?")[0]

    def _page(self) -> Answer:
        path = self._asked_for()
        page = self.pages.get(path)
        if page is None:
            known = ", ".join(self.pages)
            return Answer(f"there are {known}\n".encode(), HTTPStatus.NOT_FOUND)
        if path != LIVE and not self.connections.ask(self.connection):
            said = b"too many ask at once; try again\n"
            return Answer(said, HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            return page(self.headers.get("Accept", ""))
        except Exception:
            _log.exception("%s cannot be shown", path)
            return Answer(b"failed; the log says why\n", HTTPStatus.INTERNAL_SERVER_ERROR)
