"""What rowq doctor finds: for who may act, as it takes connections of its own and some time."""

import logging
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from rowq.engines import is_driver_error
from rowq.web.databases import Database, in_thread
from rowq.web.pages.others import health_page
from rowq.web.view import View

_log = logging.getLogger("rowq.web")


async def examine(view: View) -> Response:
    """Show what needs attention, and what rowq doctor finds; raises HTTPException."""
    await view.read_form()
    if view.account != "admin":
        raise HTTPException(HTTPStatus.FORBIDDEN, "to examine is for accounts with rowq_admin")
    _log.info("%r on %s: doctor", view.user, view.database.name)
    found, why_not = await in_thread(lambda: _examined(view.database))
    return await health_page(view, found, why_not)


def _examined(database: Database) -> tuple[list[Any], str]:
    """Return what rowq doctor finds, or why it cannot be asked; raises HTTPException."""
    if not database.examining.acquire(blocking=False):
        raise HTTPException(HTTPStatus.CONFLICT, "somebody else examines it: wait for the end")
    try:
        from rowq.tools.doctor import examine as examined

        return list(examined(database.url)), ""
    except ImportError:
        return [], "rowq doctor needs the extra tools: pip install 'rowq[tools]'"
    except Exception as error:
        if not (is_driver_error(error) or type(error).__module__.startswith("rowq.")):
            raise
        return [], database.described(error)
    finally:
        database.examining.release()
