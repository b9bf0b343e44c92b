"""The server of a page that runs by itself, and the end of a page where an application mounts it.

A server such as uvicorn waits for open answers before it comes to the end of a lifespan, and the
stream of a browser that follows changes is one. So streams end when the process is told to end.
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
"""What an application of Starlette's or FastAPI's takes."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def end(app: Starlette) -> None:
    """End the streams of a page that create_app has made, and close its connections.

    To be called when the server that serves it begins to end: it waits for answers that are not
    over, and a browser that follows changes gets one for ten minutes. `page_lifespan` does it.
    """
    app.state.site.end()


def page_lifespan(*pages: Starlette) -> Lifespan:
    """Return a lifespan for who mounts these pages: it ends their streams and connections.

        app = FastAPI(lifespan=rowq.web.page_lifespan(page))

    At the first SIGTERM or SIGINT the streams end, and what else handles these signals is called as
    before; connections are closed when the lifespan ends. Python handles signals in a process's
    main thread, so where the server runs in another one, streams end with the lifespan only. In a
    lifespan of your own:

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

        # A signal may come while a lock is held that ending a stream needs: the loop does it next.
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
    """Call something at each signal before what handles it, for the length of a block."""
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
    """Replace what handles a signal; return the handler, None where Python handles none, and it."""
    before = signal.getsignal(number)
    if not callable(before):
        return None, before

    def handle(number: int, frame: FrameType | None) -> None:
        # The loop is closed where the lifespan was broken off.
        with suppress(RuntimeError):
            call()
        before(number, frame)

    signal.signal(number, handle)
    return handle, before


@dataclass(frozen=True, slots=True)
class Served:
    """A page that is served: its address, and whether its server runs."""

    address: str
    is_running: Callable[[], bool]


@contextmanager
def serving(page: Starlette, host: str, port: int, base_path: str = "") -> Iterator[Served]:
    """Serve a page that create_app has made, for the length of a block.

    port: 0 is any that is free. Raises PackageMissing without uvicorn, and OSError when the address
    cannot be had.
    """
    try:
        import uvicorn

        from rowq.web.limits import MOST_HEADER_BYTES, backlog, limited_protocol
    except ImportError as error:
        raise PackageMissing("rowq web needs uvicorn: pip install 'rowq[web]'") from error
    config = uvicorn.Config(
        Starlette(routes=[to_folder(base_path), Mount(base_path, page)]) if base_path else page,
        access_log=False,
        lifespan="off",
        log_config=None,
        # At "warning" each request that is none would be a line, at a client's pleasure.
        log_level="error",
        http=limited_protocol(),
        backlog=backlog(),
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        ws="none",
        # Whoever is behind a proxy is named by the login, and by nothing else.
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
