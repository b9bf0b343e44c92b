"""Finds in a stored error the line that names its cause."""

import re

NO_ERROR = "no error was given"

TRACEBACK = re.compile(r'^Traceback \(most recent call last\)|^ +File "', re.MULTILINE)
"""Matches the beginning of a traceback of Python, or a frame where the beginning was cut off."""
_LONGEST = 300


def cause_of(error: str | None) -> str:
    """Return the line of an error that names its cause: of a traceback the last one."""
    lines = [line.strip() for line in (error or "").splitlines() if line.strip()]
    if not lines:
        return NO_ERROR
    is_traceback = TRACEBACK.search(error or "") is not None
    return (lines[-1] if is_traceback else lines[0])[:_LONGEST]
