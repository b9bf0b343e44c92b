"""Errors of SQL Server and Oracle for a missing role."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import oracledb
import pytest

from rowq.engines.oracle.engine import ENGINE as ORACLE
from rowq.engines.sqlserver.engine import ENGINE as SQLSERVER
from rowq.rights import explain_denial, remedy_of

pyodbc = pytest.importorskip(
    "pyodbc",
    reason="no unixODBC; to run it: apt-get install unixodbc tdsodbc",
    exc_type=ImportError,
)
ORIGIN = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"


def sqlserver_error(words: str) -> Exception:
    error: Exception = pyodbc.ProgrammingError("42000", f"[42000] {ORIGIN}{words} (SQLExecDirectW)")
    return error


def oracle_error(number: int, text: str) -> Exception:
    return oracledb.DatabaseError(SimpleNamespace(code=number, __str__=lambda: text), text)


def test_sqlserver_denial_names_role_and_member() -> None:
    denied = sqlserver_error(
        "The EXECUTE permission was denied on the object 'ListDead', database 'x', schema 'rowq'."
        " (229)"
    )
    connection = SimpleNamespace(getinfo=lambda _: "a]b")
    explain_denial(SQLSERVER, connection, "list_dead", denied)
    assert remedy_of(denied) == (
        'needs role rowq_monitor or rowq_admin: a DBA can run "alter role rowq_monitor add member'
        ' [a]]b];"'
    )


@pytest.mark.parametrize(
    "expected",
    [
        "PLS-00201: identifier 'ROWQ.LIST_DEAD' must be declared",
        "PLS-00904: insufficient privilege to access object ROWQ.ROWQ_LOOK",
    ],
)
def test_oracle_denial_names_role_and_user(expected: str) -> None:
    denied = oracle_error(6550, f"ORA-06550: line 1, column 7:\n{expected}")
    connection = SimpleNamespace(username="shop")
    explain_denial(ORACLE, connection, "enqueue", denied)
    assert remedy_of(denied) == (
        'needs role rowq_producer or rowq_admin: a DBA can run "grant rowq_producer to shop;"'
    )


@pytest.mark.parametrize(
    ("engine", "other"),
    [
        (SQLSERVER, sqlserver_error("Invalid object name 'x'. (208)")),
        (ORACLE, oracle_error(942, "ORA-00942: table or view does not exist")),
        (ORACLE, oracle_error(6550, "ORA-06550: line 1:\nPLS-00306: wrong number of arguments")),
    ],
)
def test_other_error_gets_no_role_note(engine: Any, other: Exception) -> None:
    explain_denial(engine, SimpleNamespace(), "enqueue", other)
    assert remedy_of(other) == ""
