"""The pages of a database, and events, metrics and probes for programs."""

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from rowq.engines import is_driver_error
from rowq.engines.sockets import TimedOutError
from rowq.errors import PackageMissing, ScheduleNotFound
from rowq.messages import (
    LAST_ID,
    Attempt,
    Claim,
    DeadMessage,
    MessageDetails,
    MessageResult,
    QueueStats,
    Reason,
    UnreadableHeaders,
    WorkerReport,
)
from rowq.queue import Queue
from rowq.tools.trace_headers import TRACEPARENT, trace_of
from rowq.web.bodies import as_command, file_of, shown_body
from rowq.web.causes import Group, group_dead, in_group
from rowq.web.databases import Database, in_thread
from rowq.web.sampler import END, MAX_CLAIMS, REGIONS, Following, Sample
from rowq.web.site import Site
from rowq.web.view import View
from rowq.worker.metrics.server import metrics_page

_NO_SETTINGS = {
    "queue_name", "is_paused", "ready", "delayed", "leased", "dead", "blocked",
    "oldest_ready_seconds",
}  # fmt: skip
SETTINGS = tuple(field.name for field in fields(QueueStats) if field.name not in _NO_SETTINGS)
ALTERED = {"group_after_dead": str} | {
    field.name: float if "float" in str(field.type) else int
    for field in fields(QueueStats)
    if field.name in SETTINGS and field.name != "group_after_dead"
}
"""Setting -> type of its values."""

_TREND = 60
"""Number of samples in a queue's trend."""

_MOST_READ = 2_000
_SHOWN = 100

ENDED = ("completed", "cancelled", "expired")

# Proxies close a silent connection.
_SILENCE_SECONDS = 15.0
# The browser reconnects at once, and is authorized again.
_LONGEST_SECONDS = 600.0

_log = logging.getLogger("rowq.web")


async def workers(view: View) -> Response:
    """Show the workers and their claims."""
    return await _workers(view, "workers.html")


async def workers_part(view: View) -> Response:
    """Show the part of that page that changes."""
    return await _workers(view, "parts/workers.html")


async def _workers(view: View, template: str) -> Response:
    sample = await view.sample(claims=True)
    held = sorted(sample.claims, key=_worker)
    leases = {stats.queue_name: stats.lease_seconds for stats in sample.queues}
    return await view.page(
        template,
        sample=sample,
        reports=seen(sample),
        workers=[(name, list(claims)) for name, claims in groupby(held, key=_worker)],
        leases=leases,
        is_cut=len(sample.claims) >= MAX_CLAIMS,
    )


def seen(sample: Sample, queue_name: str | None = None) -> list[WorkerReport]:
    """Return the workers of one queue or all queues by name, with their present age."""
    since = sample.workers_at and (datetime.now(UTC) - sample.workers_at).total_seconds()
    found = [
        replace(worker, last_seen_seconds=worker.last_seen_seconds + (since or 0.0))
        for worker in sample.workers
        if queue_name in (None, worker.queue_name)
    ]
    return sorted(found, key=lambda worker: (worker.worker_name or "", worker.queue_name))


def _worker(claim: Claim) -> str:
    return claim.worker_name or ""


async def schedules(view: View) -> Response:
    """Show the schedules of one queue or all queues."""
    name = view.parameter("queue") or None
    found = await view.run(lambda calls: calls.list_schedules(name))
    return await view.page("schedules.html", name=name, schedules=found)


async def schedule(view: View) -> Response:
    """Show a schedule and its next runs; raise ScheduleNotFound."""
    queue_name, name = view.parameter("queue"), view.parameter("name")
    listed = await view.run(lambda calls: calls.list_schedules(queue_name))
    found = next((one for one in listed if one.schedule_name == name), None)
    if found is None:
        raise ScheduleNotFound(f'RQ702 schedule_not_found: schedule "{name}" does not exist')
    one = found
    ticks: list[Any] = []
    if not one.is_paused and one.next_run_at is not None:
        ticks = await view.run(
            lambda calls: calls.next_ticks(
                one.cron, interval_seconds=one.interval_seconds, time_zone=one.time_zone
            )
        )
    if one.interval_seconds is not None:
        # The ticks of an interval depend on the schedule's start.
        ticks = []
    return await view.page("schedule.html", schedule=one, ticks=ticks)


async def topics(view: View) -> Response:
    """Show which queues are bound to which topics."""
    found = await view.run(lambda calls: calls.list_topics(None))
    queues = [stats.queue_name for stats in (await view.sample()).queues]
    return await view.page("topics.html", bindings=found, queues=queues)


async def health(view: View) -> Response:
    """Show the health checks."""
    return await health_page(view, [], "")


async def health_page(view: View, found: list[Any], why_not: str) -> Response:
    """Return the page of health with the checks of rowq doctor, or why it could not run."""
    checks = await view.run(lambda calls: calls.health())
    version = await view.run(lambda calls: calls.version())
    return await view.page(
        "health.html",
        checks=checks,
        version=version,
        found=found,
        why_not=why_not,
    )


