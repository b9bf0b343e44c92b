"""Messages in a worker of rowq's that uses Django's settings and connections.

The worker connects by itself, so a database in Django's settings becomes a URL.
"""

import inspect
from collections.abc import Awaitable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from rowq.engines.connections import source_of
from rowq.errors import EngineUnknown
from rowq.worker.handlers import find_handler

# Django keeps these to itself, or they are how its own cursors read.
_DJANGOS = {"charset", "init_command", "isolation_level", "sql_mode", "autocommit"}
_TAKEN = {
    *("host", "port", "unix_socket", "connect_timeout"),
    *("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"),
}


def url_of(connection: Any) -> str:
    """Return the URL of one of django.db.connections.

    Raises EngineUnknown, which names no value, where the settings cannot be said in a URL of rowq.
    """
    engine = source_of(connection).engine
    match engine.name:
        case "postgres":
            parameters = _postgres(connection)
            user, password = parameters.pop("user", ""), parameters.pop("password", "")
            name = parameters.pop("dbname", "")
        case "mysql":
            settings = connection.settings_dict
            user, password, name = (settings[key] or "" for key in ("USER", "PASSWORD", "NAME"))
            parameters = _mysql(settings)
        case _:
            raise EngineUnknown(f"the settings of {engine.name} make no URL: give --url")
    address = "".join(
        (quote(user, safe=""), f":{quote(password, safe='')}" if password else "", "@")
        if user or password
        else ()
    )
    if engine.name == "mysql":
        address += f"{parameters.pop('host', 'localhost')}:{parameters.pop('port', 3306)}"
    query = urlencode(parameters, quote_via=quote)
    return f"{engine.schemes[0]}://{address}/{quote(name, safe='')}{'?' if query else ''}{query}"


def _postgres(connection: Any) -> dict[str, str]:
    """Return what Django gives psycopg of what libpq knows."""
    import psycopg

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    given = connection.get_connection_params()
    if connection.settings_dict.get("OPTIONS", {}).get("assume_role"):
        raise EngineUnknown("assume_role makes no URL: give --url, with options=-c%20role%3D...")
    return {name: str(given[name]) for name in given.keys() & known if given[name] is not None}


def _mysql(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return place and options as rowq's URLs have them."""
    options = {key: value for key, value in settings["OPTIONS"].items() if key not in _DJANGOS}
    tls = {f"ssl_{key}": value for key, value in options.pop("ssl", {}).items()}
    found = {"host": settings["HOST"], "port": settings["PORT"], **options, **tls}
    if str(found["host"]).startswith("/"):
        found["unix_socket"] = found.pop("host")
    unknown = found.keys() - _TAKEN
    if unknown:
        raise EngineUnknown(f"the options {', '.join(sorted(unknown))} make no URL: give --url")
    return {key: str(value) for key, value in found.items() if value}


class DjangoHandler:
    """Calls a handler as Django calls a view: connections are looked after before and behind it.

    One that is broken, or older than CONN_MAX_AGE, is closed. It can be pickled for a worker with
    processes: each of them sets Django up before it imports the handler.
    """

    def __init__(self, name: str) -> None:
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
