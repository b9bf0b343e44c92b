"""Connections of commands to striped queues."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rowq.contrib.striped import Striped, connect_striped
from rowq.tools.console.database import check_installed, servers_in


@contextmanager
def open_striped(
    urls: Sequence[str], queue_name: str, stripes: int, reconnect_seconds: float = 5.0
) -> Iterator[Striped]:
    """Connect to a striped queue for a block."""
    servers = servers_in(urls)
    try:
        with connect_striped(
            queue_name, stripes, servers, reconnect_seconds=reconnect_seconds
        ) as striped:
            yield striped
    except Exception as error:
        for url in [servers] if isinstance(servers, str) else servers.values():
            check_installed(url, error)
        raise
