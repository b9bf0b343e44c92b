"""The account that the routines run as: rowq's own, where whoever installs them may make it."""

import re
from typing import Any

import pymysql

from rowq.tools.engines.mysql.statements import OWNER

LACKS_PRIVILEGE = {1044, 1045, 1142, 1143, 1227, 1370, 1396, 1410, 1419}
"""The server's numbers for what an account may not do."""

# preflight.sql has put the account's name and how many rights it has outside rowq into variables.
_HAS_MORE = """
    select @rowq_rights > 0 or exists (
        select 1
        from information_schema.schema_privileges d
        where d.grantee = @rowq_account
          and 'rowq' collate utf8mb4_bin not like d.table_schema
    )
"""
_GRANTED_EVERYWHERE = re.compile(r"GRANT (.+?) ON \*\.\* TO ")
_NAMING_ANOTHER = {"ALL PRIVILEGES", "SET USER", "SET_USER_ID", "SET_ANY_DEFINER"}


def make_owner(connection: Any, script: str) -> tuple[bool, str | None]:
    """Make rowq's own account and give it its rights, or find it there.

    Args:
        connection: a session that has run preflight.sql and bookkeeping.sql.
        script: owner.sql.

    Returns:
        Whether the routines shall run as that account, and what there is to say if not. An account
        that has rights in `rowq` only is as good as that one.
    """
    if not _value(connection, _HAS_MORE):
        return False, None
    try:
        if _may_name_another(connection):
            connection.execute(script)
            return True, None
    except pymysql.Error as error:
        if error.args[0] not in LACKS_PRIVILEGE:
            raise
    return False, (
        f"the routines run as this account, with all that it may do: let one migrate that may make"
        f" {OWNER} (create user, set user, and all on rowq.* with grant option)"
    )


def drop_owner(connection: Any) -> str | None:
    """Drop rowq's own account; return what there is to say where it stays."""
    try:
        connection.execute("drop user if exists 'rowq_owner'@'localhost';")
    except pymysql.Error as error:
        if error.args[0] not in LACKS_PRIVILEGE:
            raise
        return f"the account {OWNER} stays, if it is there: this one may not drop it"
    return None


def _may_name_another(connection: Any) -> bool:
    """Return whether the account may make routines that run as another, by a role perhaps."""
    cursor = connection.cursor()
    cursor.execute("show grants")
    found = (_GRANTED_EVERYWHERE.match(text) for (text,) in cursor.fetchall())
    rights = {right.strip() for match in found if match for right in match[1].split(",")}
    return not rights.isdisjoint(_NAMING_ANOTHER)


def _value(connection: Any, query: str) -> Any:
    cursor = connection.cursor()
    cursor.execute(query)
    return cursor.fetchone()[0]
