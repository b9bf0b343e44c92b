"""The server's catalog says of routines, tables and columns what the contract says of them."""

import pytest

from rowq.contract import sql_directory
from rowq.engines import engine_for_connection
from rowq.tools import migrate
from rowq.tools.migrate import comments
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

pytestmark = pytest.mark.requires("genuine")


def wanted(engine: str) -> dict[str, str]:
    """Return what the catalog of an engine should say of what."""
    sources = sql_directory() / engine
    said = {f"table {name}": text for name, text in comments.tables(sources).items()}
    if engine != "oracle":
        said |= {f"routine {name}": text for name, text in comments.routines(sources).items()}
    of_columns = comments.columns(sources).items()
    said |= {f"column {table}.{name}": text for (table, name), text in of_columns}
    return said


def test_the_catalog_says_what_each_routine_table_and_column_is(connection: Connection) -> None:
    found = dialect_of(connection).comments(connection)
    assert found == wanted(engine_for_connection(connection).name)


@pytest.mark.slow("installs again", on="mariadb", ci="mariadb")
def test_they_are_there_after_another_migrate_and_gone_after_a_rollback(
    owner: Connection, empty_database: str
) -> None:
    dialect = dialect_of(owner)
    assert migrate.migrate(empty_database).applied == ()
    assert dialect.comments(owner) == wanted(engine_for_connection(owner).name)
    migrate.rollback(empty_database, to=0)
    migrate.migrate(empty_database)
    assert dialect.comments(owner) == wanted(engine_for_connection(owner).name)
