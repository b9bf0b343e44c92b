"""The application: routes and error pages."""

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
    """Return the page as a Starlette application, to mount in another one.

    The account of the URL limits what it shows and does: rowq_monitor sees everything except
    bodies, headers and keys, rowq_admin also sees these and can make changes. It connects at the
    first request.

    Args:
        url: the database's URL, or several by name. A name has letters, digits, "_", "-" and ".".
        authorize: called with the request; returns what its sender may do: "no", "look" (as
            rowq_monitor) or "act" (everything the account may), or raises a Starlette
            HTTPException. A plain function is called in a thread. Actions are logged with the name
            of `scope["user"]`.
        title: title of each page, such as prod.
        interval: refresh interval in seconds while a page is open.
        read_only: refuse every POST, and show no buttons.
        hide_errors: show only the type of errors, because their texts may quote a message.
        hide_bodies: hide bodies, headers, keys and results.
        allow_hosts: host names of the page, at any port. Default: any host; the application checks.
        key: signs forms. Default: random. Processes that serve the same address need the same key.

    Raises:
        EngineUnknown: a URL is not supported.
        InvalidArgument: a name, a host or the interval is invalid.
    """
    urls = {"database": url} if isinstance(url, str) else dict(url)
    if not urls or not all(map(_NAME.fullmatch, urls)):
        raise InvalidArgument("a database's name must be letters, digits, _, - and ., such as prod")
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
    """Return a redirect from a path to the same path with a slash, relative for proxies."""

    async def answer(_: Request) -> Response:
        return RedirectResponse(f"{path.rpartition('/')[2]}/")

    return Route(path, answer)


def _host(name: str) -> str:
    """Return a host's name or address without a port; raise InvalidArgument."""
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        host = host_of(name)
    if not host or "/" in name:
        raise InvalidArgument(f"a host must be a name or an address, got {name!r}")
    return host


def _databases(site: Site) -> list[BaseRoute]:
    """Return the routes of each database; of a single one at the root."""
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
    """Return a handler that answers with a page, also for an error of the database."""

    async def answer(request: Request) -> Response:
        view = View(request, site, database)
        try:
            await view.prepare()
            return await page(view)
        except HTTPException as error:
            return await view.page("error.html", error.status_code, text=error.detail)
        except Exception as error:
            if not is_expected(error):
                _log.exception("cannot show %s", request.url.path)
                return await view.page("error.html", 500, text="internal error; see the log")
            status = status_of(error)
            if status == HTTPStatus.FORBIDDEN:
                database.forget_rights()
            return await view.page("error.html", status, text=database.described(error))

    return answer


def _index(site: Site) -> Callable[[Request], Any]:
    """Return a handler that lists all databases, unreachable ones included."""

    async def answer(request: Request) -> Response:
        views = [View(request, site, database) for database in site.databases.values()]
        found: dict[str, tuple[Sample | None, str | None]] = {}

        async def sample(view: View) -> None:
            found[view.database.name] = await _sample_of(view)

        async with anyio.create_task_group() as group:
            for view in views:
                group.start_soon(sample, view)
        rows = [(name, *found[name]) for name in site.databases]
        return await views[0].page("index.html", databases=rows)

    return answer


async def _sample_of(view: View) -> tuple[Sample | None, str | None]:
    """Return the last sample of a database, and why there is no newer one."""
    try:
        sample = await view.sample()
    except Exception as error:
        if is_expected(error):
            return None, view.database.described(error)
        _log.exception("cannot show %s", view.database.name)
        return None, "internal error; see the log"
    return sample, sample.error


def _ready(site: Site) -> Callable[[Request], Any]:
    async def answer(_: Request) -> Response:
        return await pages.ready(site)

    return answer


def _refused(site: Site) -> Callable[[Request, Exception], Response]:
    """Return a handler for unknown paths."""

    def answer(request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", HTTPStatus.INTERNAL_SERVER_ERROR)
        found = site.templates.get_template("lost.html")
        del request
        return HTMLResponse(found.render(text=HTTPStatus(status).phrase), status)

    return answer
