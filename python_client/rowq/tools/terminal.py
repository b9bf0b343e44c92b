"""Text of other accounts for a terminal or a log: no character in it is a command or invisible."""

import json
import logging
import re
import sys
from collections.abc import Callable
from typing import Any

# Python calls these printable, although they have neither width nor ink.
_INVISIBLE = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F),
            *(0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
        ),
    )
)


def printable(text: str) -> str:
    """Return a text of one line with every character escaped that a terminal obeys or hides.

    These are controls, C1 among them, marks of direction, and marks without a width.
    """
    return _escaped(text, lambda one: one.encode("unicode_escape", "backslashreplace").decode())


def printable_lines(text: str) -> str:
    """Return a text as printable does, but keep its line ends and tabs."""
    return re.sub(r"[^\n\t]+", lambda match: printable(match[0]), text)


def printable_json(value: Any, **options: Any) -> str:
    r"""Return a value as one line of JSON, in which such characters are \u escapes.

    options: those of json.dumps. A program that reads the line gets the same value.
    """
    line = json.dumps(value, ensure_ascii=False, **options)
    return _escaped(line, lambda one: json.dumps(one)[1:-1])


class LineFormatter(logging.Formatter):
    """Formats a log record for a terminal: a message or a traceback may quote other accounts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines."""
        return printable_lines(super().format(record))


def log_to_stderr() -> None:
    """Let loggers write lines to standard error, unless logging is set up already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler])


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and _INVISIBLE.isdisjoint(text):
        return text
    return "".join(
        one if one.isprintable() and one not in _INVISIBLE else escape(one) for one in text
    )
