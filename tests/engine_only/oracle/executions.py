"""Counts the statements on some tables that a queue runs which does not use what these are for."""

from tests.engines.base import Connection
from tests.engines.oracle.server import OracleServer
from tests.helpers.calls import call, dequeue, enqueue

_EXECUTIONS = """
    select coalesce(sum(s.executions), 0)
    from v$sql s
    where s.parsing_schema_name = :owner
      and s.command_type in (2, 3, 6, 7)
      and regexp_like(lower(s.sql_text), :names)
    """


def executions_by_plain_work(
    server: OracleServer, connection: Connection, queue: str, *tables: str
) -> int:
    """Work on plain messages in every way; return how many statements named one of the tables."""
    pattern = f"rowq_({'|'.join(tables)})"

    def executions() -> int:
        ((count,),) = server.ask(
            _EXECUTIONS, owner=connection.username.upper(), names=pattern
        )  # fmt: skip
        return int(count)

    before = executions()
    enqueue(connection, queue, "a", "b", "c")
    enqueue(connection, queue, "late", delay_seconds=60)
    call(connection, "enqueue_batch", queue_name=queue, messages=[{"body": "x"}] * 10)
    for finish_by in ("complete", "retry_later", "fail_now", "release"):
        claim = dequeue(connection, queue, 2)[0].claim_id
        call(connection, finish_by, queue_name=queue, claim_id=claim)
    while rows := dequeue(connection, queue, 100):
        call(connection, "complete", queue_name=queue, claim_id=rows[0].claim_id)
    return executions() - before
