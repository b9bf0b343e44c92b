"""One request: its database, its sender and the sender's rights."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rowq.messages import QueueStats
from rowq.queue import Queue
from rowq.tools.terminal import cause_of
from rowq.web.access import LEVEL, ROOT
from rowq.web.causes import Group, kind_of
from rowq.web.databases import Database, in_thread
from rowq.web.sampler import MAX_COUNT, Sample
from rowq.web.site import Site

Result = TypeVar("Result")

# In a form, a byte may be encoded as %XX, so a body needs up to three times its size.
_LONGEST_FORM = 16 * 1024 * 1024
_FORM_SECONDS = 30.0
# 1000 messages may be chosen at a time.
_MOST_FIELDS = 2_000


class View:
    """The context of a request; `prepare` and `read_form` complete it."""

    def __init__(self, request: Request, site: Site, database: Database) -> None:
        self.request = request
        self.site = site
        self.settings = site.settings
        self.database = database
        self.sampler = site.samplers[database.name]
        self.form: Mapping[str, list[str]] = {}
        self._rights: frozenset[str] = frozenset()

    async def prepare(self) -> None:
        """Read which routines the account can call."""
        self._rights = await in_thread(self.database.rights)

    async def read_form(self) -> None:
        """Read the form; raise HTTPException unless it is a form of this page."""
        try:
            with anyio.fail_after(_FORM_SECONDS):
                async with self.site.forms:
                    pairs = await to_thread.run_sync(_pairs_in, await self._form_body())
        except TimeoutError:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the form was not received within {_FORM_SECONDS:g} seconds",
            ) from None
        except ValueError:
            raise HTTPException(
                HTTPStatus.BAD_REQUEST,
                f"the form is not UTF-8, or has more than {_MOST_FIELDS:,} fields",
            ) from None
        form: dict[str, list[str]] = {}
        for name, value in pairs:
            form.setdefault(name, []).append(value)
        self.form = form
        if not self.site.signer.is_token(self.field("token")):
            raise HTTPException(HTTPStatus.FORBIDDEN, "this form has expired; reload the page")

    async def _form_body(self) -> bytearray:
        body = bytearray()
        async for chunk in self.request.stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the form is too large")
        return body

    def field(self, name: str) -> str:
        """Return a field of the form; empty if missing."""
        return self.form.get(name, [""])[0]

    def parameter(self, name: str) -> str:
        """Return a query parameter; empty if missing."""
        return self.request.query_params.get(name, "")

    @property
    def user(self) -> str:
        """The user's name from the login, else the client's address."""
        user = self.request.scope.get("user")
        name = getattr(user, "display_name", None) or getattr(user, "username", None)
        if name:
            return str(name)
        client = self.request.client
        return client.host if client else "unknown"

    @property
    def acts(self) -> bool:
        """Whether the user may make changes."""
        return self.request.scope[LEVEL] == "act" and not self.settings.read_only

    def can(self, routine: str) -> bool:
        """Return whether the user may call a routine that makes changes."""
        return self.acts and routine in self._rights

    def can_look(self, routine: str) -> bool:
        """Return whether the account can call a read-only routine."""
        return routine in self._rights

    @property
    def account(self) -> str:
        """The kind of access."""
        if not self.sees_messages:
            return "monitor"
        return "admin" if self.acts else "read-only"

    @property
    def paused(self) -> bool:
        """Whether the page does not refresh."""
        return bool(self.parameter("paused"))

    @property
    def sees_messages(self) -> bool:
        """Whether messages are shown: not to an account or user that only monitors."""
        return self.request.scope[LEVEL] == "act" and "get_message" in self._rights

    @property
    def sees_bodies(self) -> bool:
        """Whether bodies, headers and keys are shown."""
        return self.sees_messages and not self.settings.hide_bodies

    def error(self, text: str | None) -> str | None:
        """Return an error to show: only its type if errors are hidden."""
        return kind_of(text) if text and self.settings.hide_errors else text

    def cause(self, text: str | None) -> str:
        """Return the line of an error with its cause, to show."""
        if not text:
            return "-"
        return kind_of(text) if self.settings.hide_errors else cause_of(text)

    def cause_text(self, group: Group) -> str:
        """Return the cause of a group, to show."""
        return kind_of(group.newest.last_error) if self.settings.hide_errors else group.cause

    async def run(self, work: Callable[[Queue], Result]) -> Result:
        """Call `work`, which calls routines, in a thread."""
        return await self.database.run(work)

    async def sample(self, *, claims: bool = False) -> Sample:
        """Return the last sample of the database, or a new one."""
        return await in_thread(lambda: self.sampler.sample(claims=claims))

    async def stats(self, queue_name: str) -> QueueStats:
        """Return a queue's stats; raise QueueNotFound."""
        stats = (await self.sample()).queue(queue_name)
        if stats is not None:
            return stats
        return (await self.run(lambda queue: queue.queue_stats(queue_name, max_count=MAX_COUNT)))[0]

    def link(self, path: str, **query: Any) -> str:
        """Return the URL of a page of this database.

        Names are in the query: proxies may interpret a slash or dots in a path, even as %2F and
        %2E.
        """
        pairs = {name: value for name, value in query.items() if value not in {None, ""}}
        return quote(self.request.scope.get("root_path", "")) + path + _query(pairs)

    def here(self, **query: str) -> str:
        """Return the URL of the requested page with other parameters."""
        pairs = {**self.request.query_params, **query}
        pairs.pop("said", None)
        path = self.request.scope["path"].removeprefix(self.request.scope.get("root_path", ""))
        return self.link(path, **pairs)

    def root(self, path: str) -> str:
        """Return the URL of a path outside the databases."""
        return quote(self.request.scope[ROOT]) + path

    async def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a template in a thread, because the page may be large."""

        def render() -> str:
            return self.site.templates.get_template(template).render(view=self, **values)

        return HTMLResponse(await to_thread.run_sync(render), status)

    def back(self, path: str, said: str, **query: Any) -> Response:
        """Return a redirect to a page that shows the result of an action."""
        address = self.link(path, **query, said=self.site.signer.sealed(said))
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    @property
    def said(self) -> str | None:
        """The result of an action, from the redirect."""
        sealed = self.parameter("said")
        return self.site.signer.opened(sealed) if sealed else None


def _query(pairs: Mapping[str, Any]) -> str:
    return "?" + urlencode(pairs, quote_via=quote, safe="") if pairs else ""


def _pairs_in(body: bytearray) -> list[tuple[str, str]]:
    """Return the fields of a form; raise ValueError."""
    return parse_qsl(
        body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
    )
