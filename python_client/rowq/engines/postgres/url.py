"""postgresql:// URLs and their psycopg parameters.

    postgresql://user:password@host:5432/database?sslmode=verify-full
    postgresql:///database?host=/run/postgresql&prepare_threshold=none

Parameters are those of libpq, and one of psycopg:

    prepare_threshold   number of calls after which a statement is prepared; none: never. Default:
                        psycopg's, and none through a pooler
"""

import re
from typing import Any

from rowq.engines.postgres.driver import load_driver
from rowq.engines.sockets import IDLE_SECONDS, INTERVAL_SECONDS, PROBES, SILENT_SECONDS
from rowq.engines.urls import malformed
from rowq.errors import CannotConnect

_DEFAULTS = {
    "fallback_application_name": "rowq",
    "connect_timeout": "10",
    "keepalives_idle": str(IDLE_SECONDS),
    "keepalives_interval": str(INTERVAL_SECONDS),
    "keepalives_count": str(PROBES),
    "tcp_user_timeout": str(SILENT_SECONDS * 1000),
}
_PORT = re.compile(r"(?:^|,)(?:\[[^\]]*\]|[^\[\],:]*):([^,]*)")
_PREPARE_THRESHOLD = re.compile(r"(?P<mark>[?&])prepare_threshold=(?P<value>[^&#]*)")


def connection_parameters(url: str) -> dict[str, Any]:
    """Return rowq's parameters, overridden by the URL's; the error does not show the URL."""
    psycopg = load_driver()
    scheme, separator, rest = url.partition("://")
    _check_address(rest.partition("?")[0])
    libpq_url, prepare = _split_prepare_threshold(f"{scheme.partition('+')[0]}{separator}{rest}")
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(libpq_url)
    except psycopg.ProgrammingError:
        raise malformed("PostgreSQL") from None
    return {**_DEFAULTS, **parameters, **prepare, "client_encoding": "utf8"}


def _check_address(address: str) -> None:
    """Refuse an address that libpq would split wrongly, and show part of the password in errors."""
    authority, _, path = address.partition("/")
    hosts = authority.rpartition("@")[2]
    ports = _PORT.findall(hosts)
    is_cut_by_slash = "@" in path and not all(port.isdecimal() for port in ports)
    if authority.count("@") > 1 or is_cut_by_slash:
        raise malformed("PostgreSQL")


def _split_prepare_threshold(url: str) -> tuple[str, dict[str, int | None]]:
    """Remove psycopg's own parameter from a URL; libpq does not support it."""
    match = _PREPARE_THRESHOLD.search(url)
    if not match:
        return url, {}
    value = match["value"].lower()
    if value != "none" and not value.isdecimal():
        raise CannotConnect("PostgreSQL: prepare_threshold must be a number or none")
    rest = url[match.end() :].removeprefix("&")
    url = f"{url[: match.start()]}{match['mark']}{rest}".rstrip("?&")
    return url, {"prepare_threshold": None if value == "none" else int(value)}