async def health_part(view: View) -> Response:
    """Show the failed health checks of the overview."""
    return await view.page("parts/health.html", sample=await view.sample())


async def queue(view: View) -> Response:
    """Show a queue."""
    name = view.parameter("name")
    stats = await view.stats(name)
    sample = await view.sample(claims=True)
    return await view.page(
        "queue.html",
        name=name,
        stats=stats,
        settings=SETTINGS,
        sample=sample,
        reports=seen(sample, name),
        following=await _following(view, name),
    )


async def queue_part(view: View) -> Response:
    """Show the counts of a queue."""
    name = view.parameter("name")
    sample = await view.sample()
    return await view.page(
        "parts/queue.html", name=name, stats=await view.stats(name), sample=sample
    )


async def lists_part(view: View) -> Response:
    """Show the next messages, the claims and the workers of a queue."""
    name = view.parameter("name")
    await view.stats(name)
    following = await _following(view, name)
    sample = await view.sample()
    return await view.page(
        "parts/lists.html",
        name=name,
        sample=sample,
        reports=seen(sample, name),
        following=following,
    )


async def points(view: View) -> Response:
    """Return the data of a queue's charts: a list of times, and a list for each line."""
    try:
        after = float(view.parameter("after") or 0)
    except ValueError:
        after = 0.0
    await view.sample()
    found = view.sampler.points(view.parameter("name"), after)
    return JSONResponse([list(line) for line in zip(*found, strict=True)])


async def find(view: View) -> Response:
    """Redirect to the message with an id or a dedup key."""
    name, key, number = view.parameter("name"), view.parameter("key"), view.parameter("id")
    is_id = number.isascii() and number.isdecimal() and len(number) < 19
    message_id = int(number) if is_id else 0
    if key and view.sees_bodies:
        found = await view.run(lambda calls: calls.find_message(name, key))
        message_id = found.message_id if found else 0
    return RedirectResponse(view.link("/message", queue=name, id=message_id), 303)


async def _following(view: View, name: str) -> Following:
    has_ready = view.sees_messages and view.can_look("peek")
    return await in_thread(lambda: view.sampler.following(name, has_ready=has_ready))


async def overview(view: View) -> Response:
    """Show all queues."""
    return await _shown(view, "overview.html")


async def queues_part(view: View) -> Response:
    """Show the part of the overview that changes."""
    return await _shown(view, "parts/queues.html")


async def _shown(view: View, template: str) -> Response:
    sample = await view.sample()
    return await view.page(template, sample=sample, trend=view.sampler.trend(_TREND))


async def dead(view: View) -> Response:
    """Show the newest dead messages, or those before an id.

    Filters: `cause` selects a group, `type` a message type, `error` a text in the error, among the
    messages read.
    """
    name, cause = view.parameter("queue"), view.parameter("cause")
    wanted_type, wanted = view.parameter("type"), view.parameter("error")
    before = _number(view.parameter("before"))
    stats = await view.stats(name)
    found = await view.run(lambda calls: _found(calls, name, before, wanted_type))
    matched = await in_thread(lambda: _with_error(view, found, wanted))
    groups, matching = await in_thread(lambda: _grouped(matched, cause))
    shown = matching[:_SHOWN]
    is_more = len(matching) > _SHOWN or len(found) == _MOST_READ
    following = (shown or found)[-1].message_id if is_more else None
    return await view.page(
        "dead.html",
        name=name,
        stats=stats,
        groups=groups,
        group=next((group for group in groups if group.key == cause), None),
        cause=cause,
        type=wanted_type,
        error=wanted,
        shown=shown,
        is_newest=before == LAST_ID,
        following=following,
        read=len(found),
        matched=len(matched),
        is_all=len(found) < _MOST_READ and before == LAST_ID and not (wanted_type or wanted),
    )


def _found(calls: Queue, name: str, before: int, message_type: str) -> list[DeadMessage]:
    return calls.list_dead(
        name,
        max_messages=_MOST_READ,
        before_message_id=before,
        message_type=message_type or None,
    )


def _with_error(view: View, found: list[DeadMessage], wanted: str) -> list[DeadMessage]:
    """Filter messages by the error as shown: a filter must not reveal a hidden error."""
    text = wanted.lower()
    return [one for one in found if text in (view.error(one.last_error) or "").lower()]


def _grouped(found: list[DeadMessage], cause: str) -> tuple[list[Group], list[DeadMessage]]:
    """Return all groups, and the messages of one group or all."""
    is_meant = in_group(cause)
    return group_dead(found), [one for one in found if not cause or is_meant(one)]


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else LAST_ID
    return min(max(number, 1), LAST_ID)


