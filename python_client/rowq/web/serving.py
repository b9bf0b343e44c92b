"""The server of a page that runs by itself."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.routing import Mount

from rowq.errors import PackageMissing
from rowq.web.app import to_folder
from rowq.web.ending import end


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
