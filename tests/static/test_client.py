"""The Python client agrees with the contract: methods, parameters, results and errors."""

import dataclasses
import importlib.metadata
import inspect
import typing
from collections.abc import Callable
from datetime import datetime
from itertools import product
from typing import Any

import pytest

import rowq
from rowq import errors, messages
from rowq.contract import Parameter, Routine, load_contract
from tests.static.each import for_each

CONTRACT = load_contract()
ROUTINES = list(CONTRACT.routines.values())
QUEUES = [rowq.Queue, rowq.AsyncQueue]

# Differences between Python and SQL.
DATA_AFTER = {
    "enqueue": "queue_name",
    "publish": "topic",
    "create_schedule": "schedule_name",
    "alter_message": "message_id",
    "alter_schedule": "schedule_name",
}
"""Routines whose body is `data` or `text` in Python, and the parameter before `data`."""
ANY_VALUE = {"result"}
"""JSON columns with any value, not only objects."""
TIMES = {"next_ticks"}
"""Routines that return times instead of rows."""
ANSWERS = {"dequeue_wait": "dequeue_fast", "wait_for_result": "get_result"}
"""Routines that return rows as one JSON value, and the routine with the same rows."""
SORTED = {"complete_and_dequeue": {"outcome"}}
"""Routines whose rows Python sorts by these columns into the lists of one answer."""

PYTHON_TYPES: dict[str, Any] = {
    "boolean": bool,
    "int32": int,
    "int64": int,
    "int64s": list[int],
    "float": float,
    "text": str,
    "binary": bytes,
    "json": dict[str, Any],
    "timestamp": datetime,
}


def name_of(value: object) -> str:
    return str(getattr(value, "name", None) or getattr(value, "__name__", value))


def expected_names(routine: Routine) -> list[str]:
    names = [parameter.name for parameter in routine.parameters if parameter.direction == "in"]
    if routine.name in DATA_AFTER:
        names = [name for name in names if name not in {"body", "body_binary"}]
        position = names.index(DATA_AFTER[routine.name]) + 1
        names[position:position] = ["data", "text"]
    return names


def default_in_python(parameter: Parameter) -> object:
    if parameter.default is None:
        return inspect.Parameter.empty
    texts: dict[str, object] = {"null": None, "true": True, "false": False}
    if parameter.default in texts:
        return texts[parameter.default]
    if parameter.type == "text":
        return parameter.default.strip("'")
    return float(parameter.default) if parameter.type == "float" else int(parameter.default)


def result_class(method: Callable[..., Any]) -> type:
    """Return the dataclass in a method's return annotation, without list and None."""
    annotation = typing.get_type_hints(method)["return"]
    candidates = [
        candidate for candidate in typing.get_args(annotation) if candidate is not type(None)
    ]
    found = candidates[0] if candidates else annotation
    return rowq.Message if found is rowq.NextMessages else typing.cast("type", found)


@pytest.mark.parametrize("queue", QUEUES, ids=name_of)
def test_client_has_exactly_one_method_per_routine(queue: type) -> None:
    public = {name for name, _ in inspect.getmembers(queue, inspect.isfunction) if name[0] != "_"}
    assert public - {"close"} == set(CONTRACT.routines)


@for_each(product(QUEUES, ROUTINES))
def test_method_has_the_routines_parameters_and_defaults(queue: type, routine: Routine) -> None:
    parameters = dict(inspect.signature(getattr(queue, routine.name)).parameters)
    del parameters["self"]
    assert list(parameters) == expected_names(routine)
    for parameter in routine.parameters:
        if parameter.name in parameters:
            assert parameters[parameter.name].default == default_in_python(parameter), (
                parameter.name
            )


@for_each(ROUTINES)
def test_method_takes_queue_first_and_options_by_keyword(routine: Routine) -> None:
    positional = [
        name
        for name, parameter in inspect.signature(
            getattr(rowq.Queue, routine.name)
        ).parameters.items()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and name != "self"
    ]
    natural = [
        *("queue_name", "topic", "topic_pattern", "schedule_name", "cron", "claim_id"),
        *("message_id", "message_ids", "dedup_key", "worker_id", "data", "messages"),
    ]
    assert positional == [name for name in [*natural, "batch_size"] if name in positional]
    required = [parameter.name for parameter in routine.parameters if parameter.default is None]
    assert set(required) <= set(positional)


@for_each(ROUTINES)
def test_result_has_the_routines_columns_in_order(routine: Routine) -> None:
    result = result_class(getattr(rowq.Queue, routine.name))
    if routine.name in TIMES:
        assert result is datetime
        assert [column.type for column in routine.columns] == ["timestamp"]
        return
    fields = [field.name for field in dataclasses.fields(result)]
    same = CONTRACT.routines[ANSWERS.get(routine.name, routine.name)]
    left_out = SORTED.get(routine.name, set())
    assert fields == [column.name for column in same.columns if column.name not in left_out]
    assert result.__name__ in rowq.__all__


@for_each(ROUTINES)
def test_result_fields_have_the_contracts_types(routine: Routine) -> None:
    if routine.name in TIMES:
        return
    routine = CONTRACT.routines[ANSWERS.get(routine.name, routine.name)]
    hints = typing.get_type_hints(result_class(getattr(rowq.Queue, routine.name)))
    for column in routine.columns:
        if column.name in SORTED.get(routine.name, set()):
            continue
        wanted = Any if column.name in ANY_VALUE else PYTHON_TYPES[column.type]
        assert hints[column.name] in {wanted, wanted | None}, column.name


@for_each(ROUTINES)
def test_both_queues_return_the_same(routine: Routine) -> None:
    results = [typing.get_type_hints(getattr(queue, routine.name))["return"] for queue in QUEUES]
    assert results[0] == results[1]


def test_client_has_exactly_one_class_per_error() -> None:
    assert errors.REFUSALS.keys() == CONTRACT.errors.keys()
    for number, entry in CONTRACT.errors.items():
        refusal = errors.REFUSALS[number]
        assert refusal.__name__ == entry.class_name
        assert (refusal.number, refusal.name) == (number, entry.name)
        assert refusal.retryable is entry.retryable
        assert refusal.__name__ in rowq.__all__


def test_tree_of_errors_names_every_class() -> None:
    drawn = errors.__doc__ or ""
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, rowq.RowqError):
            assert f" {name} " in drawn.replace("\n", " "), name


def test_repeatable_routines_change_nothing_twice() -> None:
    repeatable = {name for name, routine in CONTRACT.routines.items() if routine.repeatable}
    assert repeatable >= {"dequeue_fast", "complete", "extend_lease", "maintain"}
    assert not repeatable & {"enqueue", "enqueue_batch", "purge_queue", "drop_queue", "reset"}
    assert not repeatable & {"run_schedule", "drop_schedule"}
    assert not repeatable & {"publish", "publish_batch"}


def test_every_class_of_message_is_public() -> None:
    for name, value in vars(messages).items():
        if dataclasses.is_dataclass(value) and not name.startswith("_"):
            assert name in rowq.__all__


def test_version_is_the_packages() -> None:
    assert rowq.__version__ == importlib.metadata.version("rowq")
