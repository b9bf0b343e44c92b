"""The trace context in a message's headers, under the keys of W3C."""

import re
from collections.abc import Mapping
from typing import Any

from rowq.messages import UnreadableHeaders

TRACEPARENT, TRACESTATE, BAGGAGE = "traceparent", "tracestate", "baggage"

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")
_TRACESTATE = re.compile(r"[ -~]{1,8192}")


def carried(headers: Any) -> dict[str, str]:
    """Return the W3C keys with text values; none if the headers are None or unreadable."""
    if not isinstance(headers, Mapping) or isinstance(headers, UnreadableHeaders):
        return {}
    found = {key: headers.get(key) for key in (TRACEPARENT, TRACESTATE, BAGGAGE)}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def trace_of(headers: Any) -> dict[str, str]:
    """Return traceparent and tracestate, if they are well-formed."""
    found = carried(headers)
    if not _TRACEPARENT.fullmatch(found.get(TRACEPARENT, "")):
        return {}
    found.pop(BAGGAGE, None)
    if not _TRACESTATE.fullmatch(found.get(TRACESTATE, "")):
        found.pop(TRACESTATE, None)
    return found


def joined(headers: Any, context: Mapping[str, str]) -> Any:
    """Return headers with the keys of a context, unless they already have a trace."""
    if not context or TRACEPARENT in carried(headers):
        return headers
    if headers is None:
        return dict(context)
    # The call itself refuses anything that is not a mapping.
    is_mapping = isinstance(headers, Mapping) and not isinstance(headers, UnreadableHeaders)
    return {**context, **headers} if is_mapping else headers
