"""rowq.Queue on objects of SQLAlchemy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import sqlalchemy
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool, QueuePool

import rowq
from rowq.engines import engine_for_url
from rowq.tools.metrics import Collector
from tests.client.test_queue import check_types
from tests.engines.base import Connection, Server
from tests.helpers.client_queue import ready
from tests.metrics.reading import scraped

DIALECTS = {
    "mysql": "mysql+pymysql",
    "oracle": "oracle+oracledb",
    "postgres": "postgresql+psycopg",
    "sqlserver": "mssql+pyodbc",
}


@pytest.fixture
def engine(server: Server, database_url: str) -> Iterator[sqlalchemy.Engine]:
    made = sqlalchemy.create_engine(
        f"{DIALECTS[engine_for_url(database_url).name]}://",
        creator=lambda: server.connect(database_url, autocommit=False),
    )
    yield made
    made.dispose()


def test_session_messages_exist_after_each_commit(
    engine: sqlalchemy.Engine, connection: Connection, made: str
) -> None:
    """The session uses another connection for each transaction, and the queue follows."""
    sessions = scoped_session(sessionmaker(engine))
    rowq.Queue(sessions).enqueue(made, {"id": 0})
    sessions.commit()
    sessions.remove()
    rowq.Queue(connection).purge_queue(made)
    with Session(engine) as session:
        queue = rowq.Queue(session)
        for number in (1, 2):
            queue.enqueue(made, {"id": number})
            assert ready(connection, made) == number - 1
            session.commit()
            engine.dispose()
            assert ready(connection, made) == number
        queue.enqueue(made, {"id": 3})
        session.rollback()
    assert ready(connection, made) == 2


def test_metrics_collector_returns_pool_connections(
    engine: sqlalchemy.Engine, connection: Connection, made: str
) -> None:
    collector = Collector(engine.connect, cache_seconds=0)
    for number in (1, 2):
        rowq.Queue(connection).enqueue(made, number)
        answer = scraped(collector)
        assert answer.value("rowq_messages", queue=made, state="ready") == number
        assert isinstance(engine.pool, QueuePool)
        assert engine.pool.checkedout() == 0


@pytest.mark.parametrize("commits", [True, False])
def test_connection_messages_share_its_transaction(
    engine: sqlalchemy.Engine, connection: Connection, made: str, commits: bool
) -> None:
    """Also if rowq's call is the first of the transaction."""
    with engine.connect() as shared:
        rowq.Queue(shared).enqueue(made, 1)
        shared.commit() if commits else shared.rollback()
    with engine.begin() as begun:
        rowq.Queue(begun).enqueue(made, 2)
    assert ready(connection, made) == commits + 1


def test_pool_connection_is_used_as_the_drivers(
    engine: sqlalchemy.Engine, connection: Connection, made: str
) -> None:
    pooled = engine.raw_connection()
    queue = rowq.Queue(pooled)
    queue.enqueue(made, 1)
    pooled.commit()
    pooled.close()
    assert ready(connection, made) == 1
    with pytest.raises(rowq.QueueClosed, match="closed"):
        queue.enqueue(made, 2)


def test_values_have_the_types_of_the_drivers_connection(
    engine: sqlalchemy.Engine, made: str
) -> None:
    with Session(engine) as session:
        queue = rowq.Queue(session)
        queue.enqueue(made, {"id": 1}, headers={"a": [1]})
        (message,) = queue.dequeue_fast(made)
        for result in (message, *queue.queue_stats(made)):
            check_types(result)
        assert (message.data, message.headers) == ({"id": 1}, {"a": [1]})


def test_dequeue_wait_requires_autocommit(engine: sqlalchemy.Engine, made: str) -> None:
    with Session(engine) as session, pytest.raises(rowq.WrongTransactionState):
        rowq.Queue(session).dequeue_wait(made, wait_seconds=0.1)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda: sqlalchemy.create_engine("sqlite://"), r"got Engine; use engine\.connect\(\)"),
        (lambda: sessionmaker(), r"unsupported connection .*sessionmaker"),
        (lambda: Session(sqlalchemy.create_engine("sqlite://")), r"SQLAlchemy.*pysqlite"),
    ],
)
def test_other_object_is_refused_with_a_hint(wrong: Callable[[], object], hint: str) -> None:
    with pytest.raises(rowq.EngineUnknown, match=hint):
        rowq.Queue(wrong())


def test_other_dialect_is_refused_with_a_hint() -> None:
    other = sqlalchemy.create_engine("sqlite://", poolclass=NullPool)
    with other.connect() as connection, pytest.raises(rowq.EngineUnknown, match="pysqlite"):
        rowq.Queue(connection)
