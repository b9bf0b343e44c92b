"""The optional Scheduler job that calls maintain."""

from collections.abc import Iterator
from contextlib import closing

import oracledb
import pytest

from rowq.tools import migrate
from tests.engine_only.oracle.installed import grant, objects, rows, run_sources
from tests.engines.base import Connection, wait_until
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, call_one, enqueue

JOBS = "select j.job_name, j.enabled, j.failure_count from user_scheduler_jobs j"


@pytest.fixture
def session(server: OracleServer, empty_database: str) -> Iterator[Connection]:
    """Return a session of an owner with the job, created twice."""
    grant(server, empty_database, "create job")
    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as connection:
        for _ in range(2):
            run_sources(connection, "maintain_job.sql")
        yield connection


@pytest.mark.promise("P11", "P19")
def test_job_maintains_queues_repeatedly(session: Connection) -> None:
    call(session, "create_queue", queue_name="q")
    for ready in (1, 2):
        enqueue(session, "q", "late", delay_seconds=1)
        wait_until(
            lambda: call_one(session, "queue_stats", queue_name="q").ready == ready,  # noqa: B023
            "the message is promoted",
            seconds=120,
        )
    assert rows(session, JOBS) == [("ROWQ_MAINTAIN", "TRUE", 0)]


@pytest.mark.pitfall("oracle 43")
@pytest.mark.promise("P19")
def test_job_continues_after_an_error_in_one_queue(session: Connection) -> None:
    """The run fails at its end, which logs the error."""
    for name in ("broken", "fine"):
        call(session, "create_queue", queue_name=name)
        enqueue(session, name, "late", delay_seconds=1)
    ((queue_id,),) = rows(
        session, "select q.queue_id from rowq_queue q where q.queue_name = 'broken'"
    )
    session.execute(
        f"alter table rowq_ready add constraint broken_ck check (queue_id <> {queue_id})"
    )
    wait_until(
        lambda: call_one(session, "queue_stats", queue_name="fine").ready == 1,
        "the other queue's message is promoted",
        seconds=120,
    )
    logged = (
        "select d.additional_info from user_scheduler_job_run_details d"
        " where d.job_name = 'ROWQ_MAINTAIN' and d.status = 'FAILED'"
    )
    wait_until(lambda: rows(session, logged) != [], "the run has failed", seconds=120)
    assert "maintain of broken: ORA-02290" in rows(session, logged)[0][0]


def test_packages_are_replaced_while_the_job_runs(empty_database: str, session: Connection) -> None:
    session.execute("alter package rowq compile")
    session.execute("alter package rowq compile body")
    assert migrate.migrate(empty_database).applied == ()
    assert migrate.status(empty_database).drift == ()


def test_drop_command_of_the_head_removes_the_job(session: Connection) -> None:
    session.execute("begin dbms_scheduler.drop_job('ROWQ_MAINTAIN', force => true); end;")
    assert rows(session, JOBS) == []


def test_rollback_to_nothing_removes_the_job(empty_database: str, session: Connection) -> None:
    migrate.rollback(empty_database, to=0)
    assert rows(session, JOBS) == []
    assert objects(session) == []


def test_job_is_not_created_without_the_right(server: OracleServer, empty_database: str) -> None:
    migrate.migrate(empty_database)
    with closing(server.connect(empty_database)) as session:
        with pytest.raises(oracledb.DatabaseError, match=r"ORA-27486|ORA-01031"):
            run_sources(session, "maintain_job.sql")
        assert rows(session, JOBS) == []
