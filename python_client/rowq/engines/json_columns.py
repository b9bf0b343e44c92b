"""Reads the JSON columns of a result: one message's headers cannot spoil the others' rows.

A producer's headers can be JSON that Python's reader refuses: an integer of thousands of digits, or
thousands of levels. The routines refuse them, but a table may hold older ones.
"""

import json
import re
from itertools import pairwise
from typing import Any

from rowq.messages import UnreadableHeaders

# This matches a text, or a bracket outside of texts.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"|[][{}]')
# In dequeue_wait's answer, headers are inside an object in the array.
_HEADERS_DEPTH = 3


def read_json(text: str | bytes) -> Any:
    """Return a JSON column: a message's headers, or the array of dequeue_wait.

    Headers that Python's reader refuses are UnreadableHeaders.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if not shown.lstrip().startswith("["):
            return UnreadableHeaders(shown, str(error))
    entries = json.loads(_with_headers_as_text(shown))
    for entry in entries:
        if entry["headers"] is not None:
            entry["headers"] = read_json(entry["headers"])
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
