"""Engines of URLs and connections; errors do not show secrets."""

import asyncio
import subprocess
import sys
from pathlib import Path

import psycopg
import pymysql
import pytest

import rowq
from rowq import engines
from rowq.engines import engine_for_connection, engine_for_url, without_password

SCHEMES = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "postgresql+psycopg": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "mysql+pymysql": "mysql",
    "mariadb+pymysql": "mysql",
    "oracle": "oracle",
    "oracle+oracledb": "oracle",
    "sqlserver": "sqlserver",
    "mssql": "sqlserver",
    "sqlserver+pyodbc": "sqlserver",
    "mssql+pyodbc": "sqlserver",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scheme_selects_engine(scheme: str) -> None:
    assert engine_for_url(f"{scheme}://host/database").name == SCHEMES[scheme]


@pytest.mark.parametrize("url", ["", "host/database", "oracle+x://user:secret@host/x"])
def test_unknown_scheme_is_refused_without_the_url(url: str) -> None:
    with pytest.raises(
        rowq.EngineUnknown, match=r"mysql://.*postgresql://.*sqlserver://"
    ) as refused:
        engine_for_url(url)
    assert "secret" not in str(refused.value)


def test_subclass_of_driver_connection_is_accepted() -> None:
    class Special(psycopg.Connection[tuple[object, ...]]):
        pass

    class Other(pymysql.connections.Connection):
        pass

    assert engine_for_connection(Special.__new__(Special)).name == "postgres"
    assert engine_for_connection(Other.__new__(Other)).name == "mysql"


def test_other_object_is_refused_as_connection() -> None:
    with pytest.raises(
        rowq.EngineUnknown, match=r"connection builtins\.int; expected one of .*psycopg"
    ):
        rowq.Queue(1)


def test_url_as_connection_is_refused_with_a_hint() -> None:
    for kind, function in ((rowq.Queue, "connect"), (rowq.AsyncQueue, "connect_async")):
        with pytest.raises(
            rowq.EngineUnknown, match=rf"did you mean rowq\.{function}\(url\)"
        ) as refused:
            kind("postgresql://user:secret@host/x")
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("mariadb://me:secret@host:3306/", "mariadb://me:***@host:3306/"),
        ("postgresql://me:s@ec:ret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:secret@host", "postgresql://:***@host"),
        ("postgresql:///db?user=me&password=secret", "postgresql:///db?user=me&password=***"),
        ("postgresql:///db?sslpassword=secret&x=1", "postgresql:///db?sslpassword=***&x=1"),
        ("sqlserver://me:s%3Bec@host/db?encrypt=no", "sqlserver://me:***@host/db?encrypt=no"),
    ],
)
def test_url_is_shown_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:secret@host/db?secret",
        "postgresql://me:secret@host/db?prepare_threshold=none&secret",
        "mysql://me:secret@host:secret/db",
        "mysql://me:secret@host/db?secret",
        "mysql://me:secret@host/db?connect_timeout=secret",
        "oracle://me:secret@host:secret/db",
        "oracle://me:secret@host/db?secret",
        "oracle://me:secret@host/db?connect_timeout=secret",
        "sqlserver://me:secret@host:secret/db",
        "sqlserver://me:secret@host/db?secret",
        "sqlserver://me:secret@host/db?connect_timeout=secret",
    ],
)
def test_malformed_url_is_not_shown(url: str) -> None:
    with pytest.raises(rowq.CannotConnect, match="malformed") as refused:
        rowq.connect(url)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("scheme", ["mysql", "sqlserver"])
def test_unknown_url_parameter_is_named_without_its_value(scheme: str) -> None:
    with pytest.raises(rowq.CannotConnect, match="passwort") as refused:
        rowq.connect(f"{scheme}://me@host/db?passwort=secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("driver", "extra", "url"),
    [
        ("psycopg", "postgres", "postgresql://host/db"),
        ("pymysql", "mysql", "mysql://host/db"),
        ("oracledb", "oracle", "oracle://host/db"),
        ("pyodbc", "sqlserver", "sqlserver://host/db"),
    ],
)
def test_missing_driver_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, driver: str, extra: str, url: str
) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    with pytest.raises(rowq.DriverMissing, match=rf"pip install 'rowq\[{extra}\]'"):
        rowq.connect(url)


def test_missing_system_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    loads = "raise ImportError('libodbc.so.2: cannot open shared object file')\n"
    (tmp_path / "pyodbc.py").write_text(loads, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pyodbc", raising=False)
    with pytest.raises(rowq.DriverMissing, match=r"libodbc\.so\.2.*install unixODBC"):
        rowq.connect("sqlserver://host/db")


def test_engines_are_found_without_a_driver() -> None:
    program = (
        "import sys; from rowq import engines; print([one.name for one in engines.engines()]);"
        "assert not {'psycopg', 'pymysql', 'pyodbc', 'oracledb'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"['mysql', 'oracle', 'postgres', 'sqlserver']\n"


def test_schemes_and_drivers_are_unique() -> None:
    schemes = [scheme for engine in engines.engines() for scheme in engine.schemes]
    drivers = [engine.driver_package for engine in engines.engines()]
    assert len(schemes) == len(set(schemes))
    assert len(drivers) == len(set(drivers))


@pytest.mark.parametrize(
    ("engine", "scheme"),
    [
        ("PostgreSQL", "postgresql"),
        ("MySQL", "mysql"),
        ("MySQL", "mariadb"),
        ("Oracle", "oracle"),
        ("SQL Server", "sqlserver"),
    ],
)
def test_unreachable_server_raises_at_once(engine: str, scheme: str) -> None:
    if scheme == "sqlserver":
        missing = "pyodbc does not load; to run it: apt-get install unixodbc tdsodbc"
        pytest.importorskip("pyodbc", reason=missing, exc_type=ImportError)
    with pytest.raises(rowq.CannotConnect, match=engine) as refused:
        rowq.connect(f"{scheme}://me:secret@127.0.0.1:1/db")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("engine", "scheme"), [("MySQL", "mysql"), ("SQL Server", "sqlserver")])
def test_engine_without_async_driver_refuses_async(engine: str, scheme: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match=f"AsyncQueue does not support {engine}"):
        asyncio.run(rowq.connect_async(f"{scheme}://me@127.0.0.1:1/db"))
