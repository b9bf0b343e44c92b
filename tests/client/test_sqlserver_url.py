"""ODBC connection strings of sqlserver:// URLs, and what the driver sends."""

import re
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rowq
from rowq.engines.sqlserver.calls import call_of
from rowq.engines.sqlserver.engine import ENGINE
from rowq.engines.sqlserver.url import (
    connection_string,
    default_driver,
    is_freetds,
    parse_url,
    quoted,
)
from tests.client.proxy import socket_option
from tests.client.tds_listener import DRIVERS, TdsListener

MICROSOFTS = "ODBC Driver 18 for SQL Server"
HOSTILE = [
    *("a;b", "a}b", "{a", "{", "a;", "a}", "}", "p=w", " lead", "trail ", "a{b}c", '"q"', "'"),
    *("[x]", "%41", "#?/@:", "\\", "$(x)", "a\nb", "\u00fc\u20ac\U0001f4a5", ";ENCRYPT=no"),
]
# Passwords that FreeTDS before 1.4 misreads.
BRACES = ["a;b}c", "{a}b", "};", "a;}", "};PWD=x;UID=y"]


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        (
            "sqlserver://me:p%40ss@host/d%20b",
            "SERVER=host,1433;DATABASE=d b;UID=me;PWD=p@ss;APP=rowq;",
        ),
        ("mssql://host:1434", "SERVER=host,1434;Trusted_Connection=yes;APP=rowq;"),
        (
            "sqlserver://me@host/db?instance=X",
            "SERVER=host\\X;DATABASE=db;UID=me;APP=rowq;",
        ),
        (
            "sqlserver://me@host:9/?instance=X",
            "SERVER=host\\X,9;UID=me;APP=rowq;",
        ),
        (
            "sqlserver://me@host/?encrypt=Optional&trust-server-certificate=TRUE",
            "SERVER=host,1433;Encrypt=no;TrustServerCertificate=yes;UID=me;APP=rowq;",
        ),
        (
            "sqlserver://host/db?authentication=ActiveDirectoryMsi&encrypt=strict"
            "&host_name_in_certificate=x&multi_subnet_failover=yes",
            "SERVER=host,1433;Encrypt=strict;HostNameInCertificate=x;"
            "Authentication=ActiveDirectoryMsi;MultiSubnetFailover=yes;DATABASE=db;APP=rowq;",
        ),
        ("sqlserver:///db", "SERVER=localhost,1433;Trusted_Connection=yes;DATABASE=db;APP=rowq;"),
    ],
)
def test_url_sets_connection_parameters(url: str, meant: str) -> None:
    answer = connection_string(parse_url(url), MICROSOFTS)
    assert answer == f"DRIVER={MICROSOFTS};{meant}"


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("", ""),
        ("?encrypt=no", "Encryption=request;"),
        ("?encrypt=yes&trust_server_certificate=yes", "Encryption=require;"),
    ],
)
def test_freetds_gets_its_own_attributes(query: str, meant: str) -> None:
    answer = connection_string(parse_url(f"sqlserver://me:x@host/db{query}"), "FreeTDS")
    assert answer == (
        "DRIVER=FreeTDS;SERVER=host;PORT=1433;TDS_Version=7.4;ClientCharset=UTF-8;"
        f"{meant}DATABASE=db;UID=me;PWD=x;APP=rowq;"
    )


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("encrypt=yes", "FreeTDS does not verify certificates"),
        ("encrypt=strict", "FreeTDS does not support encrypt=strict"),
        ("authentication=ActiveDirectoryMsi", "FreeTDS does not support authentication"),
        ("host_name_in_certificate=x", "FreeTDS does not support host_name_in_certificate"),
    ],
)
def test_option_that_freetds_lacks_is_refused(query: str, fault: str) -> None:
    with pytest.raises(rowq.CannotConnect, match=fault):
        connection_string(parse_url(f"sqlserver://me@host?{query}"), "FreeTDS")


@pytest.mark.parametrize("word", ["encrypt", "trust_server_certificate", "multi_subnet_failover"])
def test_invalid_option_value_is_refused_without_the_value(word: str) -> None:
    with pytest.raises(
        rowq.CannotConnect, match=rf"{word} must be one of no, (strict, )?yes"
    ) as met:
        parse_url(f"sqlserver://me:secret@host?{word}=secret")
    assert "secret" not in str(met.value)


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (["FreeTDS", MICROSOFTS, "ODBC Driver 17 for SQL Server"], MICROSOFTS),
        (["SQL Server", "ODBC Driver 9 for SQL Server", MICROSOFTS], MICROSOFTS),
        (["PostgreSQL Unicode", "FreeTDS"], "FreeTDS"),
    ],
)
def test_newest_microsoft_driver_precedes_freetds(installed: list[str], chosen: str) -> None:
    assert default_driver(installed) == chosen


