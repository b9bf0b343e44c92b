"""Logins of rowq web: a file of passwords, or a proxy that has authenticated the user."""

import base64
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import secrets
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import anyio
from anyio import to_thread
from starlette.authentication import SimpleUser
from starlette.exceptions import HTTPException
from starlette.requests import Request

from rowq.errors import RowqError
from rowq.web.access import Level

LOOPBACK = ("127.0.0.0/8", "::1")
"""Addresses of a proxy on this machine, and of every other program there."""

_log = logging.getLogger("rowq.web")

_LINE = re.compile(r"([^:\s]+):scrypt\$([0-9a-f]{32})\$([0-9a-f]{64})")
# 16 MiB and some tens of milliseconds, as OWASP recommends for this amount of memory.
_COST, _BLOCK, _LANES = 2**14, 8, 5
_LONGEST_HEADER = 1_024
_MOST_KNOWN = 100
# The server computes one hash at a time, in order. The limit per address prevents guesses from one
# address from blocking users of others.
_MOST_WAITING = 32
_MOST_OF_AN_ADDRESS = 2


class BadPasswordFile(RowqError):  # noqa: N818 - named by what it is
    """The file of passwords is invalid."""


@dataclass(frozen=True, slots=True)
class _Secret:
    salt: bytes
    hash: bytes

    def is_of(self, password: str) -> bool:
        return hmac.compare_digest(_hash(password, self.salt), self.hash)


@dataclass(slots=True)
class _Check:
    """A running check of a password; `is_right` is None until its end, and after a failure."""

    is_done: anyio.Event = field(default_factory=anyio.Event)
    is_right: bool | None = None


def password_line(user: str, password: str) -> str:
    """Return a user's line of a file of passwords; raise BadPasswordFile for an invalid name."""
    salt = secrets.token_bytes(16)
    line = f"{user}:scrypt${salt.hex()}${_hash(password, salt).hex()}"
    if not _LINE.fullmatch(line):
        raise BadPasswordFile(f"a user name must not contain blanks or colons, got {user!r}")
    return line


def read_passwords(file: Path) -> Mapping[str, _Secret]:
    """Return the secrets of a file by user; raise BadPasswordFile or OSError."""
    found: dict[str, _Secret] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise BadPasswordFile(
                f"{file}, line {number}: expected USER:scrypt$SALT$HASH, as written by"
                " rowq web --set-password USER"
            )
        found[match[1]] = _Secret(bytes.fromhex(match[2]), bytes.fromhex(match[3]))
    if not found:
        raise BadPasswordFile(f"{file} has no user; add one with rowq web --set-password USER")
    return found


def write_password(file: Path, user: str, password: str) -> None:
    """Set a user's password in a file that only its owner can read; raise BadPasswordFile."""
    line = password_line(user, password)
    before = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [other for other in before if not other.startswith(f"{user}:")]
    new = file.with_name(f".{file.name}.new")
    # An existing file may be readable by others, or be a link.
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write("".join(f"{one}\n" for one in (*kept, line)))
    new.replace(file)


class Passwords:
    """Basic authentication against a file, which is read once; its users may act."""

    def __init__(self, file: Path) -> None:
        self._secrets = read_passwords(file)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._checks: dict[bytes, _Check] = {}
        self._waiting: Counter[str] = Counter()
        # A browser sends the password with each request: cache correct ones as digests.
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}
        self._unknown = _Secret(bytes(16), bytes(32))

    async def __call__(self, request: Request) -> Level:
        """Authenticate a user; raise HTTPException, on which a browser asks for a password."""
        user = await self._user(request)
        if user is None:
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "login required",
                {"WWW-Authenticate": 'Basic realm="rowq", charset="UTF-8"'},
            )
        request.scope["user"] = SimpleUser(user)
        return "act"

    async def _user(self, request: Request) -> str | None:
        header = request.headers.get("Authorization", "")
        if len(header) > _LONGEST_HEADER:
            return None
        digest = hmac.digest(self._key, header.encode(), "sha256")
        if digest in self._known:
            return self._known[digest]
        user, password = _read_basic(header)
        if user is None:
            return None
        if not await self._is_right(digest, user, password, _neighborhood(_address(request))):
            _log.warning("login of %r from %s: refused", user, _address(request))
            return None
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = user
        return user

    async def _is_right(self, digest: bytes, user: str, password: str, place: str) -> bool:
        """Return whether it is the user's password; raise HTTPException if too many wait.

        Simultaneous requests of a browser share one computation.
        """
        check = self._checks.get(digest)
        if check is None:
            return await self._compute(digest, user, password, place)
        await check.is_done.wait()
        if check.is_right is None:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the login failed; retry")
        return check.is_right

    async def _compute(self, digest: bytes, user: str, password: str, place: str) -> bool:
        is_full = len(self._checks) >= _MOST_WAITING
        if is_full or self._waiting[place] >= _MOST_OF_AN_ADDRESS:
            raise HTTPException(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many login attempts; retry later"
            )
        check = self._checks[digest] = _Check()
        self._waiting[place] += 1
        try:
            # An unknown user takes as long as a known one.
            secret = self._secrets.get(user, self._unknown)
            check.is_right = await to_thread.run_sync(
                secret.is_of, password, limiter=self._one_at_a_time
            )
            return check.is_right
        finally:
            check.is_done.set()
            del self._checks[digest]
            self._waiting[place] -= 1
            self._waiting += Counter()  # Remove addresses with 0.


class ProxyUser:
    """Login by a proxy, which passes the user's name in a header; this user may act.

    The header is trusted only from `proxies`: their addresses, or networks with no other members.
    """

    def __init__(self, header: str, proxies: Collection[str] = LOOPBACK) -> None:
        self._header = header
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]

    async def __call__(self, request: Request) -> Level:
        """Return the user's level; raise HTTPException if the header is missing or not trusted."""
        if not self._is_proxy(_address(request)):
            raise HTTPException(HTTPStatus.FORBIDDEN, "this address is not a trusted proxy")
        names = request.headers.getlist(self._header)
        if len(names) != 1 or not names[0].strip():
            raise HTTPException(HTTPStatus.FORBIDDEN, "the proxy did not pass a user name")
        request.scope["user"] = SimpleUser(names[0].strip())
        return "act"

    def _is_proxy(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        # A dual-stack socket returns an IPv4 address as ::ffff:10.0.0.7.
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._proxies)


def _neighborhood(address: str) -> str:
    """Return what counts as one address: of IPv6 the /64 network of a client."""
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return address
    if peer.version == 6 and peer.ipv4_mapped is None:
        return str(ipaddress.ip_network((peer, 64), strict=False))
    return str(getattr(peer, "ipv4_mapped", None) or peer)


def _address(request: Request) -> str:
    """Return the peer's address of a request."""
    return request.client.host if request.client else "unknown"


def _read_basic(header: str) -> tuple[str | None, str]:
    kind, _, encoded = header.partition(" ")
    if kind.lower() != "basic":
        return None, ""
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return None, ""
    user, colon, password = text.partition(":")
    return (user if colon else None), password


def _hash(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode(), salt=salt, n=_COST, r=_BLOCK, p=_LANES, dklen=32, maxmem=64 * 1024 * 1024
    )
