"""Authorization of every request."""

import base64
import hashlib
import hmac
import inspect
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Level = Literal["no", "look", "act"]
Authorize = Callable[[Request], Level | Awaitable[Level]]
"""Returns what the sender of a request may do; a plain function is called in a thread."""

PROBES = frozenset({"/live", "/ready"})
"""Paths without authorization or a check of the host; they reveal nothing about the queues."""
LEVEL = "rowq_level"
ROOT = "rowq_root"
"""Keys of a request's scope for the sender's level, and for the path this is mounted at."""

_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers send `Origin: null` with a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Parameters of create_app; `key` signs forms and notices."""

    authorize: Authorize
    title: str
    interval: float
    read_only: bool
    hide_errors: bool
    hide_bodies: bool
    allow_hosts: Collection[str] | None
    key: bytes


class Guard:
    """Middleware that refuses unauthorized requests and adds security headers."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_strictly(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        root = scope.get("root_path", "")
        scope = {**scope, ROOT: root, LEVEL: "no"}
        if scope["path"].removeprefix(root) in PROBES and scope["method"] in {"GET", "HEAD"}:
            await self._app(scope, receive, send_strictly)
            return
        try:
            scope[LEVEL] = await self._level(Request(scope))
        except HTTPException as refusal:
            answer = PlainTextResponse(
                f"{refusal.detail}\n", refusal.status_code, headers=dict(refusal.headers or {})
            )
            await answer(scope, receive, send_strictly)
            return
        await self._app(scope, receive, send_strictly)

    async def _level(self, request: Request) -> Level:
        """Return what the sender may do; raise HTTPException."""
        self._check_host(request)
        if request.method not in {"GET", "HEAD", "POST"}:
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "method must be GET or POST")
        if request.method == "POST":
            if self._settings.read_only:
                raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "this page is read-only")
            _check_origin(request)
        level = await _authorize(self._settings, request)
        if level not in {"look", "act"}:
            raise HTTPException(HTTPStatus.FORBIDDEN, "you are not allowed to view this page")
        if request.method == "POST" and level != "act":
            raise HTTPException(HTTPStatus.FORBIDDEN, "you are not allowed to change anything")
        return level

    def _check_host(self, request: Request) -> None:
        """Refuse an unknown host name: another site's name may resolve to localhost."""
        allowed = self._settings.allow_hosts
        if allowed is not None and host_of(request.headers.get("Host", "")) not in allowed:
            raise HTTPException(
                HTTPStatus.MISDIRECTED_REQUEST,
                "unknown host name; allow it with rowq web --allow-host NAME",
            )


async def _authorize(settings: Settings, request: Request) -> Level:
    """Call the application's function, which may be asynchronous."""
    authorize: Any = settings.authorize
    # A callable object is asynchronous if its method is.
    if any(map(inspect.iscoroutinefunction, (authorize, authorize.__call__))):
        answer = authorize(request)
    else:
        answer = await to_thread.run_sync(authorize, request)
    level: Level = await answer if inspect.isawaitable(answer) else answer
    return level


def host_of(authority: str) -> str:
    """Return the host of NAME:PORT or [ADDRESS]:PORT in lower case."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def _check_origin(request: Request) -> None:
    """Refuse a request from another site; clients other than browsers send no origin."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    is_own = origin is None or _authority_of(origin) == request.headers.get("Host")
    if site not in {"same-origin", "none"} or not is_own:
        raise HTTPException(HTTPStatus.FORBIDDEN, "the request was sent by another site")


def _authority_of(address: str) -> str | None:
    """Return the host and port of a URL; None if it is invalid."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


class Signer:
    """Signs values that a browser sends back."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.token = self._signature("form", b"")
        """The hidden field of each form."""

    def is_token(self, value: str) -> bool:
        """Return in constant time whether a form is from this page."""
        return hmac.compare_digest(value.encode(), self.token.encode())

    def sealed(self, text: str) -> str:
        """Return a text, signed, for a URL."""
        data = text.encode("utf-8", "replace")
        return f"{base64.urlsafe_b64encode(data).decode()}.{self._signature('text', data)}"

    def opened(self, sealed: str) -> str | None:
        """Return the text of a value from `sealed`; None for any other value."""
        encoded, _, signature = sealed.rpartition(".")
        try:
            data = base64.urlsafe_b64decode(encoded.encode())
        except ValueError:
            return None
        is_own = hmac.compare_digest(signature.encode(), self._signature("text", data).encode())
        return data.decode() if is_own else None

    def _signature(self, use: str, data: bytes) -> str:
        return hmac.new(self._key, use.encode() + b"\0" + data, hashlib.sha256).hexdigest()
