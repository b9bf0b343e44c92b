"""Reads the JSON columns of a result: one message's headers cannot spoil the others' rows.

A producer's headers can be JSON that Python's reader refuses: an integer of thousands of digits, or
thousands of levels. The routines refuse them, but a table may hold older ones.
"""

import json
import re
from itertools import pairwise
from typing import Any

from rowq.headers import UnreadableHeaders

# A text, or a bracket outside of texts.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"|[][{}]')
# In dequeue_wait's answer, headers are inside an object in the array.
_HEADERS_DEPTH = 3


def read_headers(text: str | bytes | None) -> Any:
    """Return headers, or UnreadableHeaders for those that Python's reader refuses."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return UnreadableHeaders(shown, str(error))


def read_json(text: str | bytes) -> Any:
    """Return a JSON column: headers as `read_headers` does, or the array of dequeue_wait."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if not shown.lstrip().startswith("["):
            return read_headers(shown)
    entries = json.loads(_with_headers_as_text(shown))
    for entry in entries:
        entry["headers"] = read_headers(entry["headers"])
    return entries


def _with_headers_as_text(messages: str) -> str:
    """Return an array of messages whose headers are not objects but the text of these."""
    cuts, depth = [0], 0
    for mark in _MARK.finditer(messages):
        match mark[0]:
            case "{" | "[":
                depth += 1
                if depth == _HEADERS_DEPTH:
                    cuts.append(mark.start())
            case "}" | "]":
                if depth == _HEADERS_DEPTH:
                    cuts.append(mark.end())
                depth -= 1
    cuts.append(len(messages))
    parts = [messages[start:end] for start, end in pairwise(cuts)]
    parts[1::2] = map(json.dumps, parts[1::2])
    return "".join(parts)
