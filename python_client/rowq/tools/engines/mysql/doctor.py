"""Checks on MariaDB and MySQL."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from rowq.engines import is_driver_error
from rowq.tools.doctor.check import Check, EngineChecks, Setting, Status, is_one_of
from rowq.tools.engines.mysql.script import OWNER

_LEAST_PACKET = 16 * 1024 * 1024
_DEFINERS = "select distinct definer from information_schema.routines where routine_schema = 'rowq'"
# A grantee has quotation marks around its two halves, a definer has none.
_MAY_DO_MORE = """
    select replace(p.grantee, '''', '')
    from information_schema.user_privileges p
    where p.privilege_type <> 'USAGE'
    union
    select replace(s.grantee, '''', '')
    from information_schema.schema_privileges s
    where 'rowq' collate utf8mb4_bin not like s.table_schema
"""


def _is_supported(version: Any) -> bool:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", str(version))
    numbers = tuple(map(int, found.groups())) if found else (0, 0, 0)
    return numbers >= ((10, 6, 0) if "mariadb" in str(version).lower() else (8, 0, 21))


def _more(connection: Any) -> Iterator[Check]:
    yield from definers(connection)
    yield from prepared(connection)


def definers(connection: Any) -> Iterator[Check]:
    """Yield whether all routines run as one account that has privileges in `rowq` only.

    An account that cannot read other accounts' privileges does not detect a single wrong definer.
    """
    found = _first_values(connection, _DEFINERS)
    powerful = (found - {OWNER}) & _first_values(connection, _MAY_DO_MORE)
    names = ", ".join(sorted(found))
    if len(found) > 1 or powerful:
        yield Check(
            "definers",
            Status.FAILED,
            f"routines run as {names}, with all its privileges; run rowq migrate as an account that"
            f" can create {OWNER}",
        )
    else:
        yield Check("definers", Status.OK, names)


def prepared(connection: Any) -> Iterator[Check]:
    """Yield the prepared transactions; their locks need another privilege."""
    name = "prepared transactions"
    try:
        with closing(connection.cursor()) as cursor:
            # No format of the name works on both products.
            cursor.execute("xa recover")
            found = cursor.fetchall()
    except Exception as error:
        if not is_driver_error(error):
            raise
        yield Check(name, Status.UNKNOWN, f"cannot read them: {error}")
        return
    ends = [f"xa rollback {_xid(*row)};" for row in found]
    if ends:
        advice = "keep their rows locked, in any table, until xa commit or xa rollback"
        yield Check(name, Status.WARNING, f"{len(ends)} {advice}: {' '.join(ends)}")
    else:
        yield Check(name, Status.OK, "none")


def _xid(format_id: int, global_length: int, branch_length: int, data: Any) -> str:
    """Return the name of a transaction for a statement, for any bytes."""
    octets = data if isinstance(data, bytes) else str(data).encode()
    parts = octets[:global_length], octets[global_length : global_length + branch_length]
    return ", ".join([*(f"x'{part.hex()}'" for part in parts), str(format_id)])


def _first_values(connection: Any, query: str) -> set[str]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return {str(row[0]) for row in cursor.fetchall()}


CHECKS = EngineChecks(
    now="select timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)) / 1000000",
    version="select version()",
    is_supported=_is_supported,
    supported="MariaDB 10.6 or newer, MySQL 8.0.21 or newer",
    more=_more,
    settings=(
        Setting(
            "read_only",
            "select @@global.read_only",
            is_one_of(0, "OFF"),
            Status.FAILED,
            "this is a read-only replica; use the primary's URL",
        ),
        Setting(
            "binlog_format",
            "select if(@@global.log_bin, @@global.binlog_format, 'no binary log')",
            is_one_of("ROW", "MIXED", "no binary log"),
            Status.FAILED,
            "statements with skip locked cannot be repeated on a replica; set it to ROW",
        ),
        Setting(
            "innodb_flush_log_at_trx_commit",
            "select @@global.innodb_flush_log_at_trx_commit",
            is_one_of(1),
            Status.WARNING,
            "a crash can lose committed messages of the last second",
        ),
        Setting(
            "innodb_doublewrite",
            "select @@global.innodb_doublewrite",
            lambda value: str(value).upper() not in {"0", "OFF"},
            Status.WARNING,
            "a power failure can corrupt the database and lose messages",
        ),
        Setting(
            "max_allowed_packet",
            "select @@global.max_allowed_packet",
            lambda value: int(value) >= _LEAST_PACKET,
            Status.WARNING,
            "longer bodies and batches are refused; set it to 16 MB or more",
        ),
        Setting(
            "innodb_lock_wait_timeout",
            "select @@global.innodb_lock_wait_timeout",
            lambda value: int(value) <= 100,
            Status.WARNING,
            "calls wait this many seconds for a forgotten transaction; the default is 50",
        ),
    ),
)
