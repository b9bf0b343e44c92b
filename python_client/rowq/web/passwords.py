"""Logins of the page that runs by itself: a file of passwords, or a proxy that has asked."""

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from starlette.authentication import SimpleUser
from starlette.exceptions import HTTPException
from starlette.requests import Request

from rowq.errors import RowqError
from rowq.web.settings import Level

_LINE = re.compile(r"([^:\s]+):scrypt\$([0-9a-f]{32})\$([0-9a-f]{64})")
# These take 16 MiB and some tens of milliseconds; OWASP's advice at this amount of memory.
_COST, _BLOCK, _LANES = 2**14, 8, 5
_LONGEST_HEADER = 1_024
_MOST_KNOWN = 100
_PATIENCE_SECONDS = 2.0


class BadPasswordFile(RowqError):  # noqa: N818 - named by what it is
    """The file of passwords cannot be used."""


@dataclass(frozen=True, slots=True)
class _Secret:
    salt: bytes
    hash: bytes

    def is_of(self, password: str) -> bool:
        return hmac.compare_digest(_hash(password, self.salt), self.hash)


def password_line(user: str, password: str) -> str:
    """Return the line of a file of passwords for a user; raises BadPasswordFile for a bad name."""
    salt = secrets.token_bytes(16)
    line = f"{user}:scrypt${salt.hex()}${_hash(password, salt).hex()}"
    if not _LINE.fullmatch(line):
        raise BadPasswordFile("a user's name has neither blanks nor colons")
    return line


def read_passwords(file: Path) -> Mapping[str, _Secret]:
    """Return the secrets of a file by user; raises BadPasswordFile and OSError."""
    found: dict[str, _Secret] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadPasswordFile(
                f"{file}, line {number}: that is not USER:scrypt$SALT$HASH, as rowq web"
                " --set-password USER writes it"
            )
        found[match[1]] = _Secret(bytes.fromhex(match[2]), bytes.fromhex(match[3]))
    if not found:
        raise BadPasswordFile(f"{file} has no user: add one with rowq web --set-password USER")
    return found


def write_password(file: Path, user: str, password: str) -> None:
    """Give a user a password in a file that only its owner may read; the other users stay.

    Raises BadPasswordFile and OSError.
    """
    line = password_line(user, password)
    before = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [other for other in before if not other.startswith(f"{user}:")]
    new = file.with_name(f".{file.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write("".join(f"{one}\n" for one in (*kept, line)))
    new.replace(file)


class Passwords:
    """Basic authentication against a file; whoever is in it may act."""

    def __init__(self, file: Path) -> None:
        """Read the file; raises BadPasswordFile and OSError."""
        self._secrets = read_passwords(file)
        # To guess costs whoever guesses, and this server no more than one computation at a time.
        self._one = threading.Lock()
        # A browser sends the password with each request: what was right once is kept as a digest.
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}
        self._nobody = _Secret(bytes(16), bytes(32))

    def __call__(self, request: Request) -> Level:
        """Let a user in; raises HTTPException, which a browser answers by asking."""
        header = request.headers.get("Authorization", "")
        user = self._user(header)
        if user is None:
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "a name and a password, please",
                {"WWW-Authenticate": 'Basic realm="rowq", charset="UTF-8"'},
            )
        request.scope["user"] = SimpleUser(user)
        return "act"

    def _user(self, header: str) -> str | None:
        if len(header) > _LONGEST_HEADER:
            return None
        digest = hmac.digest(self._key, header.encode(), "sha256")
        if digest in self._known:
            return self._known[digest]
        user, password = _read_basic(header)
        if user is None:
            return None
        if not self._one.acquire(timeout=_PATIENCE_SECONDS):
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "too many try to log in")
        try:
            # Who is unknown takes as long as who is known.
            if not self._secrets.get(user, self._nobody).is_of(password):
                return None
        finally:
            self._one.release()
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = user
        return user


class ProxyUser:
    """The login of a proxy in front, which names the user in a header; whoever it names may act."""

    def __init__(self, header: str) -> None:
        """Trust this header."""
        self._header = header

    def __call__(self, request: Request) -> Level:
        """Let a user in; raises HTTPException where the header is missing."""
        names = request.headers.getlist(self._header)
        if len(names) != 1 or not names[0].strip():
            raise HTTPException(HTTPStatus.FORBIDDEN, "the proxy has named no user")
        request.scope["user"] = SimpleUser(names[0].strip())
        return "act"


def _read_basic(header: str) -> tuple[str | None, str]:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None, ""
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None, ""
    user, colon, password = text.partition(":")
    return (user if colon else None), password


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES, dklen=32, maxmem=64 * 1024 * 1024
    )
