"""One message: where it is, what happened to it, and what is in it."""

from http import HTTPStatus
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowq.messages import Attempt, MessageDetails, MessageResult, UnreadableHeaders
from rowq.queue import Queue
from rowq.tools.trace_headers import TRACEPARENT, trace_of
from rowq.web.bodies import as_command, file_of, shown_body
from rowq.web.databases import in_thread
from rowq.web.view import View

ENDED = ("completed", "cancelled", "expired")


async def message(view: View) -> Response:
    """Show a message."""
    name, details = view.asked("queue"), await _details(view)
    attempts, result = await view.run(lambda calls: _more(calls, view, name, details))
    body = command = None
    if view.sees_bodies:
        form = view.asked("form")
        body = await in_thread(lambda: shown_body(details, form))
        command = await in_thread(lambda: as_command(name, details))
    return await view.page(
        "message.html",
        name=name,
        details=details,
        attempts=attempts,
        result=result,
        body=body,
        command=command,
        trace_id=trace_of(details.headers).get(TRACEPARENT, "--").split("-")[1],
        schedule=_schedule_of(details) if view.sees_bodies else None,
        ended=details.state in ENDED,
    )


async def body_file(view: View) -> Response:
    """Return a body as a file, which no browser shows."""
    details = await _details(view)
    if not view.sees_bodies:
        raise HTTPException(HTTPStatus.FORBIDDEN, "bodies are not shown")
    kind = "bin" if details.body_binary is not None else "txt"
    name = quote(f"{view.asked('queue')}-{details.message_id}.{kind}", safe="")
    return Response(
        file_of(details),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )


async def _details(view: View) -> MessageDetails:
    name, number = view.asked("queue"), view.asked("id")
    if not view.sees_messages:
        raise HTTPException(
            HTTPStatus.FORBIDDEN,
            "messages are for accounts with the role rowq_admin, and for users who may act",
        )
    is_id = number.isascii() and number.isdecimal() and len(number) < 19
    found = await view.run(lambda calls: calls.get_message(name, int(number) if is_id else 0))
    if found is None:
        raise HTTPException(
            HTTPStatus.NOT_FOUND,
            f"rowq knows no message {number} in this queue: it was never there, or it has ended"
            " and is not kept",
        )
    return found


def _more(
    calls: Queue, view: View, name: str, details: MessageDetails
) -> tuple[list[Attempt], MessageResult | None]:
    number = details.message_id
    attempts = calls.get_history(name, number) if view.can_look("get_history") else []
    has_result = view.can_look("get_result") and details.state in (*ENDED, "dead")
    return attempts, calls.get_result(name, number) if has_result else None


def _schedule_of(details: MessageDetails) -> str | None:
    """Return the name of the schedule that made a message."""
    headers = details.headers
    if not headers or isinstance(headers, UnreadableHeaders) or "tick" not in headers:
        return None
    name = headers.get("schedule")
    return name if isinstance(name, str) else None
