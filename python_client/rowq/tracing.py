"""What traces the calls of this process and the handlers of its workers; at first nothing does.

Queue objects and workers look whether `active` is there. rowq.contrib.opentelemetry sets it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from rowq.engines.base import Row


class Sending(Protocol):
    """A call that may send messages."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """What to call the routine with."""

    def note(self, rows: Sequence[Row]) -> None:
        """Note the answer."""


class Traces(Protocol):
    """Traces calls and handlers."""

    def calling(
        self, routine: str, arguments: Mapping[str, Any]
    ) -> AbstractContextManager[Sending]:
        """Return a block for a call of a routine."""

    def note_received(self, queue_name: str, messages: Sequence[Any], asked_at: float) -> None:
        """Note a dequeue that was called at `asked_at`, by time.monotonic(), and has ended now."""

    def processing(self, queue_name: str, messages: Sequence[Any]) -> AbstractContextManager[Any]:
        """Return a block in which a handler has these messages; it yields the span."""

    def note_decisions(self, span: Any, decisions: Iterable[tuple[str, str | None]]) -> None:
        """Note what was decided about the messages of a span: routines, and errors."""

    def note_raised(self, error: BaseException) -> None:
        """Note what a handler raises, in the span that it is in."""

    def carrier(self) -> dict[str, str]:
        """Return the headers of a message that is sent now."""


active: Traces | None = None
"""What traces calls and handlers; None while nothing is traced."""
