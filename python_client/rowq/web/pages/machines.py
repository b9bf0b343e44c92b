"""What programs ask for: changes as they happen, metrics and probes."""

import time
from collections.abc import AsyncIterator
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from rowq.engines.timeouts import TimedOutError
from rowq.errors import PackageMissing
from rowq.web.databases import in_thread
from rowq.web.sampler import END, REGIONS
from rowq.web.site import Site
from rowq.web.view import View
from rowq.worker.metrics.server import metrics_page

# Proxies end what is silent for long.
_SILENCE_SECONDS = 15.0
# A browser comes back at once, and is asked again who it is.
_LONGEST_SECONDS = 600.0


async def events(view: View) -> Response:
    """Tell a browser which parts of its page have changed, as server-sent events."""
    if view.sampler.is_full:
        return PlainTextResponse("too many look at once\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def stream() -> AsyncIterator[str]:
        with view.sampler.viewing(wants_claims=bool(view.asked("claims"))) as viewer:
            yield "retry: 2000\n: what has changed\n\n"
            until = time.monotonic() + _LONGEST_SECONDS
            # The page may be older than the stream: a browser that comes back has missed some.
            viewer.tell(set(REGIONS))
            while time.monotonic() < until:
                changed = await viewer.changes(_SILENCE_SECONDS)
                if END in changed:
                    break
                for region in sorted(changed):
                    yield f"event: {region}\ndata: changed\n\n"
                if not changed:
                    yield ": nothing\n\n"

    # X-Accel-Buffering tells nginx to hand on each event at once.
    return StreamingResponse(
        stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def metrics(view: View) -> Response:
    """Return the metrics of the queues, as rowq metrics does."""
    try:
        return await in_thread(lambda: _metrics(view))
    except PackageMissing as error:
        return PlainTextResponse(f"{error}\n", HTTPStatus.NOT_FOUND)


def _metrics(view: View) -> Response:
    page = metrics_page(view.site.registry(view.database))
    answer = page(view.request.headers.get("Accept", ""))
    return Response(answer.body, answer.status, media_type=answer.content_type)


async def live(_: Request) -> Response:
    """Say that the page is up."""
    return PlainTextResponse("ok\n")


async def ready(site: Site) -> Response:
    """Say whether every database was looked at; why not stands in the page."""
    for sampler in site.samplers.values():
        try:
            has_failed = (await in_thread(sampler.sample)).error is not None
        except TimedOutError:
            has_failed = True
        if has_failed:
            return PlainTextResponse(
                "the last look at a database failed\n", HTTPStatus.SERVICE_UNAVAILABLE
            )
    return PlainTextResponse("ok\n")
