"""What a connection is told by the notifications of other sessions."""

# ruff: noqa: D102 - the methods are described in base.py

import time
import uuid
from typing import Any

from rowq.engines.base import Notifications
from rowq.engines.sockets import has_input


class PostgresNotifications(Notifications):
    """The notifications that one connection of psycopg receives."""

    def __init__(self, connection: Any) -> None:
        """Begin to keep what comes with the answers to calls, too."""
        self._connection = connection
        self._heard: list[str] = []
        connection.add_notify_handler(lambda notify: self._heard.append(notify.payload))

    def wait(self, seconds: float) -> list[str]:
        self._collect()
        if not self._heard and has_input(self._connection.fileno(), seconds):
            self._connection.pgconn.consume_input()
            self._collect()
        heard, self._heard = self._heard, []
        return heard

    def is_deaf(self, other: Any, seconds: float) -> bool:
        token = uuid.uuid4().hex
        channel = f"rowq_{token}"
        self._connection.execute(f"listen {channel}")
        other.execute("select pg_catalog.pg_notify(%s, %s)", [channel, token])
        until = time.monotonic() + seconds
        is_deaf = False
        while token not in self.wait(max(until - time.monotonic(), 0)):
            if time.monotonic() >= until:
                is_deaf = True
                break
        self._connection.execute(f"unlisten {channel}")
        return is_deaf

    def _collect(self) -> None:
        while notify := self._connection.pgconn.notifies():
            self._heard.append(notify.extra.decode(errors="replace"))
