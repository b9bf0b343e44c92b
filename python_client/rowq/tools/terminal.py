"""Safe text for a terminal, a log or a page: no control characters, no passwords."""

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

# Python calls these printable, although they are invisible.
_INVISIBLE = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F),
            *(0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
        ),
    )
)

NO_ERROR = "no error text"

TRACEBACK = re.compile(r'^Traceback \(most recent call last\)|^ +File "', re.MULTILINE)
"""Matches the start of a Python traceback, or a frame if the start was cut off."""
_LONGEST = 300

# Find passwords by position: also in a misplaced URL, and in what a driver makes of a URL. The
# example in rowq's own errors has no secret.
_EXAMPLE = re.escape(EXAMPLE.partition("://")[2])
_USER_AND_PASSWORD = re.compile(rf"(://(?!{_EXAMPLE}(?!\S))[^\s/:@]*:)\S+@")
_PARAMETER = re.compile(
    r"""(?i)((?:password|passwd|pwd|secret|token)["']?\s*[=:]\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"[^"]*"|\{(?:[^}]|\}\})*\}|[^\s&;,'")]+)"""
)
# A shorter password may occur in any word.
_LEAST_LENGTH = 8


def printable(text: str) -> str:
    """Escape control characters, direction marks and invisible characters in one line."""
    return _escaped(text, lambda one: one.encode("unicode_escape", "backslashreplace").decode())


def printable_lines(text: str) -> str:
    """Escape like printable, but keep line ends and tabs."""
    return re.sub(r"[^\n\t]+", lambda match: printable(match[0]), text)


def printable_json(value: Any, **options: Any) -> str:
    r"""Return a value as one line of JSON, with such characters as \u escapes."""
    line = json.dumps(value, ensure_ascii=False, **options)
    return _escaped(line, lambda one: json.dumps(one)[1:-1])


class LineFormatter(logging.Formatter):
    """Log formatter for a terminal; messages and tracebacks may quote other accounts."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's lines."""
        return printable_lines(super().format(record))


def log_to_stderr() -> None:
    """Log to standard error, unless logging is already configured."""
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
    """Return the line of an error that names its cause: of a traceback the last line."""
    lines = [line.strip() for line in (error or "").splitlines() if line.strip()]
    if not lines:
        return NO_ERROR
    is_traceback = TRACEBACK.search(error or "") is not None
    return (lines[-1] if is_traceback else lines[0])[:_LONGEST]


def clock_of(name: str) -> tzinfo:
    """Return a time zone; UTC if this machine does not know the server's name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def local_text(time: datetime, clock: tzinfo) -> str:
    """Return a time to the second, with the abbreviation of its zone."""
    return f"{time.astimezone(clock):%Y-%m-%d %H:%M:%S %Z}"


def without_secrets(text: str, urls: Iterable[str]) -> str:
    """Return `text` without passwords.

    Passwords are masked by position: in a URL, after `password=` and so on. Those of `urls` are
    masked anywhere, unless they are short, equal the name of the user or the database, or are part
    of the scheme, such as "postgres".
    """
    for url in urls:
        text = text.replace(url, without_password(url))
        for secret in _secrets(url):
            text = text.replace(secret, "***")
    return _PARAMETER.sub(r"\1***", _USER_AND_PASSWORD.sub(r"\1***@", text))


def _secrets(url: str) -> list[str]:
    """Return the URL's passwords, encoded and decoded, longest first; omit plain words."""
    scheme, _, rest = url.partition("://")
    address, _, query = rest.partition("?")
    user_info, _, host_and_path = address.rpartition("@")
    user, _, password = user_info.partition(":")
    pairs = [pair.partition("=") for pair in re.split("[&#]", query)]
    names = {user, host_and_path.partition("/")[2]}
    names |= {value for name, _, value in pairs if name.lower() in {"user", "dbname", "owner"}}
    found = {password} | {value for name, _, value in pairs if "password" in name.lower()}
    found |= {unquote_plus(secret) for secret in found} | {unquote(secret) for secret in found}
    secrets = found - {unquote(name) for name in names}
    long = (one for one in secrets if len(one) >= _LEAST_LENGTH and one not in scheme)
    return sorted(long, key=len, reverse=True)
