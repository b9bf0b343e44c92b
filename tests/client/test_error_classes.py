"""Error classes of each engine, compared with docs/python/errors.md.

The errors are constructed as the drivers do.
"""

import re
from collections.abc import Callable, Iterator

import psycopg
import pymysql
import pytest
from oracledb.errors import _Error

import rowq
from rowq.contract import load_contract
from rowq.engines import engines, is_driver_error
from rowq.engines.base import Engine
from rowq.errors import REFUSALS
from tests.static.sources import ROOT

PAGE = (ROOT / "docs" / "python" / "errors.md").read_text(encoding="utf-8")
CLASSES = ("connection lost", "wrong server", "rolled back", "transient", "refused", "permanent")
ENGINES = {"PostgreSQL": "postgres", "MariaDB, MySQL": "mysql", "SQL Server": "sqlserver"}
ENGINES["Oracle"] = "oracle"


def postgres_error(code: str) -> Exception:
    if code in REFUSALS:

        class RefusedByRoutine(psycopg.DatabaseError):
            sqlstate = code

        return RefusedByRoutine(words_of(code))
    return psycopg.errors.lookup(code)("said by the server")


def mysql_error(code: str) -> Exception:
    number, _, more = code.partition(" ")
    option = more.strip("()")
    words = f"The server is running with the --{option} option" if option else "said"
    return pymysql.err.OperationalError(
        int(number), words_of(option) if option in REFUSALS else words
    )


def words_of(number: str) -> str:
    """Return the text of a refusal, or some other text."""
    return f"{number} {REFUSALS[number].name}: said" if number in REFUSALS else "said"


def sqlserver_error(code: str) -> Exception:
    pyodbc = pytest.importorskip(
        "pyodbc", reason="no unixODBC; to run it: apt-get install unixodbc", exc_type=ImportError
    )
    origin = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
    text = f"[HY000] {origin}{words_of(f'RQ{code[2:]}')} ({code}) (SQLExec)"
    error: Exception = pyodbc.Error("HY000", text)
    return error


def oracle_error(code: str) -> Exception:
    error = _Error(f"ORA-{int(code):05}: {words_of(f'RQ{code[2:]}')}", code=int(code))
    made: Exception = error.exc_type(error)
    return made


def oracle_error_of_the_driver(number: int) -> Exception:
    error = _Error(f"DPY-{number}: said by the driver")
    made: Exception = error.exc_type(error)
    return made


MADE: dict[str, Callable[[str], Exception]] = {
    "postgres": postgres_error,
    "mysql": mysql_error,
    "sqlserver": sqlserver_error,
    "oracle": oracle_error,
}


def table() -> Iterator[tuple[str, str, str]]:
    """Yield class, engine and code for every code of the page's table."""
    text = PAGE.partition("<!-- errors -->\n")[2].partition("<!-- end of errors -->")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    heads, _, *body = rows
    for happened, _, *cells in body:
        for engine, codes in zip(heads[2:], cells, strict=True):
            for code in codes.split(", "):
                yield re.split(r"[:,]", happened)[0], ENGINES[engine], code


def classes_of(engine: Engine, error: Exception) -> set[str]:
    """Return the classes of an error."""
    answers = {
        "connection lost": engine.is_connection_lost(error),
        "wrong server": engine.is_wrong_server(error),
        "rolled back": engine.is_rolled_back(error),
        "transient": engine.is_transient(error),
        "refused": engine.refusal(error) is not None,
    }
    return {name for name, answer in answers.items() if answer}


def engine_named(name: str) -> Engine:
    return next(engine for engine in engines() if engine.name == name)


def test_table_has_every_class_for_every_engine() -> None:
    assert {row[:2] for row in table()} == {(c, e) for c in CLASSES for e in ENGINES.values()}


@pytest.mark.parametrize(("happened", "engine", "code"), [pytest.param(*row) for row in table()])
def test_error_has_the_class_of_the_page(happened: str, engine: str, code: str) -> None:
    error = MADE[engine](code)
    found = classes_of(engine_named(engine), error)
    # A worker retries everything except refusals and permanent errors; each error has one other
    # class.
    expected = {"refused": {"refused"}, "permanent": set()}
    assert found == expected.get(happened, {"transient", happened})
    assert is_driver_error(error)
    assert engine_named(engine).was_sent(error)


def test_page_lists_calls_that_are_not_repeated() -> None:
    sentence = re.search(r"^(`enqueue`, .*)\.$", PAGE, re.MULTILINE)
    assert sentence is not None
    routines = load_contract().routines.values()
    once = {routine.name for routine in routines if not routine.repeatable}
    assert set(re.findall(r"`(\w+)`", sentence[1])) == once


def test_ended_session_is_a_lost_connection_on_postgres() -> None:
    """Example: `terminating connection due to conflict with recovery` has 40001."""

    class Fatal(psycopg.errors.SerializationFailure):
        class diag:  # noqa: N801 - psycopg's name
            severity_nonlocalized = "FATAL"

    assert classes_of(engine_named("postgres"), Fatal()) == {"connection lost", "transient"}


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError("the connection is closed"),
        psycopg.OperationalError("consuming input failed: server closed the connection"),
        pymysql.err.InterfaceError(0, ""),
        pymysql.err.InternalError("Packet sequence number wrong - got 3 expected 1"),
        *(oracle_error_of_the_driver(number) for number in (1001, 4011, 4033, 5004, 5006, 6005)),
    ],
    ids=str,
)
def test_driver_errors_are_lost_connections(error: Exception) -> None:
    package = type(error).__module__.partition(".")[0]
    engine = next(engine for engine in engines() if engine.driver_package == package)
    assert classes_of(engine, error) == {"connection lost", "transient"}
    assert engine.was_sent(error)


def test_oserror_of_oracle_driver_is_a_lost_connection() -> None:
    """python-oracledb wraps few; an OSError without a number is the program's."""
    oracle = engine_named("oracle")
    assert oracle.is_connection_lost(TimeoutError(110, "Connection timed out"))
    assert not oracle.is_connection_lost(TimeoutError("a time limit of the caller's"))


@pytest.mark.parametrize("engine", engines(), ids=lambda engine: engine.name)
def test_other_exceptions_have_no_class(engine: Engine) -> None:
    for error in (ValueError("40001"), KeyError(1213), TimeoutError("1205"), rowq.ConnectionLost()):
        assert classes_of(engine, error) == set()
