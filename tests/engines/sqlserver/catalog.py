"""The catalog of SQL Server, and the contract's expectations of it."""

import re
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.engines.sqlserver.calls import call_of, procedure_name
from rowq.engines.sqlserver.driver import is_by_freetds, load_driver
from tests.engines.values import given, probes

Connection = Any

_NAMES = """
    select o.name from sys.objects o
    where o.schema_id = schema_id(N'rowq') and o.type in ('P', 'FN', 'IF', 'TF')
    """
_PARAMETERS = """
    select p.name, t.name, p.max_length, p.scale
    from sys.all_parameters p
    join sys.types t on t.user_type_id = p.user_type_id
    where p.object_id = object_id(?) and p.parameter_id > 0
    order by p.parameter_id
    """
_COMMENTS = """
    select iif(o.type = 'P', 'routine', iif(c.name is null, 'table', 'column')),
        o.name, c.name, cast(p.value as nvarchar(3000))
    from sys.extended_properties p
    join sys.objects o on o.object_id = p.major_id
    left join sys.columns c on c.object_id = o.object_id and c.column_id = p.minor_id
    where o.schema_id = schema_id(N'rowq') and p.class = 1 and p.name = N'MS_Description'
    """
_FAMILIES: dict[str, type] = {
    "boolean": bool,
    "int32": int,
    "int64": int,
    "int64s": str,
    "float": float,
    "text": str,
    "json": str,
    "binary": bytearray,  # as pyodbc announces it; values are bytes
    "timestamp": datetime,
}


class SqlserverCatalog:
    """The installed routines, tables and comments."""

    def routine_names(self, connection: Connection) -> list[str]:
        with closing(connection.cursor()) as cursor:
            names = cursor.execute(_NAMES).fetchall()
        # Babelfish shows names in lower case.
        known = {
            procedure_name(routine).lower(): routine for routine in load_contract().of("sqlserver")
        }
        return [known.get(name.lower(), _private(name.lower())) for (name,) in names]

    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        with closing(connection.cursor()) as cursor:
            cursor.execute(_PARAMETERS, f"rowq.{procedure_name(routine.name)}")
            return [(name, _spelled(*type_)) for name, *type_ in cursor.fetchall()]

    def contract_parameters(self, routine: Routine) -> list[Any]:
        types = load_contract().types
        return [
            (f"@{parameter.name}", types[parameter.type]["sqlserver"])
            for parameter in given(routine)
        ]

    def comments(self, connection: Connection) -> dict[str, str]:
        spelled = {procedure_name(name): name for name in load_contract().of("sqlserver")}
        said = {}
        with closing(connection.cursor()) as cursor:
            for kind, name, column, comment in cursor.execute(_COMMENTS).fetchall():
                what = spelled[name] if kind == "routine" else name
                said[f"{kind} {what}.{column}" if column else f"{kind} {what}"] = comment
        return said

    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        arguments = probes(connection, queue) | {"wait_seconds": 0.0, "force": True}
        names = {parameter.name for parameter in given(routine)}
        values = {name: value for name, value in arguments.items() if name in names}
        with closing(connection.cursor()) as cursor:
            if routine.kind != "procedure":
                cursor.execute("begin transaction")
            try:
                execute_named(connection, cursor, routine.name, values)
                return [(column[0], column[1]) for column in cursor.description]
            finally:
                cursor.cancel()
                cursor.execute("if @@trancount > 0 rollback transaction")

    def contract_columns(self, routine: Routine) -> list[Any]:
        return [(column.name, _FAMILIES[column.type]) for column in routine.columns]


def execute_named(
    connection: Connection, cursor: Any, routine: str, values: Mapping[str, Any]
) -> None:
    """Call a routine with arguments by name, each bound as by the client."""
    call = call_of(routine)
    bindings = call.freetds_bindings if is_by_freetds(connection) else call.bindings
    by_name = dict(zip((name for name, _ in call.parameters), bindings, strict=True))
    cursor.setinputsizes([by_name[name] for name in values])
    null = load_driver().BinaryNull
    named = ", ".join(f"@{name} = ?" for name in values)
    cursor.execute(
        f"exec rowq.{procedure_name(routine)} {named}",
        [null if value is None else value for value in values.values()],
    )


def _private(name: str) -> str:
    """Return the snake_case name of a private helper."""
    return re.sub(r"^internal", "internal_", name)


def _spelled(name: str, length: int, scale: int) -> str:
    """Return a type as in a declaration."""
    if name in {"nvarchar", "varbinary"}:
        half = length // 2 if name == "nvarchar" else length
        return f"{name}({'max' if length == -1 else half})"
    return f"{name}({scale})" if name == "datetime2" else name
