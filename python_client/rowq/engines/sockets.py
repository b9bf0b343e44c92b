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
"""When to ask after a silent server, how often again, and how often in all."""
SILENT_SECONDS = IDLE_SECONDS + INTERVAL_SECONDS * PROBES
"""After so long a connection is ended whose other side acknowledges nothing."""

_Made = TypeVar("_Made")


def has_input(descriptor: int, seconds: float = 0.0) -> bool:
    """Return whether something can be read within so many seconds, the other side's end too."""
    if not hasattr(select, "poll"):
        return bool(select.select([descriptor], [], [], seconds)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def is_of_the_network(error: BaseException | None) -> bool:
    """Whether the system or a socket raised an OSError, and no handler of a signal.

    The system's errors have numbers; a socket's time limit has none, but always the same end.
    """
    if not isinstance(error, OSError):
        return False
    return error.errno is not None or str(error).endswith("timed out")


def end_when_silent(descriptor: int) -> None:
    """Let the system end a TCP connection whose other side is gone without a farewell.

    Otherwise a call waits for as long as the system likes: a quarter of an hour on Linux for what
    was sent, two hours for what is awaited. What a system cannot do is left as it is.
    """
    with _borrowed(descriptor) as connected:
        if _is_tcp(connected):
            _set_options(connected)


@contextmanager
def ending_when_silent(host: str, port: int | None) -> Iterator[None]:
    """Do as end_when_silent to what is connected inside with a host, by a driver that hides it.

    port: None for any. What another thread connects with the same one meanwhile is seen to, too;
    a system that does not list a program's connections, such as Windows, leaves them as they are.
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
    """Return descriptor and number of this program's sockets, where the system lists them."""
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
    """Lend a driver's socket, which stays open."""
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
    """Something was not made within its time."""


def within(seconds: float, make: Callable[[], _Made], discard: Callable[[_Made], None]) -> _Made:
    """Return what `make` returns, or raise what it raises, unless that takes too long.

    A thread that nobody waits for any more goes on until `make` ends, and discards what it made. So
    it does when an exception out of a signal's handler ends the waiting.

    Args:
        seconds: how long it may take.
        make: what to do, in a thread of its own.
        discard: what to do with what came too late.

    Raises:
        TimedOutError: it took longer.
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
