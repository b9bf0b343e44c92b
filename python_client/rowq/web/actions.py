"""POST requests: each calls one routine, logs one line and redirects to a page."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowq.engines.sockets import TimedOutError
from rowq.queue import Queue
from rowq.tools.terminal import printable
from rowq.web.databases import StillRunningError, is_expected
from rowq.web.pages import ALTERED
from rowq.web.view import View

LOG = logging.getLogger("rowq.web")


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an action, for the user and the log, and the page to show next."""

    said: str
    path: str
    query: Mapping[str, Any]


Action = Callable[[View, Queue], Done]


def act(routine: str, work: Action) -> Callable[[View], Any]:
    """Return a handler of a form that runs `work` if the user may call the routine."""

    async def answer(view: View) -> Response:
        await view.read_form()
        require(view, routine)
        what = f"{routine} {described(view)}"
        done = await logged(view, what, lambda queue: work(view, queue), lambda done: done.said)
        return view.back(done.path, done.said, **done.query)

    return answer


def require(view: View, routine: str) -> None:
    """Raise HTTPException unless the user and the account may call a routine."""
    if not view.can(routine):
        # The account may have got the role since its rights were read.
        view.database.forget_rights()
        raise HTTPException(
            HTTPStatus.FORBIDDEN, f"this page's database account is not allowed to call {routine}"
        )


def described(view: View) -> str:
    """Return the subject of a form, without any content of a message."""
    names = ("queue", "schedule", "topic", "id")
    return " ".join(repr(view.field(name)) for name in names if view.field(name)) or "all queues"


async def logged(
    view: View, what: str, work: Callable[[Queue], Any], said: Callable[[Any], str]
) -> Any:
    """Run `work`, and log its result or its error.

    The worker thread writes the line, because it continues after the page's timeout.
    """
    what = f"{view.user!r} on {view.database.name}: {what}"
    started = False

    def log(level: int, outcome: str) -> None:
        LOG.log(level, "%s", printable(f"{what}: {outcome}"))

    def work_and_log(queue: Queue) -> Any:
        nonlocal started
        started = True
        try:
            result = work(queue)
        except Exception as error:
            if is_expected(error):
                log(logging.WARNING, view.database.described(error))
            raise
        finally:
            view.sampler.expire()
        log(logging.INFO, said(result))
        return result

    try:
        return await view.run(work_and_log)
    except TimedOutError as error:
        if isinstance(error, StillRunningError) or not started:
            log(logging.WARNING, view.database.described(error))
        raise


