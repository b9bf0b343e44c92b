"""Fixtures of the tests for SQL Server."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from rowq.tools import migrate
from tests.engine_only.sqlserver.sessions import value
from tests.engines.base import Server


@pytest.fixture
def optimized(server: Server) -> Iterator[str]:
    """Return the URL of a database with rowq and optimized locking."""
    url = server.fresh_database()
    with closing(server.connect(url)) as session:
        major = int(value(session, "select serverproperty('ProductMajorVersion')"))
        edition = int(value(session, "select serverproperty('EngineEdition')"))
        if edition not in {5, 8}:
            if major < 17:
                pytest.skip("optimized locking came with 2025; to run it: --engine sqlserver2025")
            name = value(session, "select db_name()")
            for option in ("accelerated_database_recovery", "optimized_locking"):
                session.execute(f"alter database {name} set {option} = on with rollback immediate")
        assert value(session, "select databasepropertyex(db_name(), N'IsOptimizedLockingOn')") == 1
    migrate.migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def unversioned(server: Server) -> Iterator[str]:
    """Return the URL of a database with rowq and without row versions."""
    url = server.fresh_database()
    with closing(server.connect(url)) as session:
        name = value(session, "select db_name()")
        if value(session, "select serverproperty('EngineEdition')") == 5:
            pytest.skip("Azure has row versions; to run it: --engine sqlserver2022")
        off = "set read_committed_snapshot off with rollback immediate"
        session.execute(f"alter database {name} {off}")
    migrate.migrate(url)
    yield url
    server.drop_database(url)
