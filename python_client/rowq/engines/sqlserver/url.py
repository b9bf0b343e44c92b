"""sqlserver:// URLs, and what they mean to an ODBC driver.

    sqlserver://user:password@host:1433/database?encrypt=yes&trust_server_certificate=yes
    sqlserver://host/database?driver=FreeTDS

Without a user the driver logs in as whoever runs the program (Kerberos, or Windows itself); rowq is
in the schema `rowq` of the URL's database. Parameters may be written with hyphens or underscores:

    driver                      name of the driver in odbcinst.ini, or path of its library; by
                                default the newest of Microsoft's, else FreeTDS
    instance                    named instance, instead of the port
    connect_timeout             seconds, 10 by default
    encrypt                     yes, no or strict; by default what the driver does, which is yes
                                for Microsoft's from 18 on
    trust_server_certificate    yes: encrypted, whoever the server is. FreeTDS checks no
                                certificate, so there `encrypt` needs this word
    host_name_in_certificate    name to look for in the certificate, instead of the host's
    authentication              such as ActiveDirectoryMsi; Microsoft's drivers only
    multi_subnet_failover       yes: try all addresses of the name at once; Microsoft's only
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

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
    """What a URL means, whichever driver is used.

    driver: None when the URL names none. connect_timeout: seconds.
    attributes: the URL's other parameters, by their names there.
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
    """Return what `url` says.

    Raises CannotConnect for a malformed URL, without showing it: it may hold a secret.
    """
    if "#" in url:
        raise malformed("SQL Server")
    try:
        parts = urlsplit(url)
        given = parameters_of(parts.query, _KNOWN, "SQL Server")
        timeout = int(given.pop("connect_timeout", "10"))
        port = parts.port
    except ValueError:
        raise malformed("SQL Server") from None
    host, instance = parts.hostname or "localhost", given.pop("instance", "")
    return Target(
        driver=given.pop("driver", None),
        host=f"{host}\\{instance}" if instance else host,
        port=port if instance else port or _PORT,
        database=unquote(parts.path.lstrip("/")),
        user=_secret(parts, "username"),
        password=_secret(parts, "password"),
        connect_timeout=timeout,
        attributes=_checked(given),
    )


def default_driver(installed: Iterable[str]) -> str:
    """Return the driver to use when the URL names none.

    Raises CannotConnect with a hint when there is none for SQL Server among `installed`.
    """
    names = list(installed)
    microsofts = {int(found[1]): name for name in names if (found := _MICROSOFTS.fullmatch(name))}
    if microsofts:
        return microsofts[max(microsofts)]
    if freetds := [name for name in names if is_freetds(name)]:
        return freetds[0]
    raise CannotConnect(
        "SQL Server: unixODBC knows no driver for it. Install Microsoft's ODBC Driver 18"
        " (package msodbcsql18), or FreeTDS (Debian: apt-get install tdsodbc)"
    )


def is_freetds(driver: str) -> bool:
    """Whether a driver's name or path is FreeTDS's."""
    return "freetds" in driver.lower() or "tdsodbc" in driver.lower()


def connection_string(target: Target, driver: str) -> str:
    """Return the ODBC connection string; raises CannotConnect for what `driver` cannot do."""
    pairs = {"DRIVER": driver, **(_freetds(target) if is_freetds(driver) else _microsofts(target))}
    pairs |= {"DATABASE": target.database, "UID": target.user, "PWD": target.password}
    pairs["APP"] = "rowq"
    said = {name: quoted(value) for name, value in pairs.items() if value}
    if is_freetds(driver) and any(
        "}}" in value for value in said.values() if value.startswith("{")
    ):
        raise CannotConnect(
            "SQL Server: FreeTDS before 1.4 misreads a } in a user, password or database that also"
            " holds a semicolon, or begins with a brace; use Microsoft's driver, or change it"
        )
    return "".join(f"{name}={value};" for name, value in said.items())


def quoted(value: str) -> str:
    """Return a value as a connection string holds it, in braces only where that is needed.

    Raises CannotConnect for a character that no connection string can hold.
    """
    if "\0" in value:
        raise CannotConnect("SQL Server: the URL holds a NUL character")
    if ";" in value or value.startswith("{") or value != value.strip():
        return "{" + value.replace("}", "}}") + "}"
    return value


def _microsofts(target: Target) -> dict[str, str]:
    given = target.attributes
    by_user = target.user or "authentication" in given
    return {
        "SERVER": target.host if target.port is None else f"{target.host},{target.port}",
        "Encrypt": given.get("encrypt", ""),
        "TrustServerCertificate": given.get("trust_server_certificate", ""),
        "HostNameInCertificate": given.get("host_name_in_certificate", ""),
        "Authentication": given.get("authentication", ""),
        "MultiSubnetFailover": given.get("multi_subnet_failover", ""),
        "Trusted_Connection": "" if by_user else "yes",
    }


def _freetds(target: Target) -> dict[str, str]:
    given = target.attributes
    encrypt, trusts = given.get("encrypt", ""), given.get("trust_server_certificate") == "yes"
    lacking = given.keys() - {"encrypt", "trust_server_certificate"}
    if encrypt == "strict" or lacking:
        raise CannotConnect(f"SQL Server: FreeTDS has no {min(lacking, default='encrypt=strict')}")
    if encrypt == "yes" and not trusts:
        raise CannotConnect(
            "SQL Server: FreeTDS checks no certificate. Say trust_server_certificate=yes if that"
            " will do, or use Microsoft's driver"
        )
    return {
        "SERVER": target.host,
        "PORT": "" if target.port is None else str(target.port),
        # This version has Unicode both ways, 64 bit row counts, and dates with microseconds.
        "TDS_Version": "7.4",
        "ClientCharset": "UTF-8",
        "Encryption": _FREETDS_ENCRYPTION.get(encrypt, ""),
        "Trusted_Connection": "" if target.user else "yes",
    }


def _checked(given: dict[str, str]) -> dict[str, str]:
    """Return the parameters with their words in one spelling."""
    words = {
        "encrypt": _ENCRYPT,
        "trust_server_certificate": _YES_OR_NO,
        "multi_subnet_failover": _YES_OR_NO,
    }
    checked = dict(given)
    for name, spellings in words.items():
        if name in given:
            word = spellings.get(given[name].lower())
            if word is None:
                choice = ", ".join(sorted(set(spellings.values())))
                raise CannotConnect(f"SQL Server: {name} is one of {choice}")
            checked[name] = word
    return checked


def _secret(parts: SplitResult, name: str) -> str:
    return unquote(getattr(parts, name) or "")
