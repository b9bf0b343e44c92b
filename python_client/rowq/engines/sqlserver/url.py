"""sqlserver:// URLs and their ODBC connection strings.

    sqlserver://user:password@host:1433/database?encrypt=yes&trust_server_certificate=yes
    sqlserver://host/database?driver=FreeTDS

Without a user the driver logs in as the user of the process (Kerberos or Windows). rowq is in the
schema `rowq` of the URL's database. Parameters may be written with hyphens or underscores:

    driver                      name of the driver in odbcinst.ini, or path of its library; default:
                                the newest of Microsoft, else FreeTDS
    instance                    named instance, instead of the port
    connect_timeout             seconds, 10 by default
    encrypt                     yes, no or strict; default: the driver's, which is yes for
                                Microsoft's from version 18
    trust_server_certificate    yes: encrypted, server not verified. FreeTDS verifies no
                                certificate, so there `encrypt` requires this
    host_name_in_certificate    expected name in the certificate, instead of the host
    authentication              such as ActiveDirectoryMsi; Microsoft's drivers only
    multi_subnet_failover       yes: try all addresses of the name at once; Microsoft's only
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from rowq.engines.urls import malformed, parameters_of
from rowq.errors import CannotConnect

_PORT = 1433
_YES_OR_NO = {"yes": "yes", "true": "yes", "1": "yes", "no": "no", "false": "no", "0": "no"}
_ENCRYPT = {**_YES_OR_NO, "mandatory": "yes", "optional": "no", "strict": "strict"}
_FREETDS_ENCRYPTION = {"yes": "require", "no": "request"}
_KNOWN = {
    *("driver", "instance", "connect_timeout", "authentication", "multi_subnet_failover"),
    *("encrypt", "trust_server_certificate", "host_name_in_certificate"),
}
_MICROSOFTS = re.compile(r"ODBC Driver (\d+) for SQL Server", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of a URL, for any driver.

    driver: None if not set. connect_timeout: seconds. attributes: the other parameters.
    """

    driver: str | None
    host: str
    port: int | None
    database: str
    user: str
    password: str
    connect_timeout: int
    attributes: dict[str, str]


def parse_url(url: str) -> Target:
    """Parse `url`.

    Raises CannotConnect for a malformed URL, without showing it: it may contain a secret.
    """
    if "#" in url:
        raise malformed("SQL Server")
    try:
        parts = urlsplit(url)
        parameters = parameters_of(parts.query, _KNOWN, "SQL Server")
        timeout = int(parameters.pop("connect_timeout", "10"))
        port = parts.port
    except ValueError:
        raise malformed("SQL Server") from None
    host, instance = parts.hostname or "localhost", parameters.pop("instance", "")
    return Target(
        driver=parameters.pop("driver", None),
        host=f"{host}\\{instance}" if instance else host,
        port=port if instance else port or _PORT,
        database=unquote(parts.path.lstrip("/")),
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        connect_timeout=timeout,
        attributes=_checked(parameters),
    )


def default_driver(installed: Iterable[str]) -> str:
    """Return the default driver among `installed`; raises CannotConnect if there is none."""
    names = list(installed)
    microsofts = {int(found[1]): name for name in names if (found := _MICROSOFTS.fullmatch(name))}
    if microsofts:
        return microsofts[max(microsofts)]
    if freetds := [name for name in names if is_freetds(name)]:
        return freetds[0]
    raise CannotConnect(
        "SQL Server: no ODBC driver found; install msodbcsql18 or FreeTDS (Debian: tdsodbc)"
    )


def is_freetds(driver: str) -> bool:
    """Whether a driver's name or path is FreeTDS's."""
    return "freetds" in driver.lower() or "tdsodbc" in driver.lower()


def connection_string(target: Target, driver: str) -> str:
    """Return the ODBC connection string; raises CannotConnect for what `driver` cannot do."""
    pairs = {"DRIVER": driver, **(_freetds(target) if is_freetds(driver) else _microsofts(target))}
    pairs |= {"DATABASE": target.database, "UID": target.user, "PWD": target.password}
    pairs["APP"] = "rowq"
    values = {name: quoted(value) for name, value in pairs.items() if value}
    if is_freetds(driver) and any(
        "}}" in value for value in values.values() if value.startswith("{")
    ):
        raise CannotConnect(
            "SQL Server: FreeTDS before 1.4 cannot send } with ; or a leading { in user, password"
            " or database; use Microsoft's driver"
        )
    return "".join(f"{name}={value};" for name, value in values.items())


def quoted(value: str) -> str:
    """Quote a value for a connection string, in braces only if needed.

    Raises CannotConnect for a NUL character.
    """
    if "\0" in value:
        raise CannotConnect("SQL Server: the URL must not contain NUL characters")
    if ";" in value or value.startswith("{") or value != value.strip():
        return "{" + value.replace("}", "}}") + "}"
    return value


def _microsofts(target: Target) -> dict[str, str]:
    attributes = target.attributes
    by_user = target.user or "authentication" in attributes
    return {
        "SERVER": target.host if target.port is None else f"{target.host},{target.port}",
        "Encrypt": attributes.get("encrypt", ""),
        "TrustServerCertificate": attributes.get("trust_server_certificate", ""),
        "HostNameInCertificate": attributes.get("host_name_in_certificate", ""),
        "Authentication": attributes.get("authentication", ""),
        "MultiSubnetFailover": attributes.get("multi_subnet_failover", ""),
        "Trusted_Connection": "" if by_user else "yes",
    }


def _freetds(target: Target) -> dict[str, str]:
    attributes = target.attributes
    encrypt = attributes.get("encrypt", "")
    missing = attributes.keys() - {"encrypt", "trust_server_certificate"}
    if encrypt == "strict" or missing:
        name = min(missing, default="encrypt=strict")
        raise CannotConnect(f"SQL Server: FreeTDS does not support {name}")
    if encrypt == "yes" and attributes.get("trust_server_certificate") != "yes":
        raise CannotConnect(
            "SQL Server: FreeTDS does not verify certificates; use trust_server_certificate=yes"
            " or Microsoft's driver"
        )
    return {
        "SERVER": target.host,
        "PORT": "" if target.port is None else str(target.port),
        # Version 7.4 supports Unicode, 64-bit row counts and microseconds.
        "TDS_Version": "7.4",
        "ClientCharset": "UTF-8",
        "Encryption": _FREETDS_ENCRYPTION.get(encrypt, ""),
        "Trusted_Connection": "" if target.user else "yes",
    }


def _checked(parameters: dict[str, str]) -> dict[str, str]:
    """Normalize the values of the parameters."""
    words = {
        "encrypt": _ENCRYPT,
        "trust_server_certificate": _YES_OR_NO,
        "multi_subnet_failover": _YES_OR_NO,
    }
    checked = dict(parameters)
    for name, spellings in words.items():
        if name in parameters:
            word = spellings.get(parameters[name].lower())
            if word is None:
                choice = ", ".join(sorted(set(spellings.values())))
                raise CannotConnect(f"SQL Server: {name} must be one of {choice}")
            checked[name] = word
    return checked
