"""PyMySQL, imported when it is first needed, and what it leaves to its users."""

from types import ModuleType
from typing import Any

from rowq.engines.base import Row
from rowq.errors import DriverMissing, InvalidArgument

CHARACTER_SET = "utf8mb4"
# Every server takes a statement of so many characters, whatever its max_allowed_packet.
SURELY_FITS = 200_000


def load_driver() -> ModuleType:
    """Return PyMySQL; raises DriverMissing with what to install."""
    try:
        import pymysql
    except ImportError as error:
        hint = "MySQL and MariaDB need PyMySQL: pip install 'rowq[mysql]'"
        raise DriverMissing(hint) from error
    return pymysql


def drain(cursor: Any) -> list[Row]:
    """Return the rows of the one result set; what comes after them may still be an error."""
    rows: list[Row] = []
    while True:
        if cursor.description:
            rows.extend(cursor.fetchall())
        if not cursor.nextset():
            return rows


def execute(connection: Any, statement: str) -> None:
    """Run a statement."""
    with load_driver().cursors.Cursor(connection) as cursor:
        cursor.execute(statement)


def check_size(cursor: Any, statement: str) -> None:
    """Refuse what the server would answer by closing the connection, in the middle perhaps."""
    cursor.execute("select @@max_allowed_packet")
    ((limit,),) = cursor.fetchall()
    size = len(statement.encode())
    if size >= limit:
        raise InvalidArgument(
            f"the call has {size} bytes, two for each of a binary body, and the server takes"
            f" fewer than its max_allowed_packet, {limit}"
        )


def check_character_set(connection: Any) -> None:
    """Refuse a connection on which some characters would silently become others."""
    if connection.charset != CHARACTER_SET:
        raise InvalidArgument(
            f"the connection's character set is {connection.charset}: open it with"
            f" charset='{CHARACTER_SET}', which holds every character"
        )
