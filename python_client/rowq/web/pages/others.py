"""Workers, schedules, topics and health."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from starlette.responses import Response

from rowq.errors import ScheduleNotFound
from rowq.messages import Claim, WorkerReport
from rowq.web.sampler import MAX_CLAIMS, Sample
from rowq.web.view import View


async def workers(view: View) -> Response:
    """Show the workers, idle ones too, and who is at work on what."""
    return await _workers(view, "workers.html")


async def workers_part(view: View) -> Response:
    """Show what of that changes."""
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
    """Return the workers of a queue, or of all, by name; they were last seen by now's clock."""
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
    """Show all schedules, or those of a queue."""
    name = view.asked("queue") or None
    found = await view.run(lambda calls: calls.list_schedules(name))
    return await view.page("schedules.html", name=name, schedules=found)


async def schedule(view: View) -> Response:
    """Show a schedule, and when it runs next; raises ScheduleNotFound."""
    queue_name, name = view.asked("queue"), view.asked("name")
    listed = await view.run(lambda calls: calls.list_schedules(queue_name))
    found = next((one for one in listed if one.schedule_name == name), None)
    if found is None:
        raise ScheduleNotFound("the queue has no such schedule")
    one = found
    ticks: list[Any] = []
    if not one.is_paused and one.next_run_at is not None:
        ticks = await view.run(
            lambda calls: calls.next_ticks(
                one.cron, interval_seconds=one.interval_seconds, time_zone=one.time_zone
            )
        )
    if one.interval_seconds is not None:
        # The ticks of an interval are counted from the schedule's own beginning.
        ticks = []
    return await view.page("schedule.html", schedule=one, ticks=ticks)


async def topics(view: View) -> Response:
    """Show which queue gets what is published under which topics."""
    found = await view.run(lambda calls: calls.list_topics(None))
    queues = [stats.queue_name for stats in (await view.sample()).queues]
    return await view.page("topics.html", bindings=found, queues=queues)


async def health(view: View) -> Response:
    """Show what needs attention."""
    return await health_page(view, [], "")


async def health_page(view: View, found: list[Any], why_not: str) -> Response:
    """Return the page of health with what an examination has found, or why there was none."""
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
    """Show what needs attention, as the overview does."""
    return await view.page("parts/health.html", sample=await view.sample())
