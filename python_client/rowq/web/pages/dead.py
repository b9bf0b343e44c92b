"""The dead messages of a queue, the newest first, and grouped by what went wrong."""

from starlette.responses import Response

from rowq.messages import LAST_ID, DeadMessage
from rowq.queue import Queue
from rowq.web.causes import Group, group_dead, in_group
from rowq.web.databases import in_thread
from rowq.web.view import View

_LOOKED_AT = 2_000
_SHOWN = 100


async def dead(view: View) -> Response:
    """Show the newest dead messages, or those before one.

    With `cause` those of a group; with `type` those of a type, and with `error` those of the ones
    looked at whose error has that text.
    """
    name, cause = view.asked("queue"), view.asked("cause")
    wanted_type, wanted = view.asked("type"), view.asked("error")
    before = _number(view.asked("before"))
    stats = await view.stats(name)
    found = await view.run(lambda calls: _found(calls, name, before, wanted_type))
    matched = await in_thread(lambda: _with_error(view, found, wanted))
    groups, matching = await in_thread(lambda: _grouped(matched, cause))
    shown = matching[:_SHOWN]
    is_more = len(matching) > _SHOWN or len(found) == _LOOKED_AT
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
        looked_at=len(found),
        matched=len(matched),
        is_all=len(found) < _LOOKED_AT and before == LAST_ID and not (wanted_type or wanted),
    )


def _found(calls: Queue, name: str, before: int, message_type: str) -> list[DeadMessage]:
    return calls.list_dead(
        name,
        max_messages=_LOOKED_AT,
        before_message_id=before,
        message_type=message_type or None,
    )


def _with_error(view: View, found: list[DeadMessage], wanted: str) -> list[DeadMessage]:
    """Return messages by the error as it may be shown: a hidden one must not answer questions."""
    text = wanted.lower()
    return [one for one in found if text in (view.error(one.last_error) or "").lower()]


def _grouped(found: list[DeadMessage], cause: str) -> tuple[list[Group], list[DeadMessage]]:
    """Return the groups of messages, and the messages of one, or all."""
    is_meant = in_group(cause)
    return group_dead(found), [one for one in found if not cause or is_meant(one)]


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else LAST_ID
    return min(max(number, 1), LAST_ID)
