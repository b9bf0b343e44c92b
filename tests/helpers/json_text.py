"""JSON arguments of calls."""

import json
from typing import Any


class JsonText(str):
    """JSON text that is sent unchanged, such as a number that Python would not write."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """Return a value as JSON; JsonText unchanged."""
    return str(value) if isinstance(value, JsonText) else json.dumps(value)
