"""Hides passwords in what is shown or logged."""

import re
from collections.abc import Iterable
from urllib.parse import unquote, unquote_plus

from rowq.engines import EXAMPLE, without_password

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
