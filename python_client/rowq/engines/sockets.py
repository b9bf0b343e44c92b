"""What several engines' drivers leave to their users about sockets."""

import select
import socket

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
