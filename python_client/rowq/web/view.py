"""One request: what it is about, who sent it, and what they may do."""

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

# A body of a megabyte is three of them in a form, where each byte is written as %XX.
_LONGEST_FORM = 16 * 1024 * 1024
_FORM_SECONDS = 30.0
# A thousand messages may be chosen at a time.
_MOST_FIELDS = 2_000


class View:
    """What a page needs to answer a request."""

    def __init__(self, request: Request, site: Site, database: Database) -> None:
        """Keep what belongs to a request; `prepare` and `read_form` find out the rest."""
        self.request = request
        self.site = site
        self.settings = site.settings
        self.database = database
        self.sampler = site.samplers[database.name]
        self.form: Mapping[str, list[str]] = {}
        self._rights: frozenset[str] = frozenset()

    async def prepare(self) -> None:
        """Find out which routines the account may call; raises what calls raise."""
        self._rights = await in_thread(self.database.rights)

    async def read_form(self) -> None:
        """Read the form; raises HTTPException where it is no form of this page's."""
        try:
            with anyio.fail_after(_FORM_SECONDS):
                async with self.site.forms:
                    pairs = await to_thread.run_sync(_pairs_in, await self._form_body())
        except TimeoutError:
            raise HTTPException(
                HTTPStatus.REQUEST_TIMEOUT,
                f"the form took longer than {_FORM_SECONDS:g} seconds",
            ) from None
        except ValueError:
            raise HTTPException(
                HTTPStatus.BAD_REQUEST, f"that is no form in UTF-8 of {_MOST_FIELDS:,} fields"
            ) from None
        form: dict[str, list[str]] = {}
        for name, value in pairs:
            form.setdefault(name, []).append(value)
        self.form = form
        if not self.site.signer.is_token(self.given("token")):
            raise HTTPException(
                HTTPStatus.FORBIDDEN, "the form is of an earlier start of this page: load it anew"
            )

    async def _form_body(self) -> bytearray:
        body = bytearray()
        async for chunk in self.request.stream():
            body += chunk
            if len(body) > _LONGEST_FORM:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the form is too large")
        return body

    def given(self, name: str) -> str:
        """Return a field of the form; an empty text where there is none."""
        return self.form.get(name, [""])[0]

    def asked(self, name: str) -> str:
        """Return a parameter of the address; an empty text where there is none."""
        return self.request.query_params.get(name, "")

    @property
    def user(self) -> str:
        """Who sent the request: the name that the login has found, else the address."""
        user = self.request.scope.get("user")
        name = getattr(user, "display_name", None) or getattr(user, "username", None)
        if name:
            return str(name)
        client = self.request.client
        return client.host if client else "somebody"

    @property
    def acts(self) -> bool:
        """Whether who sent the request may change anything at all."""
        return self.request.scope[LEVEL] == "act" and not self.settings.read_only

    def can(self, routine: str) -> bool:
        """Whether who sent the request may do what a routine does that is not for everybody."""
        return self.acts and routine in self._rights

    def can_look(self, routine: str) -> bool:
        """Whether the account may call a routine that changes nothing."""
        return routine in self._rights

    @property
    def account(self) -> str:
        """What the page is for, in a few words."""
        if not self.sees_messages:
            return "monitor"
        return "admin" if self.acts else "read-only"

    @property
    def paused(self) -> bool:
        """Whether the page does not follow what changes."""
        return bool(self.asked("paused"))

    @property
    def sees_messages(self) -> bool:
        """Whether messages are shown: not to an account or a user that only monitors."""
        return self.request.scope[LEVEL] == "act" and "get_message" in self._rights

    @property
    def sees_bodies(self) -> bool:
        """Whether bodies, headers and keys are shown."""
        return self.sees_messages and not self.settings.hide_bodies

    def error(self, text: str | None) -> str | None:
        """Return an error as it may be shown: its type alone where errors are hidden."""
        return kind_of(text) if text and self.settings.hide_errors else text

    def cause(self, text: str | None) -> str:
        """Return the line of an error that says what went wrong, as it may be shown."""
        if not text:
            return "-"
        return kind_of(text) if self.settings.hide_errors else cause_of(text)

    def cause_text(self, group: Group) -> str:
        """Return the cause of a group as it may be shown."""
        return kind_of(group.newest.last_error) if self.settings.hide_errors else group.cause

    async def run(self, work: Callable[[Queue], Result]) -> Result:
        """Return what `work` returns, which calls routines; raises what it raises."""
        return await self.database.run(work)

    async def sample(self, *, claims: bool = False) -> Sample:
        """Return what the last look at the database has found, or a new one."""
        return await in_thread(lambda: self.sampler.sample(claims=claims))

    async def stats(self, queue_name: str) -> QueueStats:
        """Return what is known of a queue; raises QueueNotFound."""
        stats = (await self.sample()).queue(queue_name)
        if stats is not None:
            return stats
        return (await self.run(lambda queue: queue.queue_stats(queue_name, max_count=MAX_COUNT)))[0]

    def link(self, path: str, **query: Any) -> str:
        """Return the address of a page of this database.

        Names stand behind a question mark: a slash or two dots in a path, even written as %2F and
        %2E, may be taken for more than they are on the way.
        """
        pairs = {name: value for name, value in query.items() if value not in {None, ""}}
        return quote(self.request.scope.get("root_path", "")) + path + _query(pairs)

    def here(self, **query: str) -> str:
        """Return the address of the page that was asked for, with other parameters."""
        pairs = {**self.request.query_params, **query}
        pairs.pop("said", None)
        path = self.request.scope["path"].removeprefix(self.request.scope.get("root_path", ""))
        return self.link(path, **pairs)

    def root(self, path: str) -> str:
        """Return the address of what belongs to no database."""
        return quote(self.request.scope[ROOT]) + path

    async def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page made of a template: in a thread, as there may be much on it."""

        def render() -> str:
            return self.site.templates.get_template(template).render(view=self, **values)

        return HTMLResponse(await to_thread.run_sync(render), status)

    def back(self, path: str, said: str, **query: Any) -> Response:
        """Return the way to a page that says what was done."""
        address = self.link(path, **query, said=self.site.signer.sealed(said))
        return RedirectResponse(address, HTTPStatus.SEE_OTHER)

    @property
    def said(self) -> str | None:
        """What an action has to say on the page that it led to."""
        sealed = self.asked("said")
        return self.site.signer.opened(sealed) if sealed else None


def _query(pairs: Mapping[str, Any]) -> str:
    return "?" + urlencode(pairs, quote_via=quote, safe="") if pairs else ""


def _pairs_in(body: bytearray) -> list[tuple[str, str]]:
    """Return the fields of a form; raises ValueError."""
    return parse_qsl(
        body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
    )
