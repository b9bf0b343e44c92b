"""Routines, parameters and columns that an engine lacks."""

import pytest

import rowq
from rowq.contract import load_contract
from rowq.engines.calls import Readers, inputs_of, read_rows, readers_of, typed_arguments

INPUTS = (("queue_name", "text"), ("body", "text"))


def test_missing_parameter_is_refused_unless_none() -> None:
    arguments = {"queue_name": "orders", "body": "x", "predecessor_ids": None}
    assert [value for _, _, value in typed_arguments("oracle", INPUTS, arguments)] == [
        "orders",
        "x",
    ]
    with pytest.raises(rowq.InvalidArgument, match="predecessor_ids is not available on oracle"):
        list(typed_arguments("oracle", INPUTS, arguments | {"predecessor_ids": [1]}))


def test_missing_column_is_none_at_its_position() -> None:
    assert read_rows([(1, 2)], Readers(((1, str),), (1, 3))) == [(1, None, "2", None)]
    assert read_rows([(1, 2)], Readers((), ())) == [(1, 2)]


@pytest.mark.parametrize("engine", sorted(load_contract().types["text"]))
def test_missing_routine_is_refused_by_name(engine: str) -> None:
    for name, routine in load_contract().routines.items():
        if engine in (routine.engines or [engine]):
            assert inputs_of(engine, name) is not None
            continue
        with pytest.raises(rowq.InvalidArgument, match=f"{name} is not available on {engine}"):
            inputs_of(engine, name)
        with pytest.raises(rowq.InvalidArgument, match=f"{name} is not available on {engine}"):
            readers_of(engine, name, {})
