"""The server's catalog describes the installed routines as the contract does."""

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


def as_there(connection: Connection, routine: Routine) -> Routine:
    """Return a routine as the connection's engine has it; skips the test where it has not."""
    engine = engine_for_connection(connection).name
    if engine not in (routine.engines or [engine]):
        pytest.skip(
            f"rowq has no {routine.name} on {engine} yet; to run it: --engine postgres18,mariadb"
        )
    return routine.on(engine)


@each_routine
def test_parameters_have_the_contract_s_names_types_and_defaults(
    connection: Connection, routine: Routine
) -> None:
    dialect, routine = dialect_of(connection), as_there(connection, routine)
    found = dialect.installed_parameters(connection, routine)
    assert found == dialect.contract_parameters(routine)


@each_routine
def test_a_call_returns_the_contract_s_columns(queue: CheckedQueue, routine: Routine) -> None:
    dialect, routine = dialect_of(queue.connection), as_there(queue.connection, routine)
    found = dialect.result_columns(queue.connection, routine, queue.name)
    assert found == dialect.contract_columns(routine)


def test_the_schema_has_the_contract_s_routines_and_private_helpers_only(
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
