"""JSON arguments of calls."""

import json
from typing import Any


class JsonText(str):
    """JSON that is sent as it stands, such as a number that Python would not write."""

    __slots__ = ()


def json_text(value: Any) -> str:
    """Return a value as JSON; JsonText as it is."""
    return str(value) if isinstance(value, JsonText) else json.dumps(value)
