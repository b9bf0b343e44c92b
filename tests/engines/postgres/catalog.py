"""The catalog of PostgreSQL, and the contract's expectations of it."""

from typing import Any

import psycopg

from rowq.contract import Routine, load_contract

Connection = psycopg.Connection[Any]

_ARGUMENTS = """
    select
        a.specific_name,
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
    order by a.specific_name, a.ordinal_position
"""
_COMMENTS = """
    select 'routine ' || p.proname, obj_description(p.oid, 'pg_proc')
    from pg_proc p
    where p.pronamespace = 'rowq'::regnamespace
    union
    select 'table ' || c.relname, obj_description(c.oid, 'pg_class')
    from pg_class c
    where c.relnamespace = 'rowq'::regnamespace
    union
    select 'column ' || c.relname || '.' || a.attname, col_description(c.oid, a.attnum)
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
    where c.relnamespace = 'rowq'::regnamespace
"""
_PROBES = {
    "claim_id": "0",
    "dedup_key": "'probe'",
    "message_id": "0",
    "message_ids": "array[]::bigint[]",
    "messages": "'[]'",
    "queue_name": "'no such queue'",
    "schedule_name": "'no such schedule'",
    "topic": "'probe'",
    "topic_pattern": "'probe'",
    "worker_id": "'probe'",
}
_SHOWN = {
    "boolean": "bool",
    "integer": "int4",
    "bigint": "int8",
    "bigint[]": "int8[]",
    "double precision": "float8",
    "timestamp with time zone": "timestamptz",
}


class PostgresCatalog:
    """The installed routines, tables and comments."""

    def routine_names(self, connection: Connection) -> list[str]:
        query = "select proname from pg_proc where pronamespace = 'rowq'::regnamespace"
        return [name for (name,) in connection.execute(query)]

    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        forms: dict[str, list[Any]] = {}
        for form, *parameter in connection.execute(_ARGUMENTS, [routine.name]):
            forms.setdefault(form, []).append(tuple(parameter))
        return sorted(forms.values(), key=repr)

    def contract_parameters(self, routine: Routine) -> list[Any]:
        main = self._main_form(routine)
        forms = [main] if main else []
        for overload in routine.overloads_on("postgres"):
            name = f"p_{overload.parameter}"
            other = ("IN", name, overload.type, None)
            forms.append([other if parameter[1] == name else parameter for parameter in main])
        return sorted(forms, key=repr)

    def _main_form(self, routine: Routine) -> list[Any]:
        wanted: list[Any] = []
        for parameter in routine.parameters:
            spelled = _spelled(parameter.type)
            array = f"ARRAY of {spelled[:-2]}" if spelled.endswith("[]") else spelled
            default = parameter.default
            if default == "null" or (default or "").startswith("'"):
                default = f"{str(default).replace('null', 'NULL')}::{spelled}"
            wanted.append((parameter.direction.upper(), f"p_{parameter.name}", array, default))
        return wanted

    def comments(self, connection: Connection) -> dict[str, str]:
        rows = connection.execute(_COMMENTS).fetchall()
        assert len({what for what, _ in rows}) == len(rows), "an overload has another comment"
        return {what: comment for what, comment in rows if comment}

    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        if routine.kind == "procedure":
            values = ", ".join(
                "%s" if parameter.name == "queue_name" else _PROBES[parameter.name]
                for parameter in routine.parameters
                if not parameter.default
            )
            call = f"call rowq.{routine.name}({values}, p_wait_seconds => 0)"
            cursor = connection.execute(call.encode(), [queue])
        else:
            values = ", ".join(
                _PROBES[parameter.name] for parameter in routine.parameters if not parameter.default
            )
            # "limit 0" describes the columns and never runs the routine.
            query = f"select * from rowq.{routine.name}({values}) limit 0"
            cursor = connection.execute(query.encode())
        return [
            (column.name.removeprefix("p_"), column.type_display)
            for column in cursor.description or ()
        ]

    def contract_columns(self, routine: Routine) -> list[Any]:
        spelled = ((column.name, _spelled(column.type)) for column in routine.columns)
        return [(name, _SHOWN.get(type_, type_)) for name, type_ in spelled]


def _spelled(kind: str) -> str:
    return load_contract().types[kind]["postgres"]
