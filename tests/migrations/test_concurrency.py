"""Many sessions migrate concurrently, in one database and in many."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from rowq.tools import migrate
from tests.engines.base import Connection
from tests.engines.postgres.server import PostgresServer
from tests.helpers.releases import EVERY, NEWEST
from tests.migrations.catalog import snapshot

SESSIONS = 20


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_20_concurrent_installations_install_once(
    isolation: str, empty_database: str, session: Connection
) -> None:
    name = session.info.dbname
    session.execute(f"alter database {name} set default_transaction_isolation = '{isolation}'")
    with ThreadPoolExecutor(SESSIONS) as pool:
        done = list(pool.map(migrate.migrate, [empty_database] * SESSIONS))
    assert sorted(number for result in done for number in result.applied) == list(EVERY)
    assert {result.installed for result in done} == {NEWEST}
    logged = session.execute("select migration_id, operation from rowq.migration_log").fetchall()
    assert logged[0] == ("pg-0001-first-release", "apply")
    assert len(logged) == NEWEST


@pytest.mark.usefixtures("second_release")
def test_20_concurrent_upgrades_and_rollbacks_leave_a_release(
    empty_database: str, session: Connection
) -> None:
    migrate.migrate(empty_database)
    whole = {2: snapshot(session)}
    migrate.rollback(empty_database)
    whole[1] = snapshot(session)

    def either(number: int) -> None:
        if number % 2:
            migrate.migrate(empty_database)
        else:
            migrate.rollback(empty_database, to=1)

    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(either, range(SESSIONS)))
    assert snapshot(session) == whole[migrate.status(empty_database).installed]


def test_first_installations_run_concurrently_in_many_databases(cluster: PostgresServer) -> None:
    urls = [cluster.fresh_database() for _ in range(6)]
    with ThreadPoolExecutor(len(urls)) as pool:
        done = list(pool.map(migrate.migrate, urls))
    assert [result.applied for result in done] == [EVERY] * len(urls)
    assert not any(result.notices for result in done)
    for url in urls:
        with psycopg.connect(url) as connection:
            assert snapshot(connection)["schema"][0][0] == "rowq_owner"
