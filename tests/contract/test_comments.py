"""Comments in the server's catalog: those of the contract."""

import pytest

from rowq.contract import sql_directory
from rowq.engines import engine_for_connection
from rowq.tools import migrate
from rowq.tools.migrate import comments
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

pytestmark = pytest.mark.requires("genuine")


def wanted(engine: str) -> dict[str, str]:
    """Return the expected comments by object."""
    sources = sql_directory() / engine
    texts = {f"table {name}": text for name, text in comments.tables(sources).items()}
    if engine != "oracle":
        texts |= {f"routine {name}": text for name, text in comments.routines(sources).items()}
    of_columns = comments.columns(sources).items()
    texts |= {f"column {table}.{name}": text for (table, name), text in of_columns}
    return texts


def test_catalog_has_the_comments_of_the_contract(connection: Connection) -> None:
    assert dialect_of(connection).comments(connection) == wanted(
        engine_for_connection(connection).name
    )


@pytest.mark.slow("installs again", on="mariadb", ci="mariadb")
def test_comments_survive_migrate_and_rollback(owner: Connection, empty_database: str) -> None:
    dialect = dialect_of(owner)
    assert migrate.migrate(empty_database).applied == ()
    assert dialect.comments(owner) == wanted(engine_for_connection(owner).name)
    migrate.rollback(empty_database, to=0)
    migrate.migrate(empty_database)
    assert dialect.comments(owner) == wanted(engine_for_connection(owner).name)
