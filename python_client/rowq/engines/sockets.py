"""Sockets of drivers: input, silence, and a time limit for connecting."""

import os
import select
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

IDLE_SECONDS, INTERVAL_SECONDS, PROBES = 30, 10, 3
"""TCP keepalive: idle time, interval between probes, number of probes."""
SILENT_SECONDS = IDLE_SECONDS + INTERVAL_SECONDS * PROBES
"""Timeout for a connection whose peer acknowledges nothing."""

_Made = TypeVar("_Made")


def has_input(descriptor: int, seconds: float = 0.0) -> bool:
    """Return whether data or the end of the stream can be read within `seconds`."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], seconds)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def is_of_the_network(error: BaseException | None) -> bool:
    """Whether an OSError is from the system or a socket, not from a signal handler.

    System errors have numbers; a socket timeout has none, but always ends with the same words.
    """
    if not isinstance(error, OSError):
        return False
    return error.errno is not None or str(error).endswith("timed out")


def end_when_silent(descriptor: int) -> None:
    """Set TCP timeouts, so that the system ends a connection whose peer has vanished.

    Otherwise a call waits for the system's default: on Linux 15 minutes for unacknowledged data, 2
    hours for an answer. Options that the system lacks are skipped.
    """
    with _borrowed(descriptor) as connected:
        if _is_tcp(connected):
            _set_options(connected)


@contextmanager
def ending_when_silent(host: str, port: int | None) -> Iterator[None]:
    """Apply end_when_silent to connections to a host that are opened in the block.

    For drivers that hide their sockets. port: None for any. Connections of other threads to the
    same address are included. Does nothing on a system that does not list a process's sockets,
    such as Windows.
    """
    before = _sockets()
    yield
    new = _sockets() - before
    with suppress(OSError):
        addresses = {found[4][0] for found in socket.getaddrinfo(host, None)}
        for descriptor, _ in new:
            with suppress(OSError), _borrowed(descriptor) as connected:
                if _is_tcp(connected):
                    address, its_port, *_ = connected.getpeername()
                    if address in addresses and port in {None, its_port}:
                        _set_options(connected)


def _sockets() -> set[tuple[int, int]]:
    """Return descriptor and inode of this process's sockets, if the system lists them."""
    found = set()
    with suppress(OSError):
        for descriptor in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
            with suppress(OSError):
                status = os.fstat(descriptor)
                if stat.S_ISSOCK(status.st_mode):
                    found.add((descriptor, status.st_ino))
    return found


@contextmanager
def _borrowed(descriptor: int) -> Iterator[socket.socket]:
    """Use a driver's socket without closing it."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        yield borrowed
    finally:
        borrowed.detach()


def _is_tcp(connected: socket.socket) -> bool:
    return connected.family in {socket.AF_INET, socket.AF_INET6}


def _set_options(connected: socket.socket) -> None:
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": IDLE_SECONDS,
        "TCP_KEEPINTVL": INTERVAL_SECONDS,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": SILENT_SECONDS * 1000,
    }
    for name, value in options.items():
        if option := getattr(socket, name, None):
            connected.setsockopt(socket.IPPROTO_TCP, option, value)


class TimedOutError(Exception):
    """A call of `within` took too long."""


def within(seconds: float, make: Callable[[], _Made], discard: Callable[[_Made], None]) -> _Made:
    """Run `make` in a thread and return its result; raises TimedOutError after `seconds`.

    After a timeout, or an exception of a signal handler, the thread continues until `make` ends,
    and passes the result to `discard`.
    """
    made: Future[_Made] = Future()

    def run() -> None:
        try:
            result = make()
        except BaseException as error:
            if made.set_running_or_notify_cancel():
                made.set_exception(error)
            return
        if made.set_running_or_notify_cancel():
            made.set_result(result)
        else:
            discard(result)

    threading.Thread(target=run, name="rowq connects", daemon=True).start()
    try:
        wait([made], timeout=seconds)
    finally:
        is_late = made.cancel()
    if is_late:
        raise TimedOutError(f"no answer within {seconds:g} seconds")
    return made.result()
