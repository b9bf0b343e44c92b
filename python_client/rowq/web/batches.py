"""Actions on many messages, in steps of 1000 messages per request.

The browser requests the next step after it has shown the last one. So the page shows the progress,
closing it stops the work, and the server keeps no state: the position is in the form. Without
JavaScript there is a button for the next step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowq.messages import LAST_ID
from rowq.queue import Queue
from rowq.web.actions import check_typed, logged, require
from rowq.web.causes import ids_of
from rowq.web.sampler import MAX_COUNT
from rowq.web.view import View

BATCH = 1_000

_ROUTINES: Mapping[str, str] = {
    "reset": "reset", "discard": "discard_dead", "purge": "purge_queue"
}  # fmt: skip
WORDS: Mapping[str, str] = {"reset": "reset", "discard": "discarded", "purge": "purged"}


@dataclass(frozen=True, slots=True)
class Step:
    """The state after a step.

    done: messages of all steps. after: the last message read. until: the last message to process.
    began: start of the first step by the database's clock; messages that died later are skipped.
    total: approximate number of messages.
    """

    done: int
    after: int
    until: int
    total: int
    is_last: bool
    began: str = ""


async def batch(view: View) -> Response:
    """Run the next step of a form."""
    await view.read_form()
    what = view.field("do")
    if what not in _ROUTINES:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "do must be reset, discard or purge")
    require(view, _ROUTINES[what])
    name, scope = view.field("queue"), view.field("scope")
    if what == "purge":
        check_typed(view)
    step = await logged(
        view,
        f"{_ROUTINES[what]} {name!r} {_scope_of(view, what)}",
        lambda queue: _next(view, queue, what),
        lambda step: f"{step.done - _number(view, 'done')} {WORDS[what]}",
    )
    if step.is_last:
        said = f"{step.done:,} messages {WORDS[what]}"
        path, query = ("/queue", {"name": name}) if what == "purge" else ("/dead", {"queue": name})
        if view.request.headers.get("HX-Request"):
            return Response(
                status_code=HTTPStatus.NO_CONTENT,
                headers={
                    "HX-Redirect": view.link(path, **query, said=view.site.signer.sealed(said))
                },
            )
        return view.back(path, said, **query)
    template = "parts/steps.html" if view.request.headers.get("HX-Request") else "steps.html"
    return await view.page(template, name=name, do=what, scope=scope, step=step, words=WORDS[what])


def _next(view: View, queue: Queue, what: str) -> Step:
    name = view.field("queue")
    if what == "purge":
        return _purge(view, queue, name)
    if view.field("scope") == "chosen":
        ids = _chosen(view)
        return Step(_apply(queue, what, name, ids), 0, 0, len(ids), is_last=True)
    return _in_order(view, queue, what, name)


def _in_order(view: View, queue: Queue, what: str, name: str) -> Step:
    """Process the next dead messages by id, each once, successful or not."""
    key = view.field("cause") if view.field("scope") == "group" else ""
    if view.field("scope") not in {"group", "all"} or (view.field("scope") == "group" and not key):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "scope must be chosen, group or all")
    after, until = _number(view, "after"), _number(view, "until")
    began = _parse_time(view.field("began"))
    if not until or began is None:
        began = _now(queue)
        newest = queue.list_dead(name, max_messages=1, before_message_id=LAST_ID)
        until = newest[0].message_id if newest else 0
    page = queue.list_dead(name, after_message_id=after, max_messages=BATCH)
    meant = [message for message in page if message.message_id <= until]
    dead = [message for message in meant if message.died_at <= began]
    done = _number(view, "done") + _apply(queue, what, name, ids_of(dead, key))
    is_last = len(meant) < BATCH or meant[-1].message_id >= until
    after = meant[-1].message_id if meant else until
    total = max(_number(view, "total"), done)
    return Step(done, after, until, total, is_last, began.isoformat())


def _purge(view: View, queue: Queue, name: str) -> Step:
    """Purge until no message waits; the total is limited by MAX_COUNT."""
    total, done = _number(view, "total"), _number(view, "done")
    if not total:
        (stats,) = queue.queue_stats(name, max_count=MAX_COUNT)
        total = stats.ready + stats.delayed + (stats.blocked or 0)
    removed = queue.purge_queue(name, max_messages=BATCH).removed
    done += removed
    return Step(done, 0, 0, max(total, done), is_last=removed < BATCH)


def _now(queue: Queue) -> datetime:
    """Return the database's time: the first tick of a new interval minus the interval."""
    (tick,) = queue.next_ticks(interval_seconds=1, max_ticks=1)
    return tick - timedelta(seconds=1)


def _parse_time(text: str) -> datetime | None:
    """Return the time in a form; None if empty; raise HTTPException."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "invalid timestamp") from None


def _apply(queue: Queue, what: str, name: str, ids: list[int]) -> int:
    """Reset or discard messages; return their number."""
    if not ids:
        return 0
    if what == "discard":
        return queue.discard_dead(name, ids).removed
    return sum(outcome.outcome == "reset" for outcome in queue.reset(name, ids))


def _chosen(view: View) -> list[int]:
    texts = view.form.get("id", [])
    if not texts or len(texts) > BATCH:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "choose 1 to 1,000 messages")
    if not all(text.isascii() and text.isdecimal() and len(text) < 19 for text in texts):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "id must be a message id")
    return [int(text) for text in texts]


def _number(view: View, field: str) -> int:
    text = view.field(field)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0


def _scope_of(view: View, what: str) -> str:
    """Return the scope for the log; raise HTTPException for invalid ids."""
    if what == "purge":
        return "all waiting messages"
    match view.field("scope"):
        case "chosen":
            ids = _chosen(view)
            return " ".join(map(str, ids[:20])) + (f" and {len(ids) - 20} more" if ids[20:] else "")
        case "group":
            return f"group {view.field('cause')[:30]!r} after {_number(view, 'after')}"
        case _:
            return f"all after {_number(view, 'after')}"
