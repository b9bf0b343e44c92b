"""One queue: counts, charts, what comes next, who is at work, settings."""

from dataclasses import fields

from starlette.responses import JSONResponse, RedirectResponse, Response

from rowq.messages import QueueStats
from rowq.web.databases import in_thread
from rowq.web.pages.others import seen
from rowq.web.sampler import Following
from rowq.web.view import View

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
"""By setting, the type of its values."""


async def queue(view: View) -> Response:
    """Show a queue."""
    name = view.asked("name")
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
    """Show the counts of a queue, which change."""
    name = view.asked("name")
    sample = await view.sample()
    return await view.page(
        "parts/queue.html", name=name, stats=await view.stats(name), sample=sample
    )


async def lists_part(view: View) -> Response:
    """Show what comes next and who is at work."""
    name = view.asked("name")
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
    """Return what the charts of a queue are drawn of: a list for each line, and one of times."""
    try:
        after = float(view.asked("after") or 0)
    except ValueError:
        after = 0.0
    await view.sample()
    found = view.sampler.points(view.asked("name"), after)
    return JSONResponse([list(line) for line in zip(*found, strict=True)])


async def find(view: View) -> Response:
    """Lead to the message with an id, or with a dedup key."""
    name, key, number = view.asked("name"), view.asked("key"), view.asked("id")
    is_id = number.isascii() and number.isdecimal() and len(number) < 19
    message_id = int(number) if is_id else 0
    if key and view.sees_bodies:
        found = await view.run(lambda calls: calls.find_message(name, key))
        message_id = found.message_id if found else 0
    return RedirectResponse(view.link("/message", queue=name, id=message_id), 303)


async def _following(view: View, name: str) -> Following:
    has_ready = view.sees_messages and view.can_look("peek")
    return await in_thread(lambda: view.sampler.following(name, has_ready=has_ready))
