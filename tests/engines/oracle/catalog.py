"""The catalog of Oracle, and the contract's expectations of it."""

from contextlib import closing
from typing import Any

import oracledb

from rowq.contract import Parameter, Routine, load_contract, sql_directory
from rowq.tools.engines.oracle.packages import beside
from tests.engines.values import given, probes

Connection = Any

_NAMES = """
    select lower(p.procedure_name) from user_procedures p
    where p.object_name = 'ROWQ' and p.procedure_name is not null
    """
_ARGUMENTS = """
    select lower(a.argument_name), a.in_out, lower(a.data_type), a.defaulted
    from user_arguments a
    where a.package_name = 'ROWQ' and a.object_name = upper(:routine) and a.data_level = 0
    order by a.position
    """
_COMMENTS = """
    select 'table ' || lower(substr(t.table_name, 6)), t.comments
    from user_tab_comments t
    where t.table_name like 'ROWQ\\_%' escape '\\' and t.comments is not null
    union all
    select 'column ' || lower(substr(c.table_name, 6)) || '.' || lower(c.column_name), c.comments
    from user_col_comments c
    where c.table_name like 'ROWQ\\_%' escape '\\' and c.comments is not null
    """
_LONG_TEXTS = {"body", "error", "header_value", "progress"}
_FAMILIES = {
    "boolean": "number",
    "int32": "number",
    "int64": "number",
    "int64s": "text",
    "float": "number",
    "text": "text",
    "json": "text",
    "binary": "bytes",
    "timestamp": "timestamp",
}
_SENT = {
    oracledb.DB_TYPE_NUMBER: "number",
    oracledb.DB_TYPE_BINARY_DOUBLE: "number",
    oracledb.DB_TYPE_VARCHAR: "text",
    oracledb.DB_TYPE_CHAR: "text",
    oracledb.DB_TYPE_CLOB: "text",
    oracledb.DB_TYPE_BLOB: "bytes",
    oracledb.DB_TYPE_TIMESTAMP: "timestamp",
}


class OracleCatalog:
    """The installed routines, tables and comments."""

    def routine_names(self, connection: Connection) -> list[str]:
        """Return the routines of package rowq; those outside the contract as internal."""
        helpers = {each.name for each in beside(sql_directory() / "oracle")}
        with closing(connection.cursor()) as cursor:
            names = [name for (name,) in cursor.execute(_NAMES)]
        return [f"internal_{name}" if name in helpers else name for name in names]

    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        with closing(connection.cursor()) as cursor:
            return list(cursor.execute(_ARGUMENTS, routine=routine.name))

    def contract_parameters(self, routine: Routine) -> list[Any]:
        parameters = [
            (
                f"p_{parameter.name}",
                "IN",
                type_of(parameter),
                "N" if parameter.default is None else "Y",
            )
            for parameter in given(routine)
        ]
        return [*parameters, ("p_rows", "OUT", "ref cursor", "N")]

    def comments(self, connection: Connection) -> dict[str, str]:
        with closing(connection.cursor()) as cursor:
            return dict(cursor.execute(_COMMENTS).fetchall())

    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        arguments = probes(connection, queue)
        names = [parameter.name for parameter in given(routine)]
        binds = {f"p_{name}": arguments[name] for name in names if name in arguments}
        named = "".join(f"{name} => :{name}, " for name in binds)
        connection.autocommit = False
        try:
            with closing(connection.cursor()) as cursor, closing(connection.cursor()) as rows:
                call = f"begin rowq.{routine.name}({named}p_rows => :p_rows); end;"
                cursor.execute(call, {**binds, "p_rows": rows})
                return [
                    (column.name.lower(), _family(column.type_code)) for column in rows.description
                ]
        finally:
            connection.rollback()
            connection.autocommit = True

    def contract_columns(self, routine: Routine) -> list[Any]:
        return [(column.name, _FAMILIES[column.type]) for column in routine.columns]


def type_of(parameter: Parameter) -> str:
    """Return the Oracle type of a parameter: long texts are LOBs."""
    if parameter.name in _LONG_TEXTS:
        return "clob"
    return load_contract().types[parameter.type]["oracle"]


def _family(type_code: Any) -> str:
    return _SENT.get(type_code, str(type_code))
