"""A rowq role gives no rights beyond its routines."""

from collections.abc import Iterator

import psycopg
import pytest

from rowq.tools.migrate import migrate
from tests.engines.postgres.server import PostgresServer
from tests.security.postgres.conftest import Login, Session


@pytest.fixture
def consumer(installed: str, login: Login) -> Iterator[Session]:
    """Return a consumer's session."""
    assert installed
    with psycopg.connect(login("consumer", "rowq_consumer"), autocommit=True) as session:
        yield session


@pytest.mark.promise("P16")
@pytest.mark.parametrize(
    "attempt",
    [
        "set role rowq_owner",
        "set role rowq_admin",
        "set session authorization postgres",
        "set session_replication_role = replica",
        "set session_preload_libraries = 'auto_explain'",
        "set lc_messages = 'C'",
        "grant rowq_admin to consumer",
        "alter function rowq.complete(text, bigint, bigint[], jsonb) reset all",
        "create function rowq.mine() returns int language sql as 'select 1'",
        "select rowq.internal_finish(1, 0, null, null, null, null)",
        "select nextval('rowq.message_seq')",
        "table rowq.message",
        "begin; lock table rowq.queue in access share mode",
    ],
)
def test_consumer_gains_no_other_rights(consumer: Session, attempt: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        consumer.execute(attempt)


@pytest.mark.promise("P16")
def test_statistics_and_sessions_show_no_body(consumer: Session, superuser: Session) -> None:
    superuser.execute("select rowq.create_queue('orders')")
    sent = "select rowq.enqueue('orders', 'secret-' || n) from generate_series(1, 200) n"
    superuser.execute(sent)
    superuser.execute("analyze")
    shown = "select count(*) from pg_stats where schemaname = 'rowq'"
    assert consumer.execute(shown).fetchone() == (0,)
    superuser.execute("select rowq.enqueue('orders', 'secret')")
    others = "select 1 from pg_stat_activity where pid <> pg_backend_pid() and query ~ 'secret'"
    assert consumer.execute(others).fetchone() is None
    assert superuser.execute(shown).fetchone() != (0,)


@pytest.mark.promise("P16")
def test_role_without_connect_cannot_use_the_database(
    cluster: PostgresServer, consumer: Session, superuser: Session
) -> None:
    other = cluster.fresh_database()
    try:
        migrate(other)
        name = other.partition("?")[0].rpartition("/")[2]
        superuser.execute(f"revoke connect on database {name} from public")
        there = str(consumer.info.dsn).replace(f"dbname={consumer.info.dbname}", f"dbname={name}")
        with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
            psycopg.connect(there)
    finally:
        cluster.drop_database(other)
