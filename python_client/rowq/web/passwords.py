"""Logins of the page that runs by itself: a file of passwords, or a proxy that has asked."""

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
"""Where a proxy on this machine asks from, and so may each program that runs there."""

_log = logging.getLogger("rowq.web")

_LINE = re.compile(r"([^:\s]+):scrypt\$([0-9a-f]{32})\$([0-9a-f]{64})")
# These take 16 MiB and some tens of milliseconds; OWASP's advice at this amount of memory.
_COST, _BLOCK, _LANES = 2**14, 8, 5
_LONGEST_HEADER = 1_024
_MOST_KNOWN = 100
# This server computes one hash at a time, in the order in which they were asked for. An address has
# few places, so that guesses from one address do not keep out the users of others.
_MOST_WAITING = 32
_MOST_OF_AN_ADDRESS = 2


class BadPasswordFile(RowqError):  # noqa: N818 - named by what it is
    """The file of passwords cannot be used."""


@dataclass(frozen=True, slots=True)
class _Secret:
    salt: bytes
    hash: bytes

    def is_of(self, password: str) -> bool:
        return hmac.compare_digest(_hash(password, self.salt), self.hash)


@dataclass(slots=True)
class _Check:
    """A password that is being checked; `is_right` is None until then, and after a failure."""

    is_done: anyio.Event = field(default_factory=anyio.Event)
    is_right: bool | None = None


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
    # A file that is there already may be open to others, or be a link to another one.
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write("".join(f"{one}\n" for one in (*kept, line)))
    new.replace(file)


class Passwords:
    """Basic authentication against a file; whoever is in it may act."""

    def __init__(self, file: Path) -> None:
        """Read the file, once; raises BadPasswordFile and OSError."""
        self._secrets = read_passwords(file)
        self._one = anyio.CapacityLimiter(1)
        self._checks: dict[bytes, _Check] = {}
        self._waiting: Counter[str] = Counter()
        # A browser sends the password with each request: what was right once is kept as a digest.
        self._key = secrets.token_bytes(32)
        self._known: dict[bytes, str] = {}
        self._nobody = _Secret(bytes(16), bytes(32))

    async def __call__(self, request: Request) -> Level:
        """Let a user in; raises HTTPException, which a browser answers by asking."""
        user = await self._user(request)
        if user is None:
            raise HTTPException(
                HTTPStatus.UNAUTHORIZED,
                "a name and a password, please",
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
        """Return whether it is the user's password; raises HTTPException when too many ask.

        The requests of a browser that come together wait for one computation.
        """
        check = self._checks.get(digest)
        if check is None:
            return await self._compute(digest, user, password, place)
        await check.is_done.wait()
        if check.is_right is None:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "the login was not checked")
        return check.is_right

    async def _compute(self, digest: bytes, user: str, password: str, place: str) -> bool:
        is_full = len(self._checks) >= _MOST_WAITING
        if is_full or self._waiting[place] >= _MOST_OF_AN_ADDRESS:
            raise HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, "too many try to log in")
        check = self._checks[digest] = _Check()
        self._waiting[place] += 1
        try:
            # An unknown user takes as long as a known one.
            secret = self._secrets.get(user, self._nobody)
            check.is_right = await to_thread.run_sync(secret.is_of, password, limiter=self._one)
            return check.is_right
        finally:
            check.is_done.set()
            del self._checks[digest]
            self._waiting[place] -= 1
            self._waiting += Counter()  # This drops the addresses with none.


class ProxyUser:
    """The login of a proxy in front, which names the user in a header; whoever it names may act."""

    def __init__(self, header: str, proxies: Collection[str] = LOOPBACK) -> None:
        """Trust this header of requests that come from a proxy; raises ValueError.

        proxies: addresses of proxies, or networks that have no other members.
        """
        self._header = header
        self._proxies = [ipaddress.ip_network(proxy) for proxy in proxies]

    async def __call__(self, request: Request) -> Level:
        """Let a user in; raises HTTPException where the header is missing, or of somebody else."""
        if not self._is_proxy(_address(request)):
            raise HTTPException(HTTPStatus.FORBIDDEN, "this address is not a proxy's")
        names = request.headers.getlist(self._header)
        if len(names) != 1 or not names[0].strip():
            raise HTTPException(HTTPStatus.FORBIDDEN, "the proxy has named no user")
        request.scope["user"] = SimpleUser(names[0].strip())
        return "act"

    def _is_proxy(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        # An IPv6 socket that takes IPv4, too, writes such an address as ::ffff:10.0.0.7.
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._proxies)


def _neighborhood(address: str) -> str:
    """Return what counts as one address: of IPv6 the network of 64 bits, all of a client's."""
    try:
        peer = ipaddress.ip_address(address)
    except ValueError:
        return address
    if peer.version == 6 and peer.ipv4_mapped is None:
        return str(ipaddress.ip_network((peer, 64), strict=False))
    return str(getattr(peer, "ipv4_mapped", None) or peer)


def _address(request: Request) -> str:
    """Return the address that a request has come from, the last one on its way."""
    return request.client.host if request.client else "nowhere"


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
