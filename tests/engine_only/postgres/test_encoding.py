"""migrate warns once about an encoding that cannot store every character."""

import psycopg
import pytest

import rowq
from rowq.tools.migrate import migrate
from tests.engines.postgres.server import with_database


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_migrate_warns_once_about_a_limited_encoding(empty_database: str, encoding: str) -> None:
    name = f"{psycopg.conninfo.conninfo_to_dict(empty_database)['dbname']}_{encoding.lower()}"
    options = f"template template0 encoding '{encoding}' locale 'C'"
    with psycopg.connect(empty_database, autocommit=True) as admin:
        admin.execute(f"create database {name} {options}")
        try:
            url = with_database(empty_database, name)
            (notice,) = migrate(url).notices
            assert notice.startswith(f"database {name} has encoding {encoding}: bodies")
            assert migrate(url).notices == ()
            with rowq.connect(url) as queue:
                queue.create_queue("orders")
        finally:
            admin.execute(f"drop database {name} with (force)")
