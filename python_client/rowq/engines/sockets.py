"""What several engines' drivers leave to their users about sockets."""

import errno
import os
import select
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

IDLE_SECONDS, INTERVAL_SECONDS, PROBES = 30, 10, 3
"""When to ask after a silent server, how often again, and how often in all."""
SILENT_SECONDS = IDLE_SECONDS + INTERVAL_SECONDS * PROBES
"""After so long a connection is ended whose other side acknowledges nothing."""


def has_input(descriptor: int) -> bool:
    """Return whether something can be read at once: a word of the other side, or its end."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def end_when_silent(descriptor: int) -> None:
    """Let the system end a TCP connection whose other side is gone without a farewell.

    Otherwise a call waits for as long as the system likes: a quarter of an hour on Linux for what
    was sent, two hours for what is awaited. What a system cannot do is left as it is.
    """
    with socket.socket(fileno=descriptor) as one:
        try:
            if one.family in {socket.AF_INET, socket.AF_INET6}:
                _set_options(one)
        finally:
            one.detach()


@contextmanager
def ending_when_silent(host: str, port: int | None) -> Iterator[None]:
    """Let `end_when_silent` see to what is connected inside with a host, by a driver that hides it.

    port: None for any. What another thread connects with the same one meanwhile is seen to, too;
    a system that does not list a program's connections, such as Windows, leaves them as they are.
    """
    before = _sockets()
    yield
    new = _sockets() - before
    with suppress(OSError):
        addresses = {one[4][0] for one in socket.getaddrinfo(host, None)}
        for descriptor, _ in new:
            with suppress(OSError):
                address, its_port = _peer_of(descriptor)
                if address in addresses and port in {None, its_port}:
                    end_when_silent(descriptor)


def _sockets() -> set[tuple[int, int]]:
    """Return descriptor and number of this program's sockets, where the system lists them."""
    found = set()
    with suppress(OSError):
        for descriptor in [int(one.name) for one in Path("/dev/fd").iterdir()]:
            with suppress(OSError):
                status = os.fstat(descriptor)
                if stat.S_ISSOCK(status.st_mode):
                    found.add((descriptor, status.st_ino))
    return found


def _peer_of(descriptor: int) -> tuple[str, int]:
    """Return the address and port at a TCP connection's other side; OSError if it is none."""
    with socket.socket(fileno=descriptor) as one:
        try:
            if one.family not in {socket.AF_INET, socket.AF_INET6}:
                raise OSError(errno.EAFNOSUPPORT, "not TCP")
            address, port, *_ = one.getpeername()
            return address, port
        finally:
            one.detach()


def _set_options(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": IDLE_SECONDS,
        "TCP_KEEPINTVL": INTERVAL_SECONDS,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": SILENT_SECONDS * 1000,
    }
    for name, value in options.items():
        if option := getattr(socket, name, None):
            one.setsockopt(socket.IPPROTO_TCP, option, value)
