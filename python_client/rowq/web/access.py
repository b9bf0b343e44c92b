"""Who may ask for what: the one place that every request goes through."""

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
"""Says what who sent a request may do; a plain function is called in a thread."""

PROBES = frozenset({"/live", "/ready"})
"""They say nothing of the queues, and whoever asks has neither a password nor a host's name."""
LEVEL = "rowq_level"
ROOT = "rowq_root"
"""Where a request's scope has the level of who sent it, and the path that this is mounted at."""

_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none';"
    " object-src 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without a referrer at all browsers send `Origin: null` with a form.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for all requests; the parameters of create_app say what each means.

    key: what forms and notices are signed with.
    """

    authorize: Authorize
    title: str
    interval: float
    read_only: bool
    hide_errors: bool
    hide_bodies: bool
    allow_hosts: Collection[str] | None
    key: bytes


class Guard:
    """Refuses what must not be answered, and sends the headers that keep a browser strict."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Stand before an application."""
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
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
        """Return what the sender may do; raises HTTPException."""
        self._check_host(request)
        if request.method not in {"GET", "HEAD", "POST"}:
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "there are GET and POST")
        if request.method == "POST":
            if self._settings.read_only:
                raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, "this page is read-only")
            _check_origin(request)
        level = await _asked(self._settings, request)
        if level not in {"look", "act"}:
            raise HTTPException(HTTPStatus.FORBIDDEN, "you may not look at this page")
        if request.method == "POST" and level != "act":
            raise HTTPException(HTTPStatus.FORBIDDEN, "you may look, and change nothing")
        return level

    def _check_host(self, request: Request) -> None:
        """Refuse a name that this page is not known by: another site's may lead to localhost."""
        allowed = self._settings.allow_hosts
        if allowed is not None and host_of(request.headers.get("Host", "")) not in allowed:
            raise HTTPException(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this page is not known by that name; rowq web --allow-host NAME adds one",
            )


async def _asked(settings: Settings, request: Request) -> Level:
    """Return what the application's own function says; it may be asynchronous."""
    authorize: Any = settings.authorize
    # An object that is called like a function is asynchronous by its method.
    if any(map(inspect.iscoroutinefunction, (authorize, authorize.__call__))):
        answer = authorize(request)
    else:
        answer = await to_thread.run_sync(authorize, request)
    level: Level = await answer if inspect.isawaitable(answer) else answer
    return level


def host_of(authority: str) -> str:
    """Return the name or address of NAME:PORT or [ADDRESS]:PORT, in lower case."""
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""


def _check_origin(request: Request) -> None:
    """Refuse what another site has sent; a program that is no browser says nothing of a site."""
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    origin = request.headers.get("Origin")
    is_own = origin is None or _place_of(origin) == request.headers.get("Host")
    if site not in {"same-origin", "none"} or not is_own:
        raise HTTPException(HTTPStatus.FORBIDDEN, "this was sent by another site")


def _place_of(address: str) -> str | None:
    """Return the name and port of an address; None for what is none."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


class Signer:
    """Signs what comes back from a browser."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.token = self._signature("form", b"")
        """Stands in each form."""

    def is_token(self, given: str) -> bool:
        """Whether a form is one of this page's; the time it takes says nothing."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def sealed(self, text: str) -> str:
        """Return a text as a part of an address that only this page can make."""
        data = text.encode("utf-8", "replace")
        return f"{base64.urlsafe_b64encode(data).decode()}.{self._signature('text', data)}"

    def opened(self, sealed: str) -> str | None:
        """Return the text of what `sealed` has made; None for anything else."""
        encoded, _, signature = sealed.rpartition(".")
        try:
            data = base64.urlsafe_b64decode(encoded.encode())
        except ValueError:
            return None
        is_own = hmac.compare_digest(signature.encode(), self._signature("text", data).encode())
        return data.decode() if is_own else None

    def _signature(self, use: str, data: bytes) -> str:
        return hmac.new(self._key, use.encode() + b"\0" + data, hashlib.sha256).hexdigest()
