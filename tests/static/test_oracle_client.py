"""The client's calls fit Oracle's package, and it recognizes errors."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import oracledb
import pytest
from oracledb.errors import _Error

import rowq
from rowq.engines.oracle.calls import Lob, call_of, kinds_of
from rowq.engines.oracle.engine import ENGINE
from rowq.tools.engines.oracle.packages import Subprogram, subprograms
from tests.static.each import for_each
from tests.static.sources import CONTRACT, EXAMPLES, SQL, routines_of

ROUTINES: dict[str, Subprogram] = {
    subprogram.name: subprogram for subprogram in subprograms(SQL / "oracle" / "routines")
}

TYPES = {
    "boolean": oracledb.DB_TYPE_NUMBER,
    "float": oracledb.DB_TYPE_NUMBER,
    "int32": oracledb.DB_TYPE_NUMBER,
    "int64": oracledb.DB_TYPE_NUMBER,
    "binary": oracledb.DB_TYPE_RAW,
    "timestamp": oracledb.DB_TYPE_TIMESTAMP,
}


def kind_of(parameter: str) -> str:
    return str(CONTRACT["parameters"][parameter]["type"])


def values_of(routine: str, **given: Any) -> dict[str, Any]:
    """Return the binds of a call; other arguments are null."""
    empty = {name: None for name, _ in call_of(routine).parameters}
    return call_of(routine).values({**empty, **given})


def database_error(number: int, text: str) -> oracledb.DatabaseError:
    """Return an error as the driver raises it."""
    return oracledb.DatabaseError(_Error(f"ORA-{number:05d}: {text}", code=number))


@for_each(routines_of("oracle"))
def test_call_passes_every_parameter_by_name(routine: str) -> None:
    text = call_of(routine).text
    given = re.findall(r"(p_\w+) => :(\w+)", text)
    assert text.startswith(f"begin rowq.{routine}(")
    assert tuple(name for name, _ in given) == ROUTINES[routine].parameters
    assert all(name == bind for name, bind in given)
    assert given[-1][0] == "p_rows"


@for_each(routines_of("oracle"))
def test_binds_match_the_specification(routine: str) -> None:
    call = call_of(routine)
    values = call.values({name: EXAMPLES[kind_of(name)] for name, _ in call.parameters})
    assert (*values, "p_rows") == ROUTINES[routine].parameters
    wanted = {f"p_{name}": TYPES.get(kind_of(name)) for name, _ in call.parameters}
    assert kinds_of(call, values) == {name: kind for name, kind in wanted.items() if kind}


def test_bind_values_are_converted() -> None:
    time = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))
    assert values_of("enqueue", run_at=time)["p_run_at"] == datetime(2026, 1, 1, 1)  # noqa: DTZ001
    assert values_of("enqueue", headers={"a": "é"})["p_headers"] == '{"a":"é"}'
    assert values_of("complete", message_ids=[1, 2])["p_message_ids"] == "[1, 2]"
    assert values_of("drop_queue", force=True)["p_force"] == 1


def test_empty_and_long_texts_are_lobs() -> None:
    assert values_of("enqueue", body="")["p_body"] == Lob("")
    assert values_of("enqueue", body_binary=b"")["p_body_binary"] == Lob(b"")
    assert values_of("enqueue", body="x" * 32_767)["p_body"] == "x" * 32_767
    assert values_of("enqueue", body="é" * 20_000)["p_body"] == Lob("é" * 20_000)
    assert values_of("cancel_many", header_value="")["p_header_value"] == Lob("")
    assert values_of("complete", message_ids=[])["p_message_ids"] == "[]"


def test_value_that_oracle_would_change_is_refused() -> None:
    for given in ({"dedup_key": ""}, {"queue_name": "x" * 40_000}, {"delay_seconds": float("nan")}):
        with pytest.raises(rowq.InvalidArgument):
            values_of("enqueue", **given)


@pytest.mark.parametrize("routine", ["cancel_many", "reset", "list_dead", "discard_dead"])
def test_empty_filter_is_refused(routine: str) -> None:
    with pytest.raises(rowq.InvalidArgument, match="message_type"):
        values_of(routine, message_type="")
    assert values_of(routine, message_type="mail")["p_message_type"] == "mail"
    assert values_of("enqueue", message_type="")["p_message_type"] == ""


def test_rows_have_the_contracts_types() -> None:
    time = datetime(2026, 1, 1)  # noqa: DTZ001
    row = (7, 8, 1, None, '{"a":1}', "body", None, time, time, None)
    (read,) = call_of("dequeue_fast").rows([row])
    at = time.replace(tzinfo=UTC)
    assert read == (7, 8, 1, None, {"a": 1}, "body", None, at, at, None)


@pytest.mark.pitfall("oracle 11")
def test_refusal_is_recognized_by_its_number() -> None:
    text = 'RQ701 queue_not_found: x\nORA-06512: at "Q.ROWQ", line 12\nORA-06512: at line 1'
    refusal = ENGINE.refusal(database_error(20701, text))
    assert isinstance(refusal, rowq.QueueNotFound)
    assert str(refusal) == "RQ701 queue_not_found: x"
    assert ENGINE.refusal(database_error(20001, "not ours")) is None


@pytest.mark.parametrize("number", [3113, 28, 12541])
def test_lost_connection_is_recognized_by_its_number(number: int) -> None:
    assert ENGINE.is_connection_lost(database_error(number, "x"))


@pytest.mark.parametrize("number", [60, 8177, 1653, 4068])
def test_transient_error_is_recognized_by_its_number(number: int) -> None:
    assert ENGINE.is_transient(database_error(number, "x"))
    assert not ENGINE.is_connection_lost(database_error(number, "x"))


def test_other_error_is_permanent() -> None:
    error = database_error(942, "table or view does not exist")
    assert not ENGINE.is_transient(error)
    assert not ENGINE.is_connection_lost(error)
