"""The transport of kombu's whose broker is rowq."""

import time
from queue import Empty
from typing import Any

from kombu.transport import virtual

from rowq.contrib.celery.broker import Broker, Options, log
from rowq.contrib.celery.channel import NO_FANOUT, Channel
from rowq.engines import without_password
from rowq.errors import CannotConnect, ConnectionLost, InvalidArgument

_noted = False


class Transport(virtual.Transport):  # type: ignore[misc]
    """A connection of kombu's: its channels share a connection to the database."""

    Channel = Channel
    can_parse_url = True
    driver_type = "rowq"
    driver_name = "rowq"
    connection_errors = (*virtual.Transport.connection_errors, CannotConnect, ConnectionLost)

    def __init__(self, client: Any, **kwargs: Any) -> None:
        """Prepare for the URL of `client`; raises EngineUnknown, InvalidArgument."""
        if client.alt:
            raise InvalidArgument(
                "rowq takes one broker URL; name the servers of a cluster in it, as"
                " rowq+postgresql://first,second/database"
            )
        self.options = Options.of(client.transport_options)
        self.broker = Broker(client.hostname, self.options)
        super().__init__(client, **kwargs)

    def establish_connection(self) -> Any:
        """Connect; raises CannotConnect."""
        self.broker.open()
        return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        """Give back what was not acknowledged, and close."""
        super().close_connection(connection)
        self.broker.close()

    def _collect(self, connection: Any) -> None:
        """Let go without a call, as kombu asks after an error and in a forked process.

        A task may be at work on what is held: it is not given back, but comes when its lease runs
        out, unless its worker acknowledges it before.
        """
        del connection
        for channel in self.channels:
            channel.qos.leave()
        self.broker.close()

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver what there is; wait for it, and raise socket.timeout when the time is up.

        It looks again at once when a message was acknowledged, as there may be room for another.
        """
        del connection
        give_up_at = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            self.broker.freed.clear()
            try:
                self.cycle.get(self._deliver, timeout=timeout)
            except Empty:
                left = give_up_at - time.monotonic()
                if left <= 0:
                    raise TimeoutError from None
                self.broker.freed.wait(min(left, self.options.polling_interval))
            else:
                return

    def note_consumer(self) -> None:
        """Say, once in a process that receives, what is not there."""
        global _noted
        if not _noted:
            _noted = True
            log.warning("%s", NO_FANOUT)

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """Return the URL as it may be shown."""
        del mask
        return f"rowq+{uri if include_password else without_password(uri)}"
