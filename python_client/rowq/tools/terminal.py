"""Text of other accounts for a terminal, a log or a page: escaped, and without passwords.

No character in it is a command or invisible.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import Any
from urllib.parse import unquote, unquote_plus
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rowq.engines import EXAMPLE, without_password

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

NO_ERROR = "no error was given"

TRACEBACK = re.compile(r'^Traceback \(most recent call last\)|^ +File "', re.MULTILINE)
"""Matches the beginning of a traceback of Python, or a frame where the beginning was cut off."""
_LONGEST = 300

# These find a password by where it stands: also in a URL that was given in the wrong place, and in
# what a driver makes of a URL. The example in rowq's own errors holds none.
_EXAMPLE = re.escape(EXAMPLE.partition("://")[2])
_USER_AND_PASSWORD = re.compile(rf"(://(?!{_EXAMPLE}(?!\S))[^\s/:@]*:)\S+@")
_PARAMETER = re.compile(
    r"""(?i)((?:password|passwd|pwd|secret|token)["']?\s*[=:]\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"[^"]*"|\{(?:[^}]|\}\})*\}|[^\s&;,'")]+)"""
)
# A shorter password may be a part of any word.
_LEAST_LENGTH = 8


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


def cause_of(error: str | None) -> str:
    """Return the line of an error that names its cause: of a traceback the last one."""
    lines = [line.strip() for line in (error or "").splitlines() if line.strip()]
    if not lines:
        return NO_ERROR
    is_traceback = TRACEBACK.search(error or "") is not None
    return (lines[-1] if is_traceback else lines[0])[:_LONGEST]


def clock_of(name: str) -> tzinfo:
    """Return a time zone of this machine; UTC if the machine lacks the server's name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def local_text(time: datetime, clock: tzinfo) -> str:
    """Return a time to the second, with the abbreviation of its zone."""
    return f"{time.astimezone(clock):%Y-%m-%d %H:%M:%S %Z}"


def without_secrets(text: str, urls: Iterable[str]) -> str:
    """Return `text` without passwords.

    One is blotted out where a password stands: in a URL, after `password=` and the like. One of
    `urls` is blotted out anywhere, unless it is short, or is also the name of the user or the
    database: such a word may well stand for something else.
    """
    for url in urls:
        text = text.replace(url, without_password(url))
        for secret in _secrets(url):
            text = text.replace(secret, "***")
    return _PARAMETER.sub(r"\1***", _USER_AND_PASSWORD.sub(r"\1***@", text))


def _secrets(url: str) -> list[str]:
    """Return the URL's passwords as written and as meant, the longest first; no plain words."""
    address, _, query = url.partition("://")[2].partition("?")
    user_info, _, place = address.rpartition("@")
    user, _, password = user_info.partition(":")
    pairs = [pair.partition("=") for pair in re.split("[&#]", query)]
    names = {user, place.partition("/")[2]}
    names |= {value for name, _, value in pairs if name.lower() in {"user", "dbname", "owner"}}
    found = {password} | {value for name, _, value in pairs if "password" in name.lower()}
    found |= {unquote_plus(secret) for secret in found} | {unquote(secret) for secret in found}
    secrets = found - {unquote(name) for name in names}
    long = (secret for secret in secrets if len(secret) >= _LEAST_LENGTH)
    return sorted(long, key=len, reverse=True)
