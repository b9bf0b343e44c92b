"""psycopg 3, imported when it is first needed."""

from types import ModuleType

from rowq.errors import DriverMissing


def load_driver() -> ModuleType:
    """Return psycopg; raises DriverMissing with what to install."""
    try:
        import psycopg
    except ImportError as error:
        hint = "PostgreSQL needs psycopg: pip install 'rowq[postgres]'"
        raise DriverMissing(hint) from error
    return psycopg
