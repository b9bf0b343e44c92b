"""Which engine serves a URL or a connection, and that no secret is shown."""

import sys

import psycopg
import pytest

import rowq
from rowq import engines
from rowq.engines import engine_for_connection, engine_for_url, without_password


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_scheme_names_its_engine(scheme: str) -> None:
    assert engine_for_url(f"{scheme}://host/database").name == "postgres"


@pytest.mark.parametrize("url", ["", "host/database", "oracle+x://user:secret@host/x"])
def test_an_unknown_scheme_is_refused_without_showing_the_url(url: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match="postgresql://") as refused:
        engine_for_url(url)
    assert "secret" not in str(refused.value)


def test_a_subclass_of_a_drivers_connection_is_known() -> None:
    class Special(psycopg.Connection[tuple[object, ...]]):
        pass

    assert engine_for_connection(Special.__new__(Special)).name == "postgres"


def test_something_else_is_no_connection() -> None:
    with pytest.raises(rowq.EngineUnknown, match=r"builtins\.str is no connection of psycopg"):
        rowq.Queue("postgresql://user:secret@host/x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:s@ec:ret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://:secret@host", "postgresql://:***@host"),
        ("postgresql:///db?user=me&password=secret", "postgresql:///db?user=me&password=***"),
        ("postgresql:///db?sslpassword=secret&x=1", "postgresql:///db?sslpassword=***&x=1"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_malformed_url_is_not_shown() -> None:
    with pytest.raises(rowq.CannotConnect, match="malformed") as refused:
        rowq.connect("postgresql://me:secret@host/db?secret")
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_missing_driver_comes_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(rowq.DriverMissing, match=r"pip install 'rowq\[postgres\]'"):
        rowq.connect("postgresql://host/db")


def test_engines_are_found_without_importing_a_driver() -> None:
    assert [one.name for one in engines.engines()] == ["postgres"]
    assert len({scheme for one in engines.engines() for scheme in one.schemes}) >= 2


def test_nobody_listening_is_said_at_once() -> None:
    with pytest.raises(rowq.CannotConnect, match="PostgreSQL"):
        rowq.connect("postgresql://me:secret@127.0.0.1:1/db")
