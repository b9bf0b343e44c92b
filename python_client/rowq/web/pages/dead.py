"""The dead messages of a queue, the newest first, and grouped by what went wrong."""

from starlette.responses import Response

from rowq.messages import DeadMessage
from rowq.queue import Queue
from rowq.web.causes import group_dead, in_group
from rowq.web.view import View

LAST_ID = 2**63 - 1
_LOOKED_AT = 2_000
_SHOWN = 100


async def dead(view: View) -> Response:
    """Show the newest dead messages, or those before one; with `cause`, those of a group."""
    name, cause = view.asked("queue"), view.asked("cause")
    before = _number(view.asked("before"))
    stats = await view.stats(name)
    found = await view.run(lambda calls: _found(calls, name, before))
    groups = group_dead(found)
    matching = [message for message in found if not cause or in_group(cause)(message)]
    shown = matching[:_SHOWN]
    is_more = len(matching) > _SHOWN or len(found) == _LOOKED_AT
    following = (shown or found)[-1].message_id if is_more else None
    return view.page(
        "dead.html",
        name=name,
        stats=stats,
        groups=groups,
        group=next((group for group in groups if group.key == cause), None),
        cause=cause,
        shown=shown,
        before=before,
        following=following,
        looked_at=len(found),
        is_all=len(found) < _LOOKED_AT and before == LAST_ID,
    )


def _found(calls: Queue, name: str, before: int) -> list[DeadMessage]:
    return calls.list_dead(name, max_messages=_LOOKED_AT, before_message_id=before)


def _number(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else LAST_ID
    return min(max(number, 1), LAST_ID)
