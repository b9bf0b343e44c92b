"""The catalogs of MariaDB and MySQL, and the contract's expectations of them."""

import re
from typing import Any

import pymysql
from pymysql.constants import FIELD_TYPE

from rowq.contract import Routine, load_contract
from tests.engines.values import given, probes

Connection = Any

_NAMES = "select routine_name from information_schema.routines where routine_schema = 'rowq'"
_ARGUMENTS = """
    select parameter_mode, parameter_name, dtd_identifier
    from information_schema.parameters
    where specific_schema = 'rowq' and specific_name = %s
    order by ordinal_position
"""
_COMMENTS = """
    select concat('routine ', routine_name), routine_comment
    from information_schema.routines
    where routine_schema = 'rowq'
    union all
    select concat('table ', table_name), table_comment
    from information_schema.tables
    where table_schema = 'rowq'
    union all
    select concat('column ', table_name, '.', column_name), column_comment
    from information_schema.columns
    where table_schema = 'rowq'
"""
_WHOLE = {FIELD_TYPE.TINY, FIELD_TYPE.SHORT, FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG}
_TEXT = {
    *(FIELD_TYPE.VARCHAR, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING),
    *(FIELD_TYPE.BLOB, FIELD_TYPE.TINY_BLOB, FIELD_TYPE.MEDIUM_BLOB, FIELD_TYPE.LONG_BLOB),
}
_BINARY_CHARACTER_SET = 63
_FAMILIES = {
    "boolean": "whole",
    "int32": "whole",
    "int64": "whole",
    "int64s": "text",
    "float": "double",
    "text": "text",
    "json": "text",
    "binary": "bytes",
    "timestamp": "timestamp",
}


class MysqlCatalog:
    """The installed routines, tables and comments."""

    def routine_names(self, connection: Connection) -> list[str]:
        cursor = connection.cursor()
        cursor.execute(_NAMES)
        return [name for (name,) in cursor.fetchall()]

    def installed_parameters(self, connection: Connection, routine: Routine) -> list[Any]:
        cursor = connection.cursor()
        cursor.execute(_ARGUMENTS, [routine.name])
        return [(mode, name, _plain(type_)) for mode, name, type_ in cursor.fetchall()]

    def contract_parameters(self, routine: Routine) -> list[Any]:
        types = load_contract().types
        return [
            ("IN", f"p_{parameter.name}", _plain(types[parameter.type]["mysql"]))
            for parameter in given(routine)
        ]

    def comments(self, connection: Connection) -> dict[str, str]:
        cursor = connection.cursor()
        cursor.execute(_COMMENTS)
        return {what: comment for what, comment in cursor.fetchall() if comment}

    def result_columns(self, connection: Connection, routine: Routine, queue: str) -> list[Any]:
        arguments = probes(connection, queue)
        values = [arguments.get(parameter.name) for parameter in given(routine)]
        marks = ", ".join(["%s"] * len(values))
        if routine.kind != "procedure":
            connection.begin()
        try:
            with pymysql.cursors.Cursor(connection) as cursor:
                cursor.execute(f"call rowq.{routine.name}({marks})", values)
                return [(field.name, _family(field)) for field in connection._result.fields]
        finally:
            connection.rollback()

    def contract_columns(self, routine: Routine) -> list[Any]:
        return [(column.name, _FAMILIES[column.type]) for column in routine.columns]


def _plain(type_: str) -> str:
    """Return a type without its display width; boolean is tinyint."""
    lower = type_.lower()
    return "tinyint" if lower == "boolean" else re.sub(r"^(\w*int)(\(\d+\))?$", r"\1", lower)


def _family(field: Any) -> str:
    if field.type_code == FIELD_TYPE.JSON:
        return "text"
    if field.type_code in _TEXT:
        return "bytes" if field.charsetnr == _BINARY_CHARACTER_SET else "text"
    if field.type_code in _WHOLE:
        return "whole"
    return {FIELD_TYPE.DOUBLE: "double", FIELD_TYPE.DATETIME: "timestamp"}.get(
        field.type_code, f"type {field.type_code}"
    )
