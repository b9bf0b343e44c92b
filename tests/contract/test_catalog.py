"""Installed routines: the server's catalog agrees with the contract."""

import pytest

from rowq.contract import Routine, load_contract
from rowq.engines import engine_for_connection
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import CheckedQueue

CONTRACT = load_contract()

each_routine = pytest.mark.parametrize(
    "routine", CONTRACT.routines.values(), ids=lambda routine: routine.name
)


def on_engine(connection: Connection, routine: Routine) -> Routine:
    """Return a routine as on the connection's engine; skip the test if the engine lacks it."""
    engine = engine_for_connection(connection).name
    if engine not in (routine.engines or [engine]):
        pytest.skip(
            f"rowq has no {routine.name} on {engine} yet; to run it: --engine postgres18,mariadb"
        )
    return routine.on(engine)


@each_routine
def test_parameters_agree_with_the_contract(connection: Connection, routine: Routine) -> None:
    dialect, routine = dialect_of(connection), on_engine(connection, routine)
    found = dialect.installed_parameters(connection, routine)
    assert found == dialect.contract_parameters(routine)


@each_routine
def test_result_columns_agree_with_the_contract(queue: CheckedQueue, routine: Routine) -> None:
    dialect, routine = dialect_of(queue.connection), on_engine(queue.connection, routine)
    found = dialect.result_columns(queue.connection, routine, queue.name)
    assert found == dialect.contract_columns(routine)


def test_schema_has_only_contract_routines_and_helpers(
    connection: Connection,
) -> None:
    names = dialect_of(connection).routine_names(connection)
    engine = engine_for_connection(connection).name
    public = sorted(name for name in names if not name.startswith("internal_"))
    private = [name for name in names if name.startswith("internal_")]
    wanted = [
        name
        for name, entry in CONTRACT.of(engine).items()
        for _ in (entry, *entry.overloads_on(engine))
    ]
    assert public == sorted(wanted)
    assert len(private) == len(set(private)), "a name with two signatures"
