"""Regressions: bugs that reviews have found."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engines.base import Connection, Server, wait_until_blocked
from tests.helpers.calls import bodies, call, call_one, dequeue_one, enqueue, refused, transaction
from tests.helpers.queues import CheckedQueue

ADVISORY = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"


def process(queue: CheckedQueue, messages: int) -> None:
    """Enqueue and complete messages, so that only their transactions get ids."""
    queue.call("enqueue_batch", messages=[{}] * messages)
    drain(queue)


def drain(queue: CheckedQueue) -> None:
    """Dequeue and complete all messages."""
    while rows := queue.dequeue(1000):
        queue.call("complete", claim_id=rows[0].claim_id)


def maintain(queue: CheckedQueue) -> None:
    """Run maintain."""
    assert queue.call_one("maintain").elected


def queue_id_of(queue: CheckedQueue) -> int:
    """Return the id of a queue."""
    query = "select queue_id from rowq.queue where queue_name = %s"
    found: int = queue.connection.execute(query, [queue.name]).fetchone()[0]
    return found


def dequeue_buffers(queue: CheckedQueue) -> int:
    """Dequeue one message; return the number of pages it touched."""
    query = "explain (analyze, buffers, format json) select * from rowq.dequeue_fast(%s)"
    plan = queue.connection.execute(query, [queue.name]).fetchone()[0][0]["Plan"]
    found: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return found


def hold_a_snapshot(connection: Connection) -> None:
    """Open a transaction that prevents cleanup of dead rows."""
    connection.execute("begin isolation level repeatable read")
    connection.execute("select from rowq.queue")


@pytest.mark.pitfall("postgres 2")
@pytest.mark.promise("P14")
def test_newest_writer_of_the_server_is_delivered(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late = open_owner()
    maintain(own_queue)
    process(own_queue, 1000)
    with transaction(late):
        own_queue.via(late).enqueue("late")
        maintain(own_queue)
        for _ in range(2):
            process(own_queue, 500)
            maintain(own_queue)
    for _ in range(3):
        maintain(own_queue)
    assert bodies(own_queue.dequeue(10)) == ["late"]


@pytest.mark.promise("P14")
def test_open_dequeue_does_not_delay_a_late_message(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late, consumer = open_owner(), open_owner()
    own_queue.enqueue("opens the lane")
    drain(own_queue)
    late.execute("begin")
    own_queue.via(late).enqueue("late")
    process(own_queue, 1000)
    maintain(own_queue)
    own_queue.call("enqueue_batch", messages=[{}] * 300)
    with transaction(consumer):
        for _ in range(300):
            own_queue.via(consumer).dequeue_one()
            if consumer.execute(ADVISORY).fetchone()[0]:
                break
        drain(own_queue)
        late.execute("commit")
        for _ in range(3):
            maintain(own_queue)
        assert bodies(own_queue.dequeue(10)) == ["late"]


@pytest.mark.promise("P13")
def test_empty_dequeue_skips_promoted_delayed_rows(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    hold_a_snapshot(open_owner())
    own_queue.enqueue("warm-up")
    drain(own_queue)
    maintain(own_queue)
    before = dequeue_buffers(own_queue)
    for _ in range(8):
        messages = [{"delay_seconds": 0.000001}] * 1000
        own_queue.call("enqueue_batch", messages=messages)
        drain(own_queue)
        maintain(own_queue)
    assert dequeue_buffers(own_queue) <= before + 20


@pytest.mark.promise("P13")
def test_dequeue_does_not_sweep(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    hold_a_snapshot(open_owner())
    maintain(own_queue)
    for _ in range(20):
        process(own_queue, 1000)
    maintain(own_queue)
    own_queue.call("enqueue_batch", messages=[{}] * 200)
    most = 0
    for _ in range(200):
        owner.execute("update rowq.floor set sweep_at = now() where lane >= 0")
        most = max(most, dequeue_buffers(own_queue))
    assert most < 150


@pytest.mark.pitfall("postgres 3")
@pytest.mark.promise("P13")
def test_safe_floor_survives_lower_transaction_ids(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.enqueue("keeps the queue from being idle")
    own_queue.dequeue_one()
    maintain(own_queue)
    process(own_queue, 500)
    maintain(own_queue)
    owner.execute("update rowq.floor set pending_xid = '5000000000'")
    for _ in range(4):
        process(own_queue, 1000)
        maintain(own_queue)
    query = "select safe_seq from rowq.floor where lane = 11 order by generation limit 1"
    assert owner.execute(query).fetchone()[0] > 2000


@pytest.mark.promise("P09")
def test_reap_continues_after_the_clock_was_ahead(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    maintain(own_queue)
    own_queue.enqueue("held")
    own_queue.dequeue_one()
    ahead = "now() + interval '10 years'"
    owner.execute(f"update rowq.floor set sweep_at = {ahead}, rescan_at = {ahead}".encode())
    owner.execute("update rowq.claim set lease_until = now()")
    assert own_queue.call_one("maintain").reaped == 1


@pytest.mark.pitfall("postgres 13")
@pytest.mark.promise("P09")
def test_long_archive_reader_does_not_delay_maintain(owner: Connection, open_owner: Open) -> None:
    reader = open_owner()
    for number in range(20):
        call(owner, "create_queue", queue_name=f"q{number}", archive_days=1)
    owner.execute("""
        create table rowq.archive_20200101 partition of rowq.archive
        for values from ('2020-01-01 00:00Z') to ('2020-01-02 00:00Z')
        """)
    owner.execute("alter table rowq.archive_20200101 owner to rowq_owner")
    with transaction(reader):
        reader.execute("select from rowq.archive")
        started = time.monotonic()
        call(owner, "maintain")
        assert time.monotonic() - started < 2


@pytest.mark.pitfall("postgres 6")
@pytest.mark.parametrize("routine", ["maintain", "purge_archive", "archive", "queue_stats"])
def test_reading_all_queues_does_not_start_jit(owner: Connection, routine: str) -> None:
    query = "select proconfig from pg_proc where oid = %s::regproc"
    settings = owner.execute(query, [f"rowq.{routine}"]).fetchone()[0]
    assert "enable_seqscan=off" not in settings or "jit=off" in settings


@pytest.mark.promise("P15")
@pytest.mark.parametrize("routine", ["alter_queue", "pause_queue", "resume_queue"])
def test_change_that_waited_for_the_drop_is_refused(
    server: Server, owner: Connection, open_owner: Open, own_queue: CheckedQueue, routine: str
) -> None:
    other = open_owner()
    answers: list[str] = []

    def change() -> None:
        answers.append(own_queue.via(other).refused("RQ701", routine))

    thread = threading.Thread(target=change)
    with transaction(owner):
        own_queue.call("drop_queue")
        thread.start()
        wait_until_blocked(server, server.session_id(other))
    thread.join()
    assert len(answers) == 1


@pytest.mark.promise("P01")
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_enqueue_into_a_dropped_queue_is_not_lost(
    open_owner: Open, own_queue: CheckedQueue, level: str
) -> None:
    other = open_owner()
    maintain(own_queue)
    own_queue.enqueue("opens the lane")
    drain(own_queue)
    other.execute(f"begin isolation level {level}".encode())
    other.execute("select from rowq.queue")
    own_queue.call("drop_queue")
    with pytest.raises(psycopg.Error):
        own_queue.via(other).enqueue("lost")


@pytest.mark.promise("P09")
def test_archive_error_does_not_stop_reaping(owner: Connection, own_queue: CheckedQueue) -> None:
    call(owner, "create_queue", queue_name="archived", archive_days=1)
    owner.execute("""
        create table rowq.archive_20200101 partition of rowq.archive
        for values from ('2020-01-01 00:00Z') to ('2020-01-02 00:00Z')
        """)
    own_queue.call("alter_queue", archive_days=36500)
    enqueue(owner, "archived", "held")
    dequeue_one(owner, "archived")
    owner.execute("update rowq.claim set lease_until = now()")
    assert call_one(owner, "maintain", queue_name="archived").reaped == 1


@pytest.mark.pitfall("postgres 14")
def test_drop_queue_never_deadlocks_a_worker(
    server: Server, owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    worker = open_owner()
    call(owner, "create_queue", queue_name="other")
    enqueue(owner, "other", "held")
    claim_id = dequeue_one(owner, "other").claim_id
    with transaction(worker), ThreadPoolExecutor(1) as thread:
        enqueue(worker, "other", "locks the messages, then needs its claim")
        dropping = thread.submit(refused, owner, "RQ705", "drop_queue", queue_name=own_queue.name)
        wait_until_blocked(server, server.session_id(owner))
        rows = call(worker, "complete", queue_name="other", claim_id=claim_id)
        assert [row.outcome for row in rows] == ["completed"]
        dropping.result()


@pytest.mark.pitfall("postgres 5")
@pytest.mark.promise("P11", "P13")
def test_empty_dequeue_reads_no_undue_messages(own_queue: CheckedQueue) -> None:
    before = dequeue_buffers(own_queue)
    own_queue.call("enqueue_batch", messages=[{"delay_seconds": 3600}] * 5000)
    assert dequeue_buffers(own_queue) <= before + 20


@pytest.mark.promise("P14")
def test_committing_message_is_delivered_without_maintain(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    producer = open_owner()
    for _ in range(40):
        own_queue.enqueue("first")
        with transaction(producer):
            own_queue.via(producer).enqueue("second")
            assert own_queue.dequeue_one().body == "first"
        assert own_queue.dequeue_one().body == "second"


@pytest.mark.promise("P14")
def test_concurrent_dequeues_keep_the_pending_start(
    open_owner: Open, own_queue: CheckedQueue
) -> None:
    late, maintainer = open_owner(), open_owner()
    maintain(own_queue)
    with transaction(late):
        own_queue.via(late).enqueue("late")
        for _ in range(3):
            process(own_queue, 1000)
    own_queue.call("enqueue_batch", messages=[{}] * 200)
    with transaction(maintainer):
        maintain(own_queue.via(maintainer))
        for _ in range(150):
            own_queue.dequeue_one()
    assert own_queue.dequeue_one().body == "late"


@pytest.mark.pitfall("postgres 17")
@pytest.mark.promise("P19")
def test_archive_days_ignore_the_callers_settings(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.call("alter_queue", archive_days=1)
    own_queue.enqueue("finished")
    drain(own_queue)
    owner.execute("set timezone = 'Asia/Kolkata'")
    owner.execute("set datestyle = 'SQL, DMY'")
    assert own_queue.call_one("archive").archived == 1
    owner.execute("set timezone = 'UTC'")
    owner.execute("set datestyle = 'ISO'")
    bounds = owner.execute("""
        select pg_get_expr(relpartbound, oid) from pg_class
        where relname like 'archive\\_%' and relkind = 'r'
        """).fetchone()[0]
    assert re.fullmatch(r"FOR VALUES FROM \('\S+ 00:00:00\+00'\) TO \('\S+ 00:00:00\+00'\)", bounds)


@pytest.mark.pitfall("postgres 1")
@pytest.mark.promise("P13")
def test_reap_backs_off_after_a_slow_scan(
    owner: Connection, open_owner: Open, own_queue: CheckedQueue
) -> None:
    own_queue.call("enqueue_batch", messages=[{}] * 2)
    kept = own_queue.dequeue_one().claim_id
    own_queue.call("extend_lease", claim_id=kept, lease_seconds=86400)
    maintain(own_queue)
    hold_a_snapshot(open_owner())
    owner.execute(
        """
        insert into rowq.claim (queue_id, lease_until, message_ids, lanes, attempts)
        select %s, now(), '{}', '{}', '{}' from generate_series(1, 400000)
        """,
        [queue_id_of(own_queue)],
    )
    owner.execute("delete from rowq.claim where claim_id > %s", [kept])
    maintain(own_queue)
    rescan_at = """
        select extract(epoch from rescan_at - clock_timestamp()) from rowq.floor
        where queue_id = %s and lane = -1 order by generation limit 1
        """
    assert owner.execute(rescan_at, [queue_id_of(own_queue)]).fetchone()[0] > 0.5


@pytest.mark.promise("P15")
def test_creating_an_existing_queue_uses_no_id(owner: Connection, own_queue: CheckedQueue) -> None:
    for _ in range(5):
        own_queue.call("create_queue")
    call(owner, "create_queue", queue_name="next")
    assert queue_id_of(CheckedQueue(owner, "next")) == queue_id_of(own_queue) + 1


@pytest.mark.promise("P15")
def test_number_too_long_as_a_body_is_refused(owner: Connection, own_queue: CheckedQueue) -> None:
    own_queue.call("alter_queue", max_body_length=1000)
    batch = """[{"body": "a"}, {"body": [1e1001]}]"""
    with pytest.raises(psycopg.Error, match=r"RQ711.*max_body_length.*message 2"):
        owner.execute("select rowq.enqueue_batch(%s, %s)", [own_queue.name, batch])
    assert owner.execute("select from rowq.message").fetchone() is None


@pytest.mark.promise("P16")
@pytest.mark.parametrize("style", ["ISO, DMY", "German", "SQL, MDY"])
def test_batch_timestamps_ignore_datestyle(
    owner: Connection, own_queue: CheckedQueue, style: str
) -> None:
    owner.execute("select set_config('datestyle', %s, false)", [style])
    messages = [{"run_at": "2030-02-01T00:00:00Z"}]
    [row] = own_queue.call("enqueue_batch", messages=messages)
    due = "select to_char(due_at at time zone 'UTC', 'YYYYMMDD') from rowq.delayed"
    assert owner.execute(due).fetchone() == ("20300201",)
    own_queue.refused("RQ711", "enqueue_batch", messages=[{"run_at": "01/02/2030"}])
    assert row.outcome == "enqueued"


@pytest.mark.promise("P19")
def test_foreign_partition_does_not_stop_the_archive(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    own_queue.call("alter_queue", archive_days=1)
    owner.execute(
        "create table rowq.archive_2020 partition of rowq.archive"
        " for values from ('2020-01-01') to ('2021-01-01')"
    )
    own_queue.enqueue("a")
    own_queue.finish_one()
    assert own_queue.call_one("maintain").archived == 1
    assert own_queue.call_one("purge_archive").partitions_dropped == 0
    assert owner.execute("select to_regclass('rowq.archive_2020')").fetchone() != (None,)


def test_texts_of_a_call_may_have_another_collation(
    owner: Connection, own_queue: CheckedQueue
) -> None:
    owner.execute("""create table public.note (body text collate "POSIX")""")
    owner.execute("insert into public.note values ('q')")
    for routine in (
        "enqueue('q', n.body)",
        "enqueue_batch(n.body, '[{}]')",
        "dequeue_fast(n.body)",
        "queue_stats(n.body)",
        "queue_stats(p_after_queue_name => n.body)",
        "health()",
        "list_dead(n.body)",
        "maintain(n.body)",
    ):
        owner.execute(f"select f from public.note n cross join lateral rowq.{routine} f")
    assert own_queue.call_one("queue_stats").ready == 1
