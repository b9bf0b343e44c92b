"""Hostile values of all session variables: the smallest, the largest and odd ones.

The server lists the variables, so a new version's variables are tested too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.engines.base import Connection

_ON_MARIADB = """
    select lower(variable_name), variable_type, numeric_min_value, numeric_max_value,
           enum_value_list
    from information_schema.system_variables
    where variable_scope like 'SESSION%%'
"""
_ON_MYSQL = """
    select i.variable_name, if(i.max_value > '', 'BIGINT', 'VARCHAR'), i.min_value, i.max_value,
           null
    from performance_schema.variables_info i
    join performance_schema.session_variables s using (variable_name)
"""
_SAFEST = 2**63 - 1

OTHERS = {
    "autocommit": ["1"],
    "character_set_client": ["latin1"],
    "character_set_connection": ["latin1", "ucs2"],
    "character_set_database": ["latin1", "ucs2"],
    "character_set_filesystem": ["utf8mb4", "ucs2"],
    "character_set_results": ["utf8mb4"],
    "character_set_server": ["latin1", "ucs2"],
    "collation_connection": ["latin1_german2_ci", "utf8mb4_turkish_ci", "ucs2_bin"],
    "collation_database": ["latin1_german2_ci", "utf8mb4_turkish_ci"],
    "collation_server": ["latin1_german2_ci", "utf8mb4_turkish_ci"],
    "debug": [],
    "default_master_connection": ["''"],
    "debug_sync": [],
    "default_storage_engine": ["MyISAM", "MEMORY", "CSV"],
    "default_tmp_storage_engine": ["MyISAM", "MEMORY"],
    "insert_id": ["1", "2", "7", "9223372036854775806", "18446744073709551615"],
    "last_insert_id": ["1", "9223372036854775806", "18446744073709551615"],
    "lc_messages": ["de_DE", "ja_JP"],
    "lc_time_names": ["de_DE", "ja_JP"],
    "sql_mode": [
        "''",
        "'ORACLE'",
        "'MSSQL'",
        "'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,IGNORE_SPACE'",
        "'NO_AUTO_VALUE_ON_ZERO,NO_UNSIGNED_SUBTRACTION,PAD_CHAR_TO_FULL_LENGTH'",
        "'STRICT_ALL_TABLES,TRADITIONAL,ONLY_FULL_GROUP_BY,HIGH_NOT_PRECEDENCE'",
        "'EMPTY_STRING_IS_NULL,TIME_ROUND_FRACTIONAL,SIMULTANEOUS_ASSIGNMENT'",
    ],
    "storage_engine": ["MyISAM"],
    # The times are one second into 1970, two days ago and ahead, 60 days, ten years, and the last
    # one.
    "timestamp": [
        "1",
        "1.000001",
        *(f"unix_timestamp(sysdate()) + {days} * 86400" for days in (-400, -2, 2, 60, 3650)),
        "2147483647",
    ],
    "time_zone": ["'-12:59'", "'+13:00'", "'SYSTEM'"],
    "tx_isolation": ["'READ-UNCOMMITTED'", "'SERIALIZABLE'"],
    "transaction_isolation": ["'READ-UNCOMMITTED'", "'SERIALIZABLE'"],
    "wait_timeout": ["31536000"],
    "interactive_timeout": ["31536000"],
}
"""Values of variables whose values the server does not list."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A session variable and the values to try."""

    name: str
    values: tuple[str, ...]


def variables(connection: Connection) -> Iterator[Variable]:
    """Yield this server's session variables."""
    is_mariadb = "mariadb" in connection.server_version.lower()
    rows = connection.execute(_ON_MARIADB if is_mariadb else _ON_MYSQL).fetchall()
    for name, kind, least, greatest, words in sorted(rows):
        values = OTHERS.get(name)
        if values is None:
            values = list(_values(kind, least, greatest, words))
        yield Variable(name, tuple(dict.fromkeys(values)))


def _values(kind: str, least: str | None, greatest: str | None, words: str | None) -> Iterator[str]:
    known = words.split(",") if words else []
    if kind == "BOOLEAN":
        yield from ("0", "1")
    elif kind == "ENUM":
        yield from (f"'{word}'" for word in known)
    elif kind == "SET":
        yield from (f"'{word}'" for word in ("", *known, words or ""))
    elif kind == "FLAGSET":
        yield from _flags([word for word in known if word != "default"])
    elif kind == "DOUBLE":
        yield from (least or "0", "0.001", "7.5", greatest or "1e18")
    elif kind == "VARCHAR":
        yield from ("''", "'x'")
    else:
        yield from _integers(int(least or 0), int(greatest or _SAFEST))


def _integers(least: int, greatest: int) -> Iterator[str]:
    near = [least, least + 1, 7, 4999, min(greatest, _SAFEST), greatest]
    yield from (str(number) for number in near if least <= number <= greatest)


def _flags(words: list[str]) -> Iterator[str]:
    """Yield all flags on, and each half off: some pairs cannot be off together."""
    half = len(words) // 2
    for off in ([], words[:half], words[half:], words[::2], words[1::2]):
        yield "'" + ",".join(f"{word}={'off' if word in off else 'on'}" for word in words) + "'"
