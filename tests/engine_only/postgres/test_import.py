"""rowq import from pgmq, pg-boss and procrastinate, installed by their own installers.

pgmq's SQL is in its Python package; pg-boss is in .venv/peers_node, see benchmarks/README.md.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pgmq.install import get_embedded_install_sql
from procrastinate import App, SyncPsycopgConnector

import rowq
from benchmarks.studies.peers.node import NODE_PEERS
from benchmarks.studies.peers.peer import AbsentError
from rowq.contrib.imports.source import origin_of
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.migrate import migrate
from tests.cli.conftest import Ran, run_app
from tests.engines.base import Connection, Server, wait_until

PROGRAM = Path(__file__).with_name("pg_boss_jobs.mjs")


def digest(bodies: list[Any]) -> str:
    """Return a digest of bodies, independent of their order."""
    return hashlib.sha256("\0".join(sorted(map(str, bodies))).encode()).hexdigest()


def bodies_in_rowq(connection: Connection, queue_name: str) -> list[Any]:
    """Return all bodies of a queue, in any state."""
    rows = connection.execute(
        "select m.body from rowq.message m join rowq.queue q using (queue_id)"
        " where q.queue_name = %s",
        [queue_name],
    )
    return [row[0] for row in rows]


def details(connection: Connection, queue_name: str, dedup_key: str) -> Any:
    """Return the details of the message with a key."""
    found = rowq.Queue(connection).find_message(queue_name, dedup_key)
    assert found is not None, dedup_key
    return found


def origin(connection: Connection, table: str) -> str:
    """Return the part of a dedup key that identifies a table."""
    row = connection.execute(
        "select s.system_identifier, d.oid, %s::regclass::oid"
        " from pg_control_system() s, pg_database d where d.datname = current_database()",
        [table],
    ).fetchone()
    return origin_of(*row)


def key_in_pgmq(connection: Connection, number: int) -> str:
    (microseconds,) = connection.execute(
        "select (extract(epoch from enqueued_at) * 1000000)::bigint from pgmq.q_mail"
        " where msg_id = %s",
        [number],
    ).fetchone()
    return f"pgmq:{origin(connection, 'pgmq.q_mail')}:{number}:{microseconds}"


def imported(url: str, *arguments: object) -> Ran:
    return run_app("import", *arguments, "--json", url=url)


@pytest.fixture
def elsewhere(server: Server) -> Iterator[str]:
    """Return the URL of another database with rowq."""
    url = server.fresh_database()
    migrate(url)
    yield url
    server.drop_database(url)


@pytest.fixture
def pgmq(owner: Connection) -> Connection:
    """Return a session in a database with rowq, pgmq and its messages."""
    owner.execute(get_embedded_install_sql())
    owner.execute("select pgmq.create('Mail'), pgmq.create('empty')")
    owner.execute(
        "select pgmq.send('Mail', jsonb_build_object('n', n, 'text', 'ä🐘'))"
        " from generate_series(1, 23) n"
    )
    owner.execute(
        'select pgmq.send(\'Mail\', \'{"n": 24}\', \'{"x-pgmq-group": "g", "a": null}\', 3600)'
    )
    owner.execute("select pgmq.send('Mail', null::jsonb)")
    owner.execute("select pgmq.read('Mail', 0, 2), pgmq.read('Mail', 900, 1)")
    return owner


def bodies_in_pgmq(connection: Connection) -> list[Any]:
    return [row[0] for row in connection.execute('select message::text from pgmq."q_mail"')]


def test_dry_run_counts_and_changes_nothing(pgmq: Connection, empty_database: str) -> None:
    done = imported(empty_database, "--from", "pgmq", "--dry-run")
    assert done.code == 0, done.err
    assert [(row["source"], row["messages"]) for row in done.rows] == [("Mail", 25), ("empty", 0)]
    first = done.rows[0]
    assert (first["later"], first["tried"], first["left"], first["missing"]) == (2, 2, 0, True)
    assert pgmq.execute("select count(*) from rowq.queue_stats()").fetchone() == (0,)
    assert len(bodies_in_pgmq(pgmq)) == 25


def test_pgmq_messages_are_copied_once(pgmq: Connection, empty_database: str) -> None:
    options = ("--from", "pgmq", "Mail", "--create", "--batch-size", 10)
    for enqueued, duplicates in ((25, 0), (0, 25)):
        done = imported(empty_database, *options)
        assert (done.row["enqueued"], done.row["duplicates"]) == (enqueued, duplicates), done.err
    assert len(bodies_in_pgmq(pgmq)) == 25
    assert digest(bodies_in_rowq(pgmq, "Mail")) == digest(bodies_in_pgmq(pgmq))
    times = dict(pgmq.execute('select msg_id, vt from pgmq."q_mail"').fetchall())
    read = [row[0] for row in pgmq.execute('select msg_id from pgmq."q_mail" where vt > now()')]
    assert len(read) == 2
    for number in read:
        found = details(pgmq, "Mail", key_in_pgmq(pgmq, number))
        assert (found.state, found.due_at) == ("delayed", times[number])
    grouped = details(pgmq, "Mail", key_in_pgmq(pgmq, 24))
    assert (grouped.group_key, grouped.headers) == ("g", {"x-pgmq-group": "g", "a": None})


def test_same_id_in_other_queue_is_another_message(
    pgmq: Connection, empty_database: str, elsewhere: str
) -> None:
    """Ids start at 1 in each queue: another queue, another database, a recreated queue."""
    wanted = bodies_in_pgmq(pgmq)
    pgmq.execute(
        "select pgmq.send('empty', jsonb_build_object('second', n)) from generate_series(1, 9) n"
    )
    wanted += [row[0] for row in pgmq.execute("select message::text from pgmq.q_empty")]
    options = ("--from", "pgmq", "--into", "all", "--create", "--remove")
    for name, count in (("Mail", 25), ("empty", 9)):
        done = imported(empty_database, *options, name)
        assert (done.row["enqueued"], done.row["removed"]) == (count, count), done.err
    for text in ("third", "fourth"):
        with psycopg.connect(elsewhere, autocommit=True) as other:
            if text == "third":
                other.execute(get_embedded_install_sql())
            else:
                other.execute("select pgmq.drop_queue('Mail')")
            other.execute("select pgmq.create('Mail')")
            other.execute("select pgmq.send('Mail', jsonb_build_object(%s::text, 1))", [text])
            wanted += bodies_in_pgmq(other)
        done = imported(empty_database, *options, "Mail", "--from-url", elsewhere)
        assert (done.row["enqueued"], done.row["removed"]) == (1, 1), done.err
    assert digest(bodies_in_rowq(pgmq, "all")) == digest(wanted)


def test_large_messages_are_removed_in_several_calls(
    pgmq: Connection, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pgmq.execute(
        "select pgmq.send('empty', to_jsonb(n || repeat('x', 3000000)))"
        " from generate_series(1, 5) n"
    )
    before = [row[0] for row in pgmq.execute("select message::text from pgmq.q_empty order by 1")]
    with rowq.connect(empty_database) as queue:
        queue.create_queue("empty", max_body_length=4_000_000)
    enqueue_batch = rowq.Queue.enqueue_batch
    calls = []

    def counted(self: rowq.Queue, name: str, messages: Any) -> Any:
        calls.append(len(messages))
        return enqueue_batch(self, name, messages)

    monkeypatch.setattr(rowq.Queue, "enqueue_batch", counted)
    done = imported(empty_database, "--from", "pgmq", "empty", "--remove")
    assert (done.row["enqueued"], done.row["removed"]) == (5, 5), done.err
    assert [count for count in calls if count] == [2, 2, 1]
    assert digest(bodies_in_rowq(pgmq, "empty")) == digest(before)


@pytest.mark.usefixtures("pgmq")
def test_import_warns_of_read_group_messages(empty_database: str) -> None:
    done = imported(empty_database, "--from", "pgmq", "Mail", "--dry-run")
    assert done.row["overtaken"] == 1
    assert "warning: 1 delayed messages of Mail have a group key" in done.err


def test_batch_is_moved_in_one_transaction(pgmq: Connection, empty_database: str) -> None:
    before = bodies_in_pgmq(pgmq)
    with rowq.connect(empty_database) as queue:
        queue.create_queue("mail", max_body_length=40)
    pgmq.execute(
        "update pgmq.q_mail set message = jsonb_build_object('long', repeat('x', 100))"
        " where msg_id = 15"
    )
    changed = bodies_in_pgmq(pgmq)
    options = ("--from", "pgmq", "Mail", "--into", "mail", "--remove", "--batch-size", 10)
    done = imported(empty_database, *options)
    assert done.code == ExitCode.REFUSED
    assert "RQ711" in done.err
    assert (
        "(message 11 of Mail to message 20 of Mail). 10 messages of Mail were imported" in done.err
    )
    assert (len(bodies_in_rowq(pgmq, "mail")), len(bodies_in_pgmq(pgmq))) == (10, 15)
    assert digest(bodies_in_rowq(pgmq, "mail") + bodies_in_pgmq(pgmq)) == digest(changed)

    with rowq.connect(empty_database) as queue:
        queue.alter_queue("mail", max_body_length=1000)
    done = imported(empty_database, *options)
    assert (done.row["enqueued"], done.row["duplicates"], done.row["removed"]) == (15, 0, 15)
    assert bodies_in_pgmq(pgmq) == []
    assert digest(bodies_in_rowq(pgmq, "mail")) == digest(changed) != digest(before)
    assert imported(empty_database, *options).row["messages"] == 0


def test_interrupted_batch_is_on_one_side_only(
    pgmq: Connection, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bodies_in_pgmq(pgmq)
    enqueue_batch = rowq.Queue.enqueue_batch

    def interrupted(self: rowq.Queue, name: str, messages: Any) -> Any:
        done = enqueue_batch(self, name, messages)
        if len(messages) == 5:
            raise KeyboardInterrupt
        return done

    options = ("--from", "pgmq", "Mail", "--create", "--remove", "--batch-size", 20)
    with monkeypatch.context() as patched:
        patched.setattr(rowq.Queue, "enqueue_batch", interrupted)
        done = imported(empty_database, *options)
    assert done.code == ExitCode.INTERRUPTED
    assert "interrupted. 20 messages of Mail were imported" in done.err
    assert (len(bodies_in_rowq(pgmq, "Mail")), len(bodies_in_pgmq(pgmq))) == (20, 5)
    done = imported(empty_database, *options)
    assert (done.row["enqueued"], done.row["removed"]) == (5, 5)
    assert digest(bodies_in_rowq(pgmq, "Mail")) == digest(before)


def test_killed_import_loses_and_duplicates_nothing(
    pgmq: Connection, empty_database: str, elsewhere: str
) -> None:
    pgmq.execute(
        "select pgmq.send('Mail', jsonb_build_object('more', n)) from generate_series(1, 2000) n"
    )
    before = bodies_in_pgmq(pgmq)
    options = ("--from", "pgmq", "Mail", "--from-url", empty_database, "--remove", "--create")
    program = (sys.executable, "-c", "from rowq.tools.program import main; main()")
    with psycopg.connect(elsewhere, autocommit=True) as target:
        process = subprocess.Popen(
            [*program, "import", *options, "--batch-size", "1"],
            env={**os.environ, "ROWQ_URL": elsewhere},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: len(bodies_in_rowq(target, "Mail")) > 10, "some are in", 60)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
        assert len(bodies_in_pgmq(pgmq)) > 0
        done = imported(elsewhere, *options)
        assert done.code == 0, done.err
        assert bodies_in_pgmq(pgmq) == []
        assert digest(bodies_in_rowq(target, "Mail")) == digest(before)


@pytest.fixture
def procrastinate(owner: Connection, empty_database: str) -> Connection:
    """Return a session in a database with rowq, procrastinate and its jobs."""
    app = App(connector=SyncPsycopgConnector(conninfo=empty_database))

    @app.task(name="shop.mail", queue="mail")
    def mail(**_: object) -> None:
        """Do nothing."""

    with app.open():
        app.schema_manager.apply_schema()
        mail.defer(n=1, text="ä🐘")
        mail.configure(lock="order-7").defer(n=2)
        mail.configure(lock="order-7", priority=3).defer(n=3)
        mail.configure(queueing_lock="once", priority=-3).defer(n=4)
        mail.configure(schedule_at=datetime.now(UTC) + timedelta(hours=1)).defer(n=5)
        more: list[dict[str, Any]] = [{"n": n} for n in range(6, 26)]
        mail.batch_defer(*more)
        mail.configure(queue="other").defer(n=100)
        mail.configure(priority=1000).defer(n=-1)
    owner.execute("select procrastinate_fetch_job_v2(null, null)")
    owner.execute("update procrastinate_jobs set attempts = 2 where args @> '{\"n\": 6}'")
    return owner


def bodies_in_procrastinate(connection: Connection) -> list[Any]:
    rows = connection.execute(
        "select args::text from procrastinate_jobs where queue_name = 'mail' and status = 'todo'"
    )
    return [row[0] for row in rows]


def test_procrastinate_jobs_are_copied_once(procrastinate: Connection, empty_database: str) -> None:
    dry = imported(empty_database, "--from", "procrastinate", "--dry-run")
    assert [(row["source"], row["messages"], row["left"]) for row in dry.rows] == [
        ("mail", 25, 1),
        ("other", 1, 0),
    ]
    assert (dry.rows[0]["later"], dry.rows[0]["tried"]) == (1, 1)
    options = ("--from", "procrastinate", "mail", "--create", "--batch-size", 10)
    for enqueued, duplicates in ((25, 0), (0, 25)):
        done = imported(empty_database, *options)
        assert (done.row["enqueued"], done.row["duplicates"]) == (enqueued, duplicates), done.err
    wanted = bodies_in_procrastinate(procrastinate)
    assert len(wanted) == 25
    assert digest(bodies_in_rowq(procrastinate, "mail")) == digest(wanted)

    jobs = origin(procrastinate, "procrastinate_jobs")
    first = details(procrastinate, "mail", f"procrastinate:{jobs}:1")
    assert (first.message_type, first.priority, first.state) == ("shop.mail", 5, "ready")
    locked = [details(procrastinate, "mail", f"procrastinate:{jobs}:{n}") for n in (2, 3)]
    assert [(one.group_key, one.priority, one.state) for one in locked] == [
        ("order-7", 5, "blocked"),
        ("order-7", 4, "ready"),
    ]
    assert details(procrastinate, "mail", "once").priority == 6
    assert details(procrastinate, "mail", f"procrastinate:{jobs}:5").state == "delayed"


def test_procrastinate_jobs_are_removed_with_their_periods(
    procrastinate: Connection, empty_database: str
) -> None:
    wanted = bodies_in_procrastinate(procrastinate)
    procrastinate.execute(
        "insert into procrastinate_periodic_defers (task_name, defer_timestamp, job_id)"
        " values ('shop.mail', 1, 1)"
    )
    options = ("--from", "procrastinate", "mail", "--create", "--remove", "--batch-size", 10)
    done = imported(empty_database, *options)
    assert (done.row["enqueued"], done.row["removed"], done.row["left"]) == (25, 25, 1), done.err
    assert digest(bodies_in_rowq(procrastinate, "mail")) == digest(wanted)
    left = procrastinate.execute("select queue_name, status from procrastinate_jobs order by 1")
    assert left.fetchall() == [("mail", "doing"), ("other", "todo")]


def test_duplicate_by_queueing_lock_stays(procrastinate: Connection, empty_database: str) -> None:
    """The message with this key in rowq may be a different one."""
    with rowq.connect(empty_database) as queue:
        queue.create_queue("mail")
        queue.enqueue("mail", {"n": "new"}, dedup_key="once")
        options = ("--from", "procrastinate", "mail", "--remove")
        done = imported(empty_database, *options)
        assert (done.row["enqueued"], done.row["duplicates"], done.row["removed"]) == (24, 1, 24)
        assert "warning: 1 messages of mail were not removed" in done.err
        assert bodies_in_procrastinate(procrastinate) == ['{"n": 4}']
        queue.cancel("mail", [details(procrastinate, "mail", "once").message_id])
    done = imported(empty_database, *options)
    assert (done.row["enqueued"], done.row["removed"], done.err) == (1, 1, "")


def test_jobs_added_during_run_stay(
    procrastinate: Connection, empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueue_batch = rowq.Queue.enqueue_batch

    def beside(self: rowq.Queue, name: str, messages: Any) -> Any:
        done = enqueue_batch(self, name, messages)
        if messages:
            procrastinate.execute("update procrastinate_jobs set priority = -4 where id = 12")
            procrastinate.execute("delete from procrastinate_jobs where id = 13")
            procrastinate.execute(
                "insert into procrastinate_jobs (queue_name, task_name) values ('mail', 'new')"
            )
        return done

    monkeypatch.setattr(rowq.Queue, "enqueue_batch", beside)
    options = ("--from", "procrastinate", "mail", "--create", "--batch-size", 5)
    done = imported(empty_database, *options)
    assert (done.code, done.row["messages"], done.row["enqueued"]) == (0, 24, 24), done.err
    jobs = origin(procrastinate, "procrastinate_jobs")
    assert details(procrastinate, "mail", f"procrastinate:{jobs}:12").priority == 6


def test_jobs_outside_search_path_are_removed(owner: Connection, empty_database: str) -> None:
    """A trigger of procrastinate uses table names without schema."""
    owner.execute("create schema jobs")
    found_there = (
        f"{empty_database}{'&' if '?' in empty_database else '?'}options=-csearch_path%3Djobs"
    )
    app = App(connector=SyncPsycopgConnector(conninfo=found_there))
    with app.open():
        app.schema_manager.apply_schema()
        app.configure_task("shop.mail", queue="mail").defer(n=1)
    options = ("--from", "procrastinate", "--schema", "jobs", "mail", "--create", "--remove")
    done = imported(empty_database, *options)
    assert (done.code, done.row["removed"]) == (0, 1), done.err
    assert bodies_in_rowq(owner, "mail") == ['{"n": 1}']


def test_too_long_lock_is_reported(procrastinate: Connection, empty_database: str) -> None:
    procrastinate.execute("update procrastinate_jobs set lock = repeat('k', 201) where id = 12")
    done = imported(empty_database, "--from", "procrastinate", "mail", "--create")
    assert done.code == ExitCode.BAD_INPUT
    assert "job 12 of mail: group key must be at most 200 characters, got 201" in done.err
    assert "No messages of mail were imported" in done.err
    assert bodies_in_rowq(procrastinate, "mail") == []


@pytest.fixture
def pg_boss(owner: Connection, empty_database: str) -> Connection:
    """Return a session in a database with rowq, pg-boss and its jobs."""
    (peer,) = (peer for peer in NODE_PEERS if peer.name == "pg-boss")
    try:
        peer.find()
    except AbsentError as error:
        pytest.skip(f"{error}; to run it: see benchmarks/README.md")
    node = peer.program[0]
    made = subprocess.run(
        [node, str(PROGRAM), empty_database], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout) == {"active": {"n": -2}, "failed": {"n": 26}}
    return owner


def bodies_in_pg_boss(connection: Connection) -> list[Any]:
    rows = connection.execute(
        "select data::text from pgboss.job where name = 'mail' and state in ('created', 'retry')"
    )
    return [row[0] for row in rows]


@pytest.mark.slow("pg-boss of npm")
def test_pg_boss_jobs_are_copied_once_and_removed(pg_boss: Connection, empty_database: str) -> None:
    dry = imported(empty_database, "--from", "pg-boss", "--dry-run")
    assert dry.code == 0, dry.err
    counted = {row["source"]: (row["messages"], row["later"], row["left"]) for row in dry.rows}
    assert counted == {
        "mail": (27, 2, 1),
        "other": (1, 0, 0),
        "exclusive": (1, 0, 0),
        "key_strict_fifo": (2, 0, 0),
    }
    options = ("--from", "pg-boss", "mail", "--create", "--batch-size", 10)
    for enqueued, duplicates in ((27, 0), (0, 27)):
        done = imported(empty_database, *options)
        assert (done.row["enqueued"], done.row["duplicates"]) == (enqueued, duplicates), done.err
        assert done.row["tried"] == 1
    wanted = bodies_in_pg_boss(pg_boss)
    assert digest(bodies_in_rowq(pg_boss, "mail")) == digest(wanted)

    jobs = origin(pg_boss, "pgboss.job")
    ids = {
        json.loads(data)["n"] if data else None: f"pg-boss:{jobs}:{number}"
        for number, data in pg_boss.execute("select id, data::text from pgboss.job").fetchall()
    }
    urgent = details(pg_boss, "mail", ids[0])
    assert (urgent.priority, urgent.max_attempts, urgent.body) == (4, 5, '{"n": 0, "text": "ä🐘"}')
    least = details(pg_boss, "mail", ids[None])
    assert (least.priority, least.body) == (6, None)
    assert details(pg_boss, "mail", ids[2]).body == '{"n": 2}'
    assert {details(pg_boss, "mail", ids[n]).state for n in (3, 4)} == {"ready"}
    start_after = pg_boss.execute(
        "select start_after from pgboss.job where data @> '{\"n\": 26}'"
    ).fetchone()
    retried = details(pg_boss, "mail", ids[26])
    assert (retried.state, retried.due_at, retried.priority) == ("delayed", start_after[0], 3)

    done = imported(empty_database, *options, "--remove")
    assert (done.row["enqueued"], done.row["removed"]) == (0, 27)
    assert bodies_in_pg_boss(pg_boss) == []
    states = pg_boss.execute("select state::text from pgboss.job where name = 'mail' order by 1")
    assert [row[0] for row in states] == ["active", "cancelled", "completed"]
    assert digest(bodies_in_rowq(pg_boss, "mail")) == digest(wanted)


def test_pg_boss_key_follows_policy_of_queue(pg_boss: Connection, empty_database: str) -> None:
    done = imported(empty_database, "--from", "pg-boss", "--create")
    assert done.code == 0, done.err
    assert details(pg_boss, "exclusive", "only").body == '{"n": 200}'
    with rowq.connect(empty_database) as queue:
        (first,) = queue.peek("key_strict_fifo", max_messages=10)
        assert first.body == '{"n": 300}'
        assert queue.queue_stats("key_strict_fifo")[0].blocked == 1

    # Another job with the key does not duplicate imported ones.
    pg_boss.execute(
        "insert into pgboss.job (name, data, singleton_key) values ('mail', '{\"n\": 27}', 'once')"
    )
    done = imported(empty_database, "--from", "pg-boss", "mail", "--remove")
    assert (done.row["enqueued"], done.row["duplicates"], done.row["removed"]) == (1, 27, 28)

    # The key alone does not show whether it is the same message.
    done = imported(empty_database, "--from", "pg-boss", "exclusive", "--remove")
    assert (done.row["duplicates"], done.row["removed"]) == (1, 0)
    assert "warning: 1 messages of exclusive were not removed" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--from", "pgmq"), "pgmq is not installed: no table pgmq.meta"),
        (("--from", "pg-boss"), "pg-boss is not installed: no table pgboss.queue"),
        (("--from", "procrastinate"), "no table public.procrastinate_jobs"),
        (("--from", "procrastinate", "--schema", 'a"b%s'), 'no table a"b%s.procrastinate_jobs'),
    ],
    ids=str,
)
def test_missing_system_is_reported(
    owner: Connection, empty_database: str, arguments: tuple[str, ...], said: str
) -> None:
    done = imported(empty_database, *arguments)
    assert (done.code, said in done.err) == (ExitCode.BAD_INPUT, True), done.err
    assert owner.execute("select count(*) from rowq.queue_stats()").fetchone() == (0,)


def test_unknown_names_are_refused(pgmq: Connection, empty_database: str) -> None:
    done = imported(empty_database, "--from", "pgmq", "nobody")
    assert (done.code, "existing queues: Mail, empty" in done.err) == (ExitCode.BAD_INPUT, True)
    done = imported(empty_database, "--from", "pgmq", "--into", "q")
    assert (done.code, "--into requires one queue" in done.err) == (ExitCode.USAGE, True)
    done = imported(empty_database, "--from", "pgmq", "Mail")
    assert (done.code, "RQ701" in done.err) == (ExitCode.REFUSED, True)
    assert len(bodies_in_pgmq(pgmq)) == 25


def test_table_of_other_release_is_reported(owner: Connection, empty_database: str) -> None:
    owner.execute(
        "create schema pgboss create table queue (name text, policy text)"
        " create table job (id uuid)"
    )
    done = imported(empty_database, "--from", "pg-boss")
    assert done.code == ExitCode.BAD_INPUT
    assert "table pgboss.job has no column name, priority" in done.err
    assert "unsupported release of pg-boss" in done.err


def test_import_reports_missing_installation(server: Server, pgmq: Connection) -> None:
    assert pgmq
    url = server.fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(get_embedded_install_sql())
        connection.execute("select pgmq.create('q')")
    done = imported(url, "--from", "pgmq")
    server.drop_database(url)
    assert (done.code, "rowq migrate" in done.err) == (ExitCode.NOT_INSTALLED, True)