def _create_queue(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    return Done(f"{name}: {queue.create_queue(name).outcome}", "/queue", {"name": name})


def _pause(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    return Done(f"{name}: {queue.pause_queue(name).outcome}", *_back(view))


def _resume(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    return Done(f"{name}: {queue.resume_queue(name).outcome}", *_back(view))


def _back(view: View) -> tuple[str, dict[str, str]]:
    """Return the page of the button."""
    if view.field("from") == "overview":
        return "/", {}
    return "/queue", {"name": view.field("queue")}


def _alter(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    settings: dict[str, Any] = {}
    for setting, kind in ALTERED.items():
        text = view.field(setting).strip()
        if text and text != view.field(f"was_{setting}"):
            try:
                settings[setting] = kind(text)
            except ValueError:
                raise HTTPException(
                    HTTPStatus.BAD_REQUEST, f"{setting} must be a number, got {text[:50]!r}"
                ) from None
    if not settings:
        return Done(f"{name}: no changes", "/queue", {"name": name})
    queue.alter_queue(name, **settings)
    changed = ", ".join(f"{setting} {value}" for setting, value in settings.items())
    return Done(f"{name}: altered: {changed}", "/queue", {"name": name})


def _drop(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    check_typed(view)
    queue.drop_queue(name, force=bool(view.field("force")))
    return Done(f"{name}: dropped", "/", {})


def check_typed(view: View) -> None:
    """Raise HTTPException unless the name of the queue was typed."""
    if view.field("typed") != view.field("queue"):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "type the exact name of the queue")


def _enqueue(view: View, queue: Queue) -> Done:
    name = view.field("queue")
    # Browsers send a line end as two characters.
    text = view.field("body").replace("\r\n", "\n")
    delay = view.field("delay").strip()
    try:
        seconds = float(delay) if delay else None
        priority = int(view.field("priority") or 5)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "priority and delay must be numbers") from None
    sent = queue.enqueue(
        name,
        text=text or None,
        message_type=view.field("type") or None,
        priority=priority,
        delay_seconds=seconds,
    )
    return Done(f"message {sent.message_id}: {sent.outcome}", "/queue", {"name": name})


def _message_id(view: View) -> int:
    text = view.field("id")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "id must be a message id")
    return int(text)


def _cancel(view: View, queue: Queue) -> Done:
    name, number = view.field("queue"), _message_id(view)
    include_leased = bool(view.field("include_leased"))
    (outcome,) = queue.cancel(name, [number], include_leased=include_leased)
    return _about_message(name, number, outcome.outcome)


def _alter_message(view: View, queue: Queue) -> Done:
    name, number = view.field("queue"), _message_id(view)
    delay, priority = view.field("delay").strip(), view.field("priority").strip()
    # Browsers send a line end as two characters.
    text = view.field("body").replace("\r\n", "\n") if "body" in view.form else None
    try:
        seconds = float(delay) if delay else None
        level = int(priority) if priority else None
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST, "priority and delay must be numbers") from None
    altered = queue.alter_message(name, number, text=text, priority=level, delay_seconds=seconds)
    return _about_message(name, number, altered.outcome)


def _reset(view: View, queue: Queue) -> Done:
    name, number = view.field("queue"), _message_id(view)
    (outcome,) = queue.reset(name, [number])
    return _about_message(name, number, outcome.outcome)


def _about_message(name: str, number: int, outcome: str) -> Done:
    said = f"message {number}: {outcome.replace('_', ' ')}"
    return Done(said, "/message", {"queue": name, "id": number})


def _pause_schedule(view: View, queue: Queue) -> Done:
    altered = queue.alter_schedule(view.field("queue"), view.field("schedule"), is_paused=True)
    return _about_schedule(view, altered.outcome)


def _resume_schedule(view: View, queue: Queue) -> Done:
    altered = queue.alter_schedule(view.field("queue"), view.field("schedule"), is_paused=False)
    return _about_schedule(view, altered.outcome)


def _run_schedule(view: View, queue: Queue) -> Done:
    enqueued = queue.run_schedule(view.field("queue"), view.field("schedule"))
    return _about_schedule(view, f"message {enqueued.message_id}: {enqueued.outcome}")


def _about_schedule(view: View, outcome: str) -> Done:
    name = view.field("schedule")
    return Done(f"{name}: {outcome}", "/schedule", {"queue": view.field("queue"), "name": name})


def _bind(view: View, queue: Queue) -> Done:
    bound = queue.bind_topic(view.field("queue"), view.field("topic"))
    return Done(f"{bound.topic_pattern}: {bound.outcome}", "/topics", {})


def _unbind(view: View, queue: Queue) -> Done:
    unbound = queue.unbind_topic(view.field("queue"), view.field("topic"))
    return Done(f"{unbound.topic_pattern}: {unbound.outcome}", "/topics", {})


def _maintain(view: View, queue: Queue) -> Done:
    del view
    done = queue.maintain()
    elected = sum(one.elected for one in done)
    moved = sum(one.promoted + one.reaped for one in done)
    return Done(f"maintained {elected} queues; {moved} messages became ready", "/health", {})


ACTIONS: Mapping[str, Callable[[View], Any]] = {
    path: act(routine, work)
    for path, routine, work in (
        ("/queue/create", "create_queue", _create_queue),
        ("/queue/pause", "pause_queue", _pause),
        ("/queue/resume", "resume_queue", _resume),
        ("/queue/alter", "alter_queue", _alter),
        ("/queue/drop", "drop_queue", _drop),
        ("/queue/enqueue", "enqueue", _enqueue),
        ("/message/cancel", "cancel", _cancel),
        ("/message/reset", "reset", _reset),
        ("/message/alter", "alter_message", _alter_message),
        ("/schedule/pause", "alter_schedule", _pause_schedule),
        ("/schedule/resume", "alter_schedule", _resume_schedule),
        ("/schedule/run", "run_schedule", _run_schedule),
        ("/topics/bind", "bind_topic", _bind),
        ("/topics/unbind", "unbind_topic", _unbind),
        ("/health/maintain", "maintain", _maintain),
    )
}
