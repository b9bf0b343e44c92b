"""Handlers of messages that use Django's database connections, in a worker of rowq's."""

import inspect
from collections.abc import Awaitable
from typing import Any

from rowq.worker.handlers import find_handler


class DjangoHandler:
    """Calls a handler as Django calls a view: connections are looked after before and behind it.

    One that is broken, or older than CONN_MAX_AGE, is closed. It can be pickled for a worker with
    processes: each of them sets Django up before it imports the handler.
    """

    def __init__(self, name: str) -> None:
        """Call what "module:function" names."""
        self._name = name

    def __call__(self, message: Any, *connection: Any) -> Any:
        """Call the handler; return what it returns, or something to await that does."""
        import django
        from django.apps import apps
        from django.db import close_old_connections

        if not apps.ready:
            django.setup()
        handler = find_handler(self._name, 1 + len(connection))
        close_old_connections()
        returned = None
        try:
            returned = handler(message, *connection)
        finally:
            if not inspect.isawaitable(returned):
                close_old_connections()
        return _closing(returned) if inspect.isawaitable(returned) else returned


async def _closing(returned: Awaitable[Any]) -> Any:
    """Await what a handler returned; Django's connections of a coroutine are another thread's."""
    from asgiref.sync import sync_to_async
    from django.db import close_old_connections

    try:
        return await returned
    finally:
        await sync_to_async(close_old_connections)()
