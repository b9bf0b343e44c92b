"""The server of rowq web, and the shutdown of a page mounted in an application.

A server such as uvicorn waits for open responses before it ends a lifespan, and a browser's stream
of changes is one. So the streams must end at the signal that stops the process.
"""

import asyncio
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from types import FrameType
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from rowq.errors import PackageMissing
from rowq.web.app import to_folder

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]
"""The parameter lifespan of a Starlette or FastAPI application."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end(app: Starlette) -> None:
    """End the streams of a page from create_app, and close its connections.

    Call it when the server starts to shut down: the server waits for open responses, and a stream
    of changes lasts up to 10 minutes. `page_lifespan` calls it.
    """
    app.state.site.end()


def page_lifespan(*pages: Starlette) -> Lifespan:
    """Return a lifespan for an application that mounts these pages.

        app = FastAPI(lifespan=rowq.web.page_lifespan(page))

    It ends the streams at the first SIGTERM or SIGINT, calls the previous signal handlers, and
    closes connections when the lifespan ends. Python handles signals in the main thread only; if
    the server runs in another thread, streams end with the lifespan. In your own lifespan:

        async with rowq.web.page_lifespan(page)(app):
            yield
    """

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        for page in pages:
            page.state.site.begin()

        def end_streams() -> None:
            for page in pages:
                page.state.site.end_streams()

        # The signal may interrupt code that holds a lock which end_streams needs: use the loop.
        with _at_signals(lambda: loop.call_soon_threadsafe(end_streams)):
            try:
                yield
            finally:
                end_streams()
                async with AsyncExitStack() as stack:
                    for page in pages:
                        stack.push_async_callback(asyncio.to_thread, end, page)

    return lifespan


@contextmanager
def _at_signals(call: Callable[[], object]) -> Iterator[None]:
    """Call `call` at each signal before its handler, for a block."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    replaced = {number: _replaced(number, call) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, (own, before) in replaced.items():
            if own is not None and signal.getsignal(number) is own:
                signal.signal(number, before)


def _replaced(number: int, call: Callable[[], object]) -> tuple[Any, Any]:
    """Replace a signal's handler; return the new one (None if not replaced) and the old one."""
    before = signal.getsignal(number)
    if not callable(before):
        return None, before

    def handle(number: int, frame: FrameType | None) -> None:
        # The loop is closed if the lifespan was aborted.
        with suppress(RuntimeError):
            call()
        before(number, frame)

    signal.signal(number, handle)
    return handle, before


@dataclass(frozen=True, slots=True)
class Served:
    """The address of a served page, and whether its server runs."""

    address: str
    is_running: Callable[[], bool]


@contextmanager
def serving(page: Starlette, host: str, port: int, base_path: str = "") -> Iterator[Served]:
    """Serve a page from create_app for a block; port 0 is any free port.

    Raises PackageMissing without uvicorn, and OSError if the address is not available.
    """
    try:
        import uvicorn

        from rowq.web.limits import MOST_HEADER_BYTES, backlog, limited_protocol
    except ImportError as error:
        raise PackageMissing("uvicorn is missing; run pip install 'rowq[web]'") from error
    config = uvicorn.Config(
        Starlette(routes=[to_folder(base_path), Mount(base_path, page)]) if base_path else page,
        access_log=False,
        lifespan="off",
        log_config=None,
        # At "warning", any client could fill the log with invalid requests.
        log_level="error",
        http=limited_protocol(),
        backlog=backlog(),
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        ws="none",
        # Only the login may name the user behind a proxy.
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    (family, *_), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    with socket.create_server((host, port), family=family) as listener:
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="rowq-web-server")
        thread.start()
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}{base_path}/"
        try:
            yield Served(address, thread.is_alive)
        finally:
            end(page)
            server.should_exit = True
            thread.join()
