"""What the tests do to reach an Oracle Database, as far as it can be seen without one."""

from __future__ import annotations

import pytest

from rowq.contract import Parameter
from rowq.errors import CannotConnect
from tests.engines.base import Unavailable, free_port
from tests.engines.oracle_session import as_account, open_session, owner_in, spelled
from tests.engines.oracle_ways import OracleProvider
from tests.helpers.oracle import OracleDialect
from tests.helpers.oracle_catalog import type_of

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
        ("commit", "commit"),
    ],
)
def test_a_statement_of_the_tests_is_spelled_as_19c_takes_it(statement: str, here: str) -> None:
    assert spelled(statement) == here


def test_another_account_has_the_same_database_and_options() -> None:
    url = as_account(URL, "ROWQ_TEST_A", "b")
    assert url == "oracle://ROWQ_TEST_A:b@host:1522/service?protocol=tcps"
    assert owner_in(url) == "ROWQ_TEST_A"


def test_a_server_that_does_not_answer_is_told_without_the_password() -> None:
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
def test_what_a_call_cannot_say_here_is_known(
    name: str, kind: str, value: object, can: bool
) -> None:
    assert OracleDialect().can_say(Parameter(name, kind, None, "in"), value) is can


def test_long_texts_are_lobs_and_others_are_not() -> None:
    kinds = {name: type_of(Parameter(name, "text", None, "in")) for name in ("body", "error", "x")}
    assert kinds == {"body": "clob", "error": "clob", "x": "varchar2"}
