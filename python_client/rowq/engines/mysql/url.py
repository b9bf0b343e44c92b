"""mysql:// and mariadb:// URLs, and what they mean to PyMySQL.

    mysql://user:password@host:3306/database?ssl-mode=verify_identity&ssl-ca=/etc/ca.pem
    mariadb://user@localhost/?unix_socket=/run/mysqld/mysqld.sock

The database is the session's own, for the caller's tables; rowq is always in the database `rowq`.
Parameters may be written with hyphens or underscores:

    unix_socket         path of the server's socket, instead of host and port
    connect_timeout     seconds, 10 by default
    ssl_mode            disabled, required (encrypted, whoever the server is), verify_ca or
                        verify_identity; verify_identity where ssl_ca is given
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

    Raises CannotConnect for a malformed URL, without showing it: it may hold a secret.
    """
    if "#" in url:
        raise malformed("MySQL")
    try:
        parts = urlsplit(url)
        given = parameters_of(parts.query, _KNOWN, "MySQL")
        found: dict[str, Any] = {
            "host": parts.hostname or "localhost",
            "port": parts.port or 3306,
            "connect_timeout": int(given.get("connect_timeout", "10")),
        }
    except ValueError:
        raise malformed("MySQL") from None
    texts = {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.lstrip("/")),
        "unix_socket": given.get("unix_socket", ""),
    }
    found |= {name: value for name, value in texts.items() if value}
    return found | _tls(given)


def _tls(given: dict[str, str]) -> dict[str, Any]:
    """Return PyMySQL's arguments for an encrypted connection, or for none."""
    asked = given.get("ssl_mode", "verify_identity" if "ssl_ca" in given else "").lower()
    if asked in {"", "disabled"}:
        return {"ssl_disabled": True} if asked else {}
    if asked not in _MODES:
        raise CannotConnect(f"MySQL: ssl-mode is one of {', '.join(_MODES)}")
    try:
        context = ssl.create_default_context(cafile=given.get("ssl_ca"))
        context.check_hostname = asked == "verify_identity"
        if asked == "required":
            context.verify_mode = ssl.CERT_NONE
        if "ssl_cert" in given:
            context.load_cert_chain(given["ssl_cert"], given.get("ssl_key"))
    except OSError as error:
        raise CannotConnect(f"MySQL: the certificates cannot be read: {error}") from None
    return {"ssl": context}