async def message(view: View) -> Response:
    """Show a message."""
    name, details = view.parameter("queue"), await _details(view)
    reasons, attempts, result = await view.run(lambda calls: _more(calls, view, name, details))
    body = command = None
    if view.sees_bodies:
        form = view.parameter("form")
        body = await in_thread(lambda: shown_body(details, form))
        command = await in_thread(lambda: as_command(name, details))
    return await view.page(
        "message.html",
        name=name,
        details=details,
        reasons=reasons,
        attempts=attempts,
        result=result,
        body=body,
        command=command,
        trace_id=trace_of(details.headers).get(TRACEPARENT, "--").split("-")[1],
        schedule=_schedule_of(details) if view.sees_bodies else None,
        ended=details.state in ENDED,
    )


async def body_file(view: View) -> Response:
    """Return a body as a file that browsers do not display."""
    details = await _details(view)
    if not view.sees_bodies:
        raise HTTPException(HTTPStatus.FORBIDDEN, "bodies are hidden")
    kind = "bin" if details.body_binary is not None else "txt"
    name = quote(f"{view.parameter('queue')}-{details.message_id}.{kind}", safe="")
    return Response(
        file_of(details),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


async def _details(view: View) -> MessageDetails:
    name, number = view.parameter("queue"), view.parameter("id")
    if not view.sees_messages:
        raise HTTPException(
            HTTPStatus.FORBIDDEN,
            "viewing messages requires the role rowq_admin and permission to make changes",
        )
    is_id = number.isascii() and number.isdecimal() and len(number) < 19
    found = await view.run(lambda calls: calls.get_message(name, int(number) if is_id else 0))
    if found is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"message {number} not found: it never existed, or it has ended and was not kept",
        )
    return found


def _more(
    calls: Queue, view: View, name: str, details: MessageDetails
) -> tuple[list[Reason], list[Attempt], MessageResult | None]:
    number = details.message_id
    is_waiting = view.can_look("explain_message") and details.state not in ENDED
    reasons = calls.explain_message(name, number) if is_waiting else []
    attempts = calls.get_history(name, number) if view.can_look("get_history") else []
    has_result = view.can_look("get_result") and details.state in (*ENDED, "dead")
    return reasons, attempts, calls.get_result(name, number) if has_result else None


def _schedule_of(details: MessageDetails) -> str | None:
    """Return the schedule that enqueued a message."""
    headers = details.headers
    if not headers or isinstance(headers, UnreadableHeaders) or "tick" not in headers:
        return None
    name = headers.get("schedule")
    return name if isinstance(name, str) else None


async def events(view: View) -> Response:
    """Send the names of changed parts of the page as server-sent events."""
    if view.sampler.is_full:
        return PlainTextResponse("too many open pages\n", HTTPStatus.SERVICE_UNAVAILABLE)

    async def stream() -> AsyncIterator[str]:
        with view.sampler.viewing(wants_claims=bool(view.parameter("claims"))) as viewer:
            yield "retry: 2000\n: changes\n\n"
            until = time.monotonic() + _LONGEST_SECONDS
            # The page may be older than the stream, for example after a reconnect.
            viewer.notify(set(REGIONS))
            while time.monotonic() < until:
                changed = await viewer.changes(_SILENCE_SECONDS)
                if END in changed:
                    break
                for region in sorted(changed):
                    yield f"event: {region}\ndata: changed\n\n"
                if not changed:
                    yield ": nothing\n\n"

    # X-Accel-Buffering makes nginx forward each event at once.
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
    """Report that the server is up."""
    return PlainTextResponse("ok\n")


async def ready(site: Site) -> Response:
    """Report whether every database could be sampled; the page shows the errors."""
    for sampler in site.samplers.values():
        try:
            has_failed = (await in_thread(sampler.sample)).error is not None
        except TimedOutError:
            has_failed = True
        if has_failed:
            return PlainTextResponse(
                "cannot read a database; see the page\n", HTTPStatus.SERVICE_UNAVAILABLE
            )
    return PlainTextResponse("ok\n")


async def examine(view: View) -> Response:
    """Show the health checks and those of rowq doctor; raise HTTPException."""
    await view.read_form()
    if view.account != "admin":
        raise HTTPException(HTTPStatus.FORBIDDEN, "rowq doctor requires the role rowq_admin")
    _log.info("%r on %s: doctor", view.user, view.database.name)
    found, why_not = await in_thread(lambda: _examined(view.database))
    return await health_page(view, found, why_not)


def _examined(database: Database) -> tuple[list[Any], str]:
    """Return the checks of rowq doctor, or why it cannot run; raise HTTPException."""
    if not database.examining.acquire(blocking=False):
        raise HTTPException(HTTPStatus.CONFLICT, "rowq doctor is already running; retry later")
    try:
        from rowq.tools.doctor import examine as examined

        return list(examined(database.url)), ""
    except ImportError:
        return [], "rowq doctor is not installed; run pip install 'rowq[tools]'"
    except Exception as error:
        if not (is_driver_error(error) or type(error).__module__.startswith("rowq.")):
            raise
        return [], database.described(error)
    finally:
        database.examining.release()
