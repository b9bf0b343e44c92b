"""Interface for tracing calls and handlers; rowq.contrib.opentelemetry sets `active`."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rowq.engines.base import Row


class Sending(Protocol):
    """A call that may send messages."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of the call."""

    def record(self, rows: Sequence[Row]) -> None:
        """Record the answer."""


class Traces(Protocol):
    """Tracer of calls and handlers."""

    def calling(
        self, routine: str, arguments: Mapping[str, Any]
    ) -> AbstractContextManager[Sending]:
        """Return a context for a call of a routine."""

    def record_received(self, queue_name: str, messages: Sequence[Any], called_at: float) -> None:
        """Record a dequeue that began at `called_at`, by time.monotonic(), and ended now."""

    def processing(self, queue_name: str, messages: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return a context, which yields the span, for a handler of these messages."""

    def record_decisions(self, span: Any, decisions: Iterable[tuple[str, str | None]]) -> None:
        """Record routine and error for each message of a span."""

    def record_raised(self, error: BaseException) -> None:
        """Record an exception of a handler in the current span."""

    def carrier(self) -> dict[str, str]:
        """Return the headers for a message that is sent now."""


active: Traces | None = None
"""The active tracer; None if tracing is off."""
