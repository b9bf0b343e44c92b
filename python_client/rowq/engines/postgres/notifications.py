"""What a connection is told by the notifications of other sessions."""

# ruff: noqa: D102 - the methods are described in base.py

import time
import uuid
from typing import Any

from rowq.engines.base import Notifications
from rowq.engines.sockets import has_input

# No more is kept of notifications, so that those of a stranger fill no memory: a queue's name has
# 100 characters at most.
_LONGEST_BYTES = 400
_MOST_NAMES = 10_000


class PostgresNotifications(Notifications):
    """The notifications that one connection of psycopg receives."""

    def __init__(self, connection: Any) -> None:
        """Begin to keep what comes with the answers to calls, too."""
        self._connection = connection
        self._heard: list[str] = []
        self._received = 0
        connection.add_notify_handler(lambda notify: self._note(notify.payload))

    @property
    def received(self) -> int:
        return self._received

    def wait(self, seconds: float) -> list[str]:
        self._collect()
        if not self._heard and has_input(self._connection.fileno(), seconds):
            self._connection.pgconn.consume_input()
            self._collect()
        heard, self._heard = self._heard, []
        return heard

    def is_deaf(self, other: Any, seconds: float) -> bool:
        # A channel of its own: the one of `listen` has a name that only the routines need.
        token = f"rowq_{uuid.uuid4().hex}"
        self._connection.execute(f"listen {token}")
        other.execute("select pg_catalog.pg_notify(%s, %s)", [token, token])
        until = time.monotonic() + seconds
        is_deaf = True
        while is_deaf and time.monotonic() < until:
            is_deaf = token not in self.wait(max(until - time.monotonic(), 0))
        self._connection.execute(f"unlisten {token}")
        return is_deaf

    def end(self) -> None:
        self._connection.execute("unlisten *")

    def _collect(self) -> None:
        while notify := self._connection.pgconn.notifies():
            self._note(notify.extra[: _LONGEST_BYTES + 1].decode(errors="replace"))

    def _note(self, payload: str) -> None:
        self._received += 1
        if len(payload) <= _LONGEST_BYTES and len(self._heard) < _MOST_NAMES:
            self._heard.append(payload)
