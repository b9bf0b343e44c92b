"""The test dialect of Oracle, without a database."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import oracledb
import pytest

from rowq.contract import Parameter, Routine, load_contract
from rowq.errors import CannotConnect
from rowq.tools.engines.oracle.packages import subprograms
from tests.engines.base import Unavailable, free_port
from tests.engines.oracle.catalog import type_of
from tests.engines.oracle.dialect import OracleDialect, execute_named
from tests.engines.oracle.providers import OracleProvider
from tests.engines.oracle.session import as_account, open_session, owner_in, spelled
from tests.engines.values import given
from tests.static.each import for_each
from tests.static.sources import EXAMPLES, SQL
from tests.static.test_contract import LONG_TEXTS

URL = "oracle://system:secret@host:1522/service?protocol=tcps"


@pytest.mark.parametrize(
    ("statement", "here"),
    [
        ("select 1", "select 1 from dual"),
        ("select a from t where b = %s and c = %s", "select a from t where b = :1 and c = :2"),
        ("insert into t (a) values (%s)", "insert into t (a) values (:1)"),
        (
            "insert into t (a, b) values (%s, %s), (%s, %s)",
            "insert into t (a, b) select :1, :2 from dual union all select :3, :4 from dual",
        ),
        (
            "create table t (a varchar(9), b bigint not null)",
            "create table t (a varchar2(9), b number(19) not null)",
        ),
        ("select count(*) from rowq.queue", "select count(*) from rowq_queue"),
        ("commit", "commit"),
    ],
)
def test_statement_is_translated_for_19c(statement: str, here: str) -> None:
    assert spelled(statement) == here


def test_url_of_other_account_keeps_database_and_options() -> None:
    url = as_account(URL, "ROWQ_TEST_A", "b")
    assert url == "oracle://ROWQ_TEST_A:b@host:1522/service?protocol=tcps"
    assert owner_in(url) == "ROWQ_TEST_A"


def test_connection_error_hides_the_password() -> None:
    url = f"oracle://system:secret@127.0.0.1:{free_port()}/service?connect_timeout=5"
    with pytest.raises(CannotConnect, match=r"^Oracle: DPY-6005") as caught:
        open_session(url, autocommit=True)
    assert "secret" not in str(caught.value)
    with pytest.raises(Unavailable, match="DPY-6005"):
        OracleProvider().from_url(url)


@pytest.mark.parametrize(
    ("name", "kind", "value", "can"),
    [
        ("queue_name", "text", "a", True),
        ("queue_name", "text", "", False),
        ("queue_name", "text", "x" * 32_768, False),
        ("body", "text", "", True),
        ("body", "text", "x" * 70_000, True),
        ("headers", "json", {}, True),
        ("message_ids", "int64s", [], True),
        ("wait_seconds", "float", float("nan"), False),
        ("wait_seconds", "float", float("inf"), False),
        ("wait_seconds", "float", 1e300, False),
        ("wait_seconds", "float", 5e-324, False),
        ("wait_seconds", "float", 0.0, True),
        ("run_at", "timestamp", "infinity", False),
    ],
)
def test_can_pass_knows_oracles_limits(name: str, kind: str, value: object, can: bool) -> None:
    assert OracleDialect().can_pass(Parameter(name, kind, None, "in"), value) is can


def test_only_long_texts_are_lobs() -> None:
    kinds = {name: type_of(Parameter(name, "text", None, "in")) for name in (*LONG_TEXTS, "x")}
    assert kinds == {**dict.fromkeys(LONG_TEXTS, "clob"), "x": "varchar2"}


class Recorder:
    """A connection and its cursors that only record calls."""

    def __init__(self) -> None:
        self.text = ""
        self.binds: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}

    def cursor(self) -> Recorder:
        return self

    def close(self) -> None:
        """Close it."""

    def setinputsizes(self, **sizes: Any) -> None:
        """Record the types of binds."""
        self.sizes = sizes

    def execute(self, text: str, binds: dict[str, Any]) -> None:
        """Record a call."""
        self.text, self.binds = text, binds

    def createlob(self, kind: Any, data: Any) -> tuple[Any, Any]:
        """Return a LOB's type and data."""
        return kind, data


SENT: dict[str, Any] = {
    "binary": (oracledb.DB_TYPE_BLOB, b"\0"),
    "boolean": 1,
    "float": 1.5,
    "int32": 1,
    "int64": 1,
    "int64s": (oracledb.DB_TYPE_CLOB, "[1, 2]"),
    "json": (oracledb.DB_TYPE_CLOB, '{"a": 1}'),
    "text": "x",
    "timestamp": datetime(2026, 1, 1, 1),  # noqa: DTZ001 - as the column has it
}
SIGNATURES = {
    subprogram.name: subprogram.parameters
    for subprogram in subprograms(SQL / "oracle" / "routines")
}


@for_each(load_contract().of("oracle").values())
def test_tests_call_routines_as_specified(routine: Routine) -> None:
    parameters = given(routine)
    recorder = Recorder()
    examples = {parameter.name: EXAMPLES[parameter.type] for parameter in parameters}
    execute_named(recorder, routine, examples, "rows")
    assert tuple(re.findall(r"(p_\w+) => :\1\b", recorder.text)) == SIGNATURES[routine.name]
    wanted = {
        f"p_{parameter.name}": (oracledb.DB_TYPE_CLOB, "x")
        if parameter.name in LONG_TEXTS
        else SENT[parameter.type]
        for parameter in parameters
    }
    assert recorder.binds == {**wanted, "p_rows": "rows"}
    assert recorder.sizes.keys() == {
        name for name, value in wanted.items() if not isinstance(value, tuple)
    }


def test_null_bind_has_a_type() -> None:
    recorder, routine = Recorder(), load_contract().routines["enqueue"]
    nothing = {parameter.name: None for parameter in given(routine)}
    execute_named(recorder, routine, nothing, "rows")
    assert recorder.sizes.keys() == {f"p_{name}" for name in nothing}
    assert recorder.sizes["p_body_binary"] == oracledb.DB_TYPE_BLOB
