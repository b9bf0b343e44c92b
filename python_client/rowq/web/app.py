"""Puts the page together: what is asked for at which address, and what an error looks like."""

import ipaddress
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles

from rowq.errors import InvalidArgument
from rowq.web import pages
from rowq.web.access import Authorize, Guard, Settings, host_of
from rowq.web.actions import ACTIONS
from rowq.web.batches import batch
from rowq.web.databases import Database, is_expected, status_of
from rowq.web.pages import examine
from rowq.web.sampler import Sample
from rowq.web.site import Site
from rowq.web.view import View

_log = logging.getLogger("rowq.web")
_HERE = Path(__file__).parent
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

Page = Callable[[View], Awaitable[Response]]

_PAGES: Mapping[str, Page] = {
    "/": pages.overview,
    "/queue": pages.queue,
    "/queue/points": pages.points,
    "/queue/find": pages.find,
    "/dead": pages.dead,
    "/message": pages.message,
    "/message/body": pages.body_file,
    "/workers": pages.workers,
    "/schedules": pages.schedules,
    "/schedule": pages.schedule,
    "/topics": pages.topics,
    "/health": pages.health,
    "/parts/queues": pages.queues_part,
    "/parts/health": pages.health_part,
    "/parts/queue": pages.queue_part,
    "/parts/lists": pages.lists_part,
    "/parts/workers": pages.workers_part,
    "/events": pages.events,
    "/metrics": pages.metrics,
}


def create_app(
    url: str | Mapping[str, str],
    *,
    authorize: Authorize,
    title: str = "rowq",
    interval: float = 2.0,
    read_only: bool = False,
    hide_errors: bool = False,
    hide_bodies: bool = False,
    allow_hosts: Collection[str] | None = None,
    key: bytes | None = None,
) -> Starlette:
    """Return the page as an application of Starlette's, to be mounted in another one.

    What it shows, and the buttons that it has, are what the account of the URL may: a member of
    rowq_monitor sees no body, header or key of a message, and changes nothing; one of rowq_admin
    does both. It connects when it is first asked.

    Args:
        url: the database's URL, or several by the names that the page calls them: letters, digits,
            "_", "-" and ".".
        authorize: what the sender of a request may do: called with the request, it returns "no",
            "look" (what rowq_monitor may) or "act" (all that the account may), or raises an
            HTTPException of Starlette's. A plain function is called in a thread. Who acts is
            logged by the name that `scope["user"]` has.
        title: stands at the head of each page, such as prod.
        interval: seconds between two looks at the database while somebody looks at a page.
        read_only: whether every POST is refused, and no button shown.
        hide_errors: whether of an error its type alone is shown: its text may quote a message.
        hide_bodies: whether bodies, headers, keys and results are hidden from everybody.
        allow_hosts: names that the page may be called by, at any port; None, where the application
            sees to that, is any.
        key: what forms are signed with, random unless given: several processes that answer for the
            same address need the same.

    Raises:
        EngineUnknown: a URL is none of rowq's.
        InvalidArgument: a name, a host or the interval is not as it should be.
    """
    urls = {"database": url} if isinstance(url, str) else dict(url)
    if not urls or not all(map(_NAME.fullmatch, urls)):
        raise InvalidArgument("a database's name is letters, digits, _, - and ., as in prod=URL")
    if not interval > 0:
        raise InvalidArgument(f"interval must be more than 0 seconds, got {interval:g}")
    settings = Settings(
        authorize=authorize,
        title=title,
        interval=interval,
        read_only=read_only,
        hide_errors=hide_errors,
        hide_bodies=hide_bodies,
        allow_hosts=None if allow_hosts is None else {_host(name) for name in allow_hosts},
        key=secrets.token_bytes(32) if key is None else key,
    )
    site = Site(urls, settings)
    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=_HERE / "static")),
            Route("/live", pages.live),
            Route("/ready", _ready(site)),
            *_databases(site),
        ],
        middleware=[Middleware(Guard, settings=settings)],
        exception_handlers={HTTPException: _refused(site)},
    )
    app.router.redirect_slashes = False
    app.state.site = site
    return app


def to_folder(path: str) -> Route:
    """Return what leads from a path to the same one with a slash, whatever a proxy calls it."""

    async def answer(_: Request) -> Response:
        return RedirectResponse(f"{path.rpartition('/')[2]}/")

    return Route(path, answer)


def _host(name: str) -> str:
    """Return a host's name or address without a port; raises InvalidArgument."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        host = host_of(name)
    if not host or "/" in name:
        raise InvalidArgument(f"a host is a name or an address, got {name!r}")
    return host


def _databases(site: Site) -> list[BaseRoute]:
    """Return what there is of each database: at the root where there is one only."""
    databases = list(site.databases.values())
    if len(databases) == 1:
        return _routes(site, databases[0])
    below: list[BaseRoute] = []
    for database in databases:
        path = f"/db/{database.name}"
        pages = Router(_routes(site, database), redirect_slashes=False)
        below += [to_folder(path), Mount(path, pages)]
    return [Route("/", _index(site)), *below]


def _routes(site: Site, database: Database) -> list[BaseRoute]:
    looks = [Route(path, _answer(site, database, page)) for path, page in _PAGES.items()]
    acts = [
        Route(path, _answer(site, database, page), methods=["POST"])
        for path, page in {**ACTIONS, "/batch": batch, "/health/examine": examine}.items()
    ]
    return [*looks, *acts]


def _answer(site: Site, database: Database, page: Page) -> Callable[[Request], Any]:
    """Return what answers a request with a page; an error of the database is a page, too."""

    async def answer(request: Request) -> Response:
        view = View(request, site, database)
        try:
            await view.prepare()
            return await page(view)
        except HTTPException as error:
            return await view.page("error.html", error.status_code, text=error.detail)
        except Exception as error:
            if not is_expected(error):
                _log.exception("%s cannot be shown", request.url.path)
                return await view.page("error.html", 500, text="failed; the log says why")
            status = status_of(error)
            if status == HTTPStatus.FORBIDDEN:
                database.forget_rights()
            return await view.page("error.html", status, text=database.described(error))

    return answer


def _index(site: Site) -> Callable[[Request], Any]:
    """Return what shows all databases, those too that cannot be looked at."""

    async def answer(request: Request) -> Response:
        views = [View(request, site, database) for database in site.databases.values()]
        found: dict[str, tuple[Sample | None, str | None]] = {}

        async def look(view: View) -> None:
            found[view.database.name] = await _looked_at(view)

        async with anyio.create_task_group() as group:
            for view in views:
                group.start_soon(look, view)
        rows = [(name, *found[name]) for name in site.databases]
        return await views[0].page("index.html", databases=rows)

    return answer


async def _looked_at(view: View) -> tuple[Sample | None, str | None]:
    """Return what was found in a database, and why nothing newer was."""
    try:
        sample = await view.sample()
    except Exception as error:
        if is_expected(error):
            return None, view.database.described(error)
        _log.exception("%s cannot be shown", view.database.name)
        return None, "failed; the log says why"
    return sample, sample.error


def _ready(site: Site) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Response:
        return await pages.ready(site)

    return answer


def _refused(site: Site) -> Callable[[Request, Exception], Response]:
    """Return what answers where no page is."""

    def answer(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        found = site.templates.get_template("lost.html")
        del request
        return HTMLResponse(found.render(text=HTTPStatus(status).phrase), status)

    return answer
