"""oracle:// URLs and their python-oracledb arguments.

    oracle://user:password@host:1521/service?owner=queues
    oracle://user:password@host/service?protocol=tcps&wallet_location=/etc/wallet

A call names the package rowq without an owner. So the session needs a synonym rowq for the package
of its role, or the parameter `owner`. Parameters may be written with hyphens or underscores:

    owner               account that owns rowq; default: the session's own
    protocol            tcp or tcps (encrypted, the server's name is verified)
    wallet_location     directory with the file ewallet.pem: certificates for tcps
    wallet_password     its password
    connect_timeout     seconds, 10 by default
    expire_time         minutes of silence after which a call probes the server, and ends if it is
                        gone; 1 by default, 0 for never
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from rowq.engines.urls import malformed, parameters_of
from rowq.errors import CannotConnect

_KNOWN = {
    "owner", "protocol", "wallet_location", "wallet_password", "connect_timeout", "expire_time",
}  # fmt: skip
_PROTOCOLS = ("tcp", "tcps")


def connection_parameters(url: str) -> dict[str, Any]:
    """Return python-oracledb's arguments for `url`, without the owner.

    Raises CannotConnect for a malformed URL, without showing it: it may contain a secret.
    """
    if "#" in url:
        raise malformed("Oracle")
    try:
        parts = urlsplit(url)
        parameters = parameters_of(parts.query, _KNOWN, "Oracle")
        found: dict[str, Any] = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 1521,
            "tcp_connect_timeout": float(parameters.get("connect_timeout", "10")),
            "expire_time": int(parameters.get("expire_time", "1")),
        }
    except ValueError:
        raise malformed("Oracle") from None
    texts = {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "service_name": unquote(parts.path.lstrip("/")),
        "protocol": parameters.get("protocol", ""),
        "wallet_location": parameters.get("wallet_location", ""),
        "wallet_password": parameters.get("wallet_password", ""),
    }
    if texts["protocol"] and texts["protocol"] not in _PROTOCOLS:
        raise CannotConnect(f"Oracle: protocol must be one of {', '.join(_PROTOCOLS)}")
    return found | {name: value for name, value in texts.items() if value}


def owner_of(url: str) -> str | None:
    """Return the owner of rowq in a URL, in Oracle's upper case; None: the session's account."""
    owner = parameters_of(urlsplit(url).query, _KNOWN, "Oracle").get("owner", "")
    return owner.upper() or None
