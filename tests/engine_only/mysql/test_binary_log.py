"""The binary log is safe, and replicas have the same tables."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pymysql
import pytest

import rowq
from rowq.tools.migrate import migrate
from tests.engines.base import Connection, Server, Unavailable, wait_until
from tests.helpers.calls import call, dequeue

pytestmark = pytest.mark.slow("a replica beside the server")

_UNSAFE = {1592, 1668}
_TABLES = "select table_name from information_schema.tables where table_schema = 'rowq'"


def call_every_writer(session: Connection, queue: str) -> None:
    """Call the routines that write; check that the server does not warn."""
    queued: dict[str, object] = {"queue_name": queue}
    calls: list[tuple[str, dict[str, object]]] = [
        ("create_queue", {**queued, "archive_days": 1, "max_attempts": 3}),
        ("enqueue", {**queued, "body": "x", "dedup_key": "k", "headers": {"a": 1}}),
        ("enqueue_batch", {**queued, "messages": [{"body": str(n)} for n in range(30)]}),
        ("enqueue", {**queued, "delay_seconds": 0.001}),
        ("promote", queued),
        ("maintain", queued),
        ("archive", queued),
        ("pause_queue", queued),
        ("resume_queue", queued),
        ("alter_queue", {**queued, "archive_days": 2}),
    ]
    for routine, arguments in calls:
        call(session, routine, **arguments)
        assert not unsafe(session), routine
    finishing = ("complete", "complete_and_dequeue", "retry_later", "fail_now", "release")
    for routine in (*finishing, "extend_lease"):
        claim = dequeue(session, queue, 4)[0].claim_id
        assert not unsafe(session), "dequeue_fast"
        call(session, routine, queue_name=queue, claim_id=claim)
        assert not unsafe(session), routine
    dead = [row.message_id for row in call(session, "list_dead", queue_name=queue)]
    call(session, "reset", queue_name=queue, message_ids=dead[:2])
    assert not unsafe(session), "reset"
    call(session, "cancel", queue_name=queue, message_ids=dead[2:])
    assert not unsafe(session), "cancel"
    call(session, "archive", queue_name=queue)


def unsafe(session: Connection) -> list[str]:
    """Return the warnings about statements that are unsafe for the binary log."""
    rows = session.execute("show warnings").fetchall()
    return [text for _, number, text in rows if int(number) in _UNSAFE]


@pytest.mark.pitfall("mysql 7")
@pytest.mark.parametrize("form", ["row", "mixed"])
def test_no_statement_is_unsafe_for_the_binary_log(
    connection: Connection, queue_name: str, form: str
) -> None:
    if connection.execute("select @@log_bin").fetchone() == (0,):
        pytest.skip("the server keeps no binary log; to run it: start it with --log-bin")
    connection.execute(f"set session binlog_format = '{form}'")
    call_every_writer(connection, queue_name)


@pytest.mark.pitfall("mysql 7")
def test_statement_based_logging_is_refused_by_the_engine(
    connection: Connection, queue_name: str
) -> None:
    call(connection, "create_queue", queue_name=queue_name)
    connection.execute("set session binlog_format = 'statement'")
    with pytest.raises(pymysql.MySQLError, match="1665"):
        call(connection, "enqueue", queue_name=queue_name)
    connection.execute("set session binlog_format = 'mixed'")
    assert dequeue(connection, queue_name) == []


@pytest.fixture
def two_servers(server: Server) -> Iterator[tuple[str, str]]:
    """Return the URLs of two empty servers."""
    if server.product != "mariadb":
        pytest.skip("the test uses MariaDB's statements for replicas; to run it: --engine mariadb")
    if not server.how.startswith("local programs"):
        pytest.skip(
            "a replica must reach its source by the same address; to run it: local programs"
        )
    urls: list[str] = []
    try:
        urls += [server.fresh_database() for _ in range(2)]
    except Unavailable as reason:
        pytest.skip(f"no second server: {reason}; to run it: local programs")
    yield urls[0], urls[1]
    for url in urls:
        server.drop_database(url)


@pytest.mark.pitfall("mysql 7")
@pytest.mark.parametrize("form", ["row", "mixed"])
def test_replica_has_the_same_rows(server: Server, two_servers: tuple[str, str], form: str) -> None:
    source, replica = (server.connect(url) for url in two_servers)
    ((log, start, *_),) = source.execute("show master status").fetchall()
    parts = urlsplit(two_servers[0])
    replica.execute("set global server_id = 2")
    replica.execute(
        "change master to master_host = %s, master_port = %s, master_user = %s,"
        " master_password = %s, master_log_file = %s, master_log_pos = %s, master_use_gtid = no",
        [parts.hostname, parts.port, parts.username, parts.password, log, start],
    )
    source.execute(f"set global binlog_format = '{form}'")
    migrate(two_servers[0])
    with rowq.connect(two_servers[0]) as queue:
        session = server.connect(two_servers[0])
        call_every_writer(session, "orders")
        queue.enqueue("orders", b"\x00\xff")
    replica.execute("start slave")
    ((_, position, *_),) = source.execute("show master status").fetchall()

    def caught_up() -> bool:
        cursor = replica.cursor(pymysql.cursors.DictCursor)
        cursor.execute("show slave status")
        (row,) = cursor.fetchall()
        assert not row["Last_Error"], row["Last_Error"]
        return bool(row["Exec_Master_Log_Pos"] == position)

    wait_until(caught_up, "the replica has caught up", 30)
    replica.execute("stop slave")
    assert checksums(replica) == checksums(source)
    replica.execute("reset slave all")
    for opened in (source, replica, session):
        opened.close()


def checksums(connection: Connection) -> dict[str, int]:
    """Return a checksum per table."""
    names = [name for (name,) in connection.execute(_TABLES).fetchall()]
    rows = connection.execute(f"checksum table {', '.join(f'rowq.{name}' for name in names)}")
    return dict(rows.fetchall())
