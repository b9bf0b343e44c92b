"""Worker support: a URL from Django's settings, and handlers with Django's connections."""

import inspect
from collections.abc import Awaitable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from rowq.engines.connections import source_of
from rowq.errors import EngineUnknown
from rowq.worker.handlers import find_handler

# Options of Django itself, or of its cursors.
_DJANGOS = {"charset", "init_command", "isolation_level", "sql_mode", "autocommit"}
_SUPPORTED = {
    *("host", "port", "unix_socket", "connect_timeout"),
    *("ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"),
}


def url_of(connection: Any) -> str:
    """Return the URL of a connection of django.db.connections.

    Raises EngineUnknown, without values, for settings that a URL cannot contain.
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
            raise EngineUnknown(f"cannot make a URL from settings for {engine.name}; use --url")
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
    """Return Django's parameters for psycopg that libpq supports."""
    import psycopg

    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    found = connection.get_connection_params()
    if connection.settings_dict.get("OPTIONS", {}).get("assume_role"):
        raise EngineUnknown(
            "cannot make a URL with assume_role; use --url with options=-c%20role%3D..."
        )
    return {name: str(found[name]) for name in found.keys() & known if found[name] is not None}


def _mysql(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return host and options in the form of rowq's URLs."""
    options = {key: value for key, value in settings["OPTIONS"].items() if key not in _DJANGOS}
    tls = {f"ssl_{key}": value for key, value in options.pop("ssl", {}).items()}
    found = {"host": settings["HOST"], "port": settings["PORT"], **options, **tls}
    if str(found["host"]).startswith("/"):
        found["unix_socket"] = found.pop("host")
    if unknown := found.keys() - _SUPPORTED:
        names = ", ".join(sorted(unknown))
        raise EngineUnknown(f"cannot make a URL with the options {names}; use --url")
    return {key: str(value) for key, value in found.items() if value}


class DjangoHandler:
    """Handler wrapper that closes old connections before and after each call, as for a view.

    A connection is closed if it is lost, or older than CONN_MAX_AGE. The wrapper can be pickled for
    worker processes, which set up Django before they import the handler.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, message: Any, *connection: Any) -> Any:
        """Call the handler; return its result or an awaitable."""
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
    """Await a handler's result; a coroutine's Django connections belong to another thread."""
    from asgiref.sync import sync_to_async
    from django.db import close_old_connections

    try:
        return await returned
    finally:
        await sync_to_async(close_old_connections)()
