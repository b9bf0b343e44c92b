"""python-oracledb, imported when it is first needed."""

from types import ModuleType
from typing import Any

from rowq.errors import DriverMissing


def load_driver() -> ModuleType:
    """Return python-oracledb; raises DriverMissing with what to install."""
    try:
        import oracledb
    except ImportError as error:
        hint = "Oracle needs python-oracledb: pip install 'rowq[oracle]'"
        raise DriverMissing(hint) from error
    return oracledb


def execute(connection: Any, statement: str) -> None:
    """Run a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
