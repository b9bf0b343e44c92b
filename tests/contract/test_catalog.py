"""What the server says about the installed routines is what the contract says."""

import pytest

from rowq.contract import Routine, load_contract
from tests.engines.base import Connection

CONTRACT = load_contract()

ARGUMENTS = """
    select
        a.parameter_mode,
        a.parameter_name,
        a.data_type || coalesce(' of ' || e.data_type, ''),
        a.parameter_default
    from information_schema.parameters a
    join information_schema.routines r using (specific_schema, specific_name)
    left join information_schema.element_types e
        on e.object_schema = a.specific_schema
       and e.object_name = a.specific_name
       and e.collection_type_identifier = a.dtd_identifier
    where r.routine_schema = 'rowq'
      and r.routine_name = %s
      and a.parameter_mode in ('IN', 'INOUT')
    order by a.ordinal_position
"""

PROBES = {
    "claim_id": "0",
    "message_id": "0",
    "message_ids": "array[]::bigint[]",
    "messages": "'[]'",
    "queue_name": "'no such queue'",
}


def in_catalog(kind: str) -> str:
    """Return a contract type as the information schema spells it."""
    spelled = CONTRACT.types[kind]["postgres"]
    return f"ARRAY of {spelled[:-2]}" if spelled.endswith("[]") else spelled


def default_in_catalog(default: str | None, spelled: str) -> str | None:
    """Return a contract default as the server shows it."""
    return f"NULL::{spelled}" if default == "null" else default


@pytest.mark.parametrize("routine", CONTRACT.routines.values(), ids=lambda one: one.name)
def test_parameters_have_the_contract_s_names_types_and_defaults(
    connection: Connection, routine: Routine
) -> None:
    found = connection.execute(ARGUMENTS, [routine.name]).fetchall()
    wanted = []
    for parameter in routine.parameters:
        spelled = CONTRACT.types[parameter.type]["postgres"]
        default = default_in_catalog(parameter.default, spelled)
        mode = parameter.direction.upper()
        wanted.append((mode, f"p_{parameter.name}", in_catalog(parameter.type), default))
    assert found == wanted


@pytest.mark.parametrize("routine", CONTRACT.routines.values(), ids=lambda one: one.name)
def test_a_call_returns_the_contract_s_columns(connection: Connection, routine: Routine) -> None:
    values = ", ".join(
        PROBES[parameter.name] for parameter in routine.parameters if parameter.default is None
    )
    if routine.kind == "procedure":
        wanted = [f"p_{column.name}" for column in routine.columns]
        cursor = connection.execute(
            "call rowq.dequeue_wait(%s, p_wait_seconds => 0)", [existing_queue(connection)]
        )
    else:
        wanted = [column.name for column in routine.columns]
        # "limit 0" describes the columns and never runs the routine.
        cursor = connection.execute(f"select * from rowq.{routine.name}({values}) limit 0")
    assert [column.name for column in cursor.description] == wanted
    types = [column.type_display for column in cursor.description]
    assert types == [display(column.type) for column in routine.columns]


def existing_queue(connection: Connection) -> str:
    """Return a queue that exists, for the one call that cannot be described without being made."""
    connection.execute("select rowq.create_queue('contract probe')")
    return "contract probe"


def display(kind: str) -> str:
    """Return a contract type as the driver shows a column of it."""
    names = {
        "boolean": "bool",
        "integer": "int4",
        "bigint": "int8",
        "double precision": "float8",
        "timestamp with time zone": "timestamptz",
    }
    spelled = CONTRACT.types[kind]["postgres"]
    return names.get(spelled, spelled)


def test_the_schema_has_the_contract_s_routines_and_private_helpers_only(
    connection: Connection,
) -> None:
    query = "select proname from pg_proc where pronamespace = 'rowq'::regnamespace"
    names = [row[0] for row in connection.execute(query)]
    public = sorted(name for name in names if not name.startswith("internal_"))
    assert public == sorted(CONTRACT.routines)
    assert len(names) == len(set(names)), "a name with two signatures"
