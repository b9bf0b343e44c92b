"""The facts about a message that a program is given, in its environment and in a file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowq import tracing
from rowq.messages import Message
from rowq.tools.trace_headers import TRACEPARENT, TRACESTATE, trace_of

# These are secrets of rowq's own connection; a command that needs a database has its own variable.
WITHHELD = ("ROWQ_URL", "PGPASSWORD", "MYSQL_PWD")

# Linux takes no variable above 128 KiB, and the sum of all is limited everywhere.
_LONGEST_VARIABLE = 32 * 1024


def facts_of(queue_name: str, message: Message) -> dict[str, Any]:
    """Return what there is to know of a message, but for its body."""
    return {
        "queue": queue_name,
        "message_id": message.message_id,
        "claim_id": message.claim_id,
        "attempt": message.attempt,
        "message_type": message.message_type,
        "headers": message.headers or {},
        "enqueued_at": message.enqueued_at.isoformat(),
        "last_error": message.last_error,
    }


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return facts as one JSON object in UTF-8."""
    return json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace")


def environment(facts: Mapping[str, Any], file: Path) -> dict[bytes, bytes]:
    """Return a program's environment: this process's without secrets, facts, and their file.

    A fact is ROWQ_ and its name, empty when there is none, in UTF-8 and without NULs. One that is
    too long for a variable is left out. TRACEPARENT and TRACESTATE are those of the worker's span
    where it is traced, else the message's; without these they are inherited.
    """
    spelled = {f"ROWQ_{name.upper()}": _spelled(fact) for name, fact in facts.items()}
    hidden = {name.encode() for name in (*WITHHELD, *spelled)}
    traces = tracing.active
    trace = trace_of(traces.carrier() if traces else {}) or trace_of(facts["headers"])
    if trace:
        hidden |= {TRACEPARENT.upper().encode(), TRACESTATE.upper().encode()}
    spelled |= {name.upper(): value.encode() for name, value in trace.items()}
    inherited = {name: value for name, value in os.environb.items() if name not in hidden}
    fitting = {
        name.encode(): value for name, value in spelled.items() if len(value) <= _LONGEST_VARIABLE
    }
    return inherited | fitting | {b"ROWQ_MESSAGE_FILE": os.fsencode(file)}


def _spelled(fact: Any) -> bytes:
    match fact:
        case None:
            text = ""
        case dict():
            text = json.dumps(fact)
        case _:
            text = str(fact)
    return text.replace("\0", "").encode("utf-8", "backslashreplace")
