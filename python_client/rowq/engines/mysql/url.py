"""mysql:// and mariadb:// URLs and their PyMySQL arguments.

    mysql://user:password@host:3306/database?ssl-mode=verify_identity&ssl-ca=/etc/ca.pem
    mariadb://user@localhost/?unix_socket=/run/mysqld/mysqld.sock

The URL's database is the default for the caller's tables; rowq is always in the database `rowq`.
Parameters may be written with hyphens or underscores:

    unix_socket         path of the server's socket, instead of host and port
    connect_timeout     seconds, 10 by default
    ssl_mode            disabled, required (encrypted, server not verified), verify_ca or
                        verify_identity (default if ssl_ca is set)
    ssl_ca              file of certificates to trust; the system's by default
    ssl_cert, ssl_key   the client's own certificate
"""

import ssl
from typing import Any
from urllib.parse import unquote, urlsplit

from rowq.engines.urls import malformed, parameters_of
from rowq.errors import CannotConnect

_KNOWN = {"unix_socket", "connect_timeout", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"}
_MODES = ("disabled", "required", "verify_ca", "verify_identity")


def connection_parameters(url: str) -> dict[str, Any]:
    """Return PyMySQL's arguments for `url`.

    Raises CannotConnect for a malformed URL, without showing it: it may contain a secret.
    """
    if "#" in url:
        raise malformed("MySQL")
    try:
        parts = urlsplit(url)
        parameters = parameters_of(parts.query, _KNOWN, "MySQL")
        found: dict[str, Any] = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 3306,
            "connect_timeout": int(parameters.get("connect_timeout", "10")),
        }
    except ValueError:
        raise malformed("MySQL") from None
    texts = {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.lstrip("/")),
        "unix_socket": parameters.get("unix_socket", ""),
    }
    found |= {name: value for name, value in texts.items() if value}
    return found | _tls(parameters)


def _tls(parameters: dict[str, str]) -> dict[str, Any]:
    """Return PyMySQL's arguments for TLS."""
    mode = parameters.get("ssl_mode", "verify_identity" if "ssl_ca" in parameters else "").lower()
    if mode in {"", "disabled"}:
        return {"ssl_disabled": True} if mode else {}
    if mode not in _MODES:
        raise CannotConnect(f"MySQL: ssl-mode must be one of {', '.join(_MODES)}")
    try:
        context = ssl.create_default_context(cafile=parameters.get("ssl_ca"))
        context.check_hostname = mode == "verify_identity"
        if mode == "required":
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in parameters:
            context.load_cert_chain(parameters["ssl_cert"], parameters.get("ssl_key"))
    except OSError as error:
        raise CannotConnect(f"MySQL: cannot read the certificates: {error}") from None
    return {"ssl": context}
