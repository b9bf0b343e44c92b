"""Headers of a message that Python's JSON reader refuses."""

from typing import Any, NoReturn


class UnreadableHeaders(dict[str, Any]):
    """Stands for headers that Python cannot read, such as an integer of 5000 digits.

    To read them raises ValueError; `text` is their JSON and `reason` why it cannot be read.
    """

    def __init__(self, text: str, reason: str) -> None:
        """Keep the JSON text, and what Python's reader said of it."""
        # Code in C reads a dictionary without the methods below, so that it must not be empty.
        super().__init__({"unreadable headers": text})
        self.text = text
        self.reason = reason

    def __repr__(self) -> str:
        return f"UnreadableHeaders({self.text!r:.100}, {self.reason!r:.100})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.text, self.reason)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnreadableHeaders) and self.text == other.text

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(f"headers cannot be read: {self.reason}")

    __getitem__ = __contains__ = __iter__ = __len__ = __bool__ = __or__ = __ror__ = _refuse
    get = keys = values = items = copy = _refuse