def test_missing_odbc_driver_names_the_packages() -> None:
    with pytest.raises(
        rowq.CannotConnect, match=r"no ODBC driver found; install msodbcsql18.*tdsodbc"
    ):
        default_driver(["PostgreSQL Unicode", "SQLite3"])


def read_back(text: str) -> dict[str, str]:
    """Parse a connection string by the rules of ODBC: a single brace ends a value."""
    pairs = re.findall(r"(\w+)=(\{(?:[^}]|\}\})*\}|[^;]*);", text)
    return {
        name: value[1:-1].replace("}}", "}") if value.startswith("{") else value
        for name, value in pairs
    }


@given(st.text(min_size=1).filter(lambda text: "\0" not in text))
@example("};PWD=x")
@example("}}")
@example("{{}}")
def test_password_cannot_add_attributes(password: str) -> None:
    url = f"sqlserver://me:{quote(password, safe='', errors='surrogatepass')}@host/db"
    answer = read_back(connection_string(parse_url(url), MICROSOFTS))
    assert answer.keys() == {"DRIVER", "SERVER", "DATABASE", "UID", "PWD", "APP"}
    assert answer["PWD"] == password
    assert answer["UID"] == "me"


def test_nul_is_refused_without_the_value() -> None:
    with pytest.raises(rowq.CannotConnect, match="NUL") as refused:
        connection_string(parse_url("sqlserver://me:secret%00@host"), MICROSOFTS)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("password", BRACES)
def test_brace_misread_by_old_freetds_is_refused(password: str) -> None:
    target = parse_url(f"sqlserver://me:{quote(password, safe='')}@host")
    with pytest.raises(rowq.CannotConnect, match=r"FreeTDS before 1\.4"):
        connection_string(target, "FreeTDS")


@pytest.mark.parametrize("value", ["plain", "a}b", "a{b", "p=w"])
def test_braces_are_omitted_if_not_needed(value: str) -> None:
    assert quoted(value) == value


@pytest.fixture
def listener() -> Iterator[TdsListener]:
    started = TdsListener()
    yield started
    started.close()


@pytest.mark.parametrize("password", [*HOSTILE, *BRACES])
@pytest.mark.parametrize("driver", DRIVERS)
def test_driver_sends_the_password_unchanged(
    listener: TdsListener, driver: str, password: str
) -> None:
    url = listener.url(driver, ("u;ser", password), "d]b")
    if is_freetds(driver) and password in BRACES:
        with pytest.raises(rowq.CannotConnect, match="FreeTDS before"):
            rowq.connect(url)
        return
    rowq.connect(url).close()
    assert listener.logins == [
        {"user": "u;ser", "password": password, "application": "rowq", "database": "d]b"}
    ]


@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems have other options; to run it: Linux"
)
@pytest.mark.parametrize("driver", DRIVERS)
def test_connection_has_keepalive_of_one_minute(listener: TdsListener, driver: str) -> None:
    options = {"USER_TIMEOUT": 60_000, "KEEPIDLE": 30, "KEEPINTVL": 10, "KEEPCNT": 3}
    connection = ENGINE.connect(listener.url(driver))
    assert {option: socket_option(listener.port, f"TCP_{option}") for option in options} == options
    ENGINE.close(connection)


@pytest.mark.promise("P20")
@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("length", [1, 9, 3999, 4000, 4001, 7999, 8000, 8001, 20_000])
def test_driver_truncates_no_argument(listener: TdsListener, driver: str, length: int) -> None:
    text = ("\U0001f4a5xyz" * length)[:length]
    data = (bytes(range(1, 256)) * length)[:length]
    connection = ENGINE.connect(listener.url(driver))
    before = len(listener.requests)
    nothing = dict.fromkeys(name for name, _ in call_of("enqueue").parameters)
    for more in ({"body": text}, {"body_binary": data}):
        assert ENGINE.call(connection, "enqueue", nothing | {"queue_name": "orders"} | more) == []
    ENGINE.close(connection)
    sent = listener.requests[before : before + 2]
    assert ["rowq.Enqueue".encode("utf-16-le") in packet for packet in sent] == [True, True]
    assert [text.encode("utf-16-le") in sent[0], data in sent[1]] == [True, True]
