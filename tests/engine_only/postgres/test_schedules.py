"""Schedules on PostgreSQL: plans, and independence of session settings."""

import pytest

from tests.engine_only.postgres.conftest import Open
from tests.engine_only.postgres.test_groups import tables
from tests.engine_only.postgres.test_plans import Watched, faults, nodes
from tests.engines.base import Connection
from tests.helpers.calls import call, dequeue
from tests.helpers.queues import CheckedQueue
from tests.stored_times import pass_seconds

QUEUES, SCHEDULES = 50, 20


def schedule(connection: Connection, queue: str, count: int) -> None:
    """Create schedules that are not due."""
    for number in range(count):
        call(
            connection, "create_schedule", queue_name=queue, schedule_name=f"{number}",
            interval_seconds=7200,
        )  # fmt: skip


@pytest.mark.promise("P13", "P19")
def test_maintain_skips_queues_without_due_schedules(owner: Connection, open_owner: Open) -> None:
    for number in range(QUEUES):
        call(owner, "create_queue", queue_name=f"idle {number}")
        schedule(owner, f"idle {number}", SCHEDULES)
    session = open_owner()
    for _ in range(3):  # New queues need floors.
        call(session, "maintain")
    watched = Watched(session)
    runs = [watched.run(lambda session: call(session, "maintain")) for _ in range(5)]
    plans = min(runs, key=len)
    assert 0 < len(plans) <= 20
    assert faults(plans) == set()
    scans = [
        node
        for plan in plans
        for node in nodes(plan["Plan"])
        if node.get("Relation Name") == "schedule"
    ]
    assert {node["Index Name"] for node in scans} == {"schedule_due_ix"}
    assert {"queue_id" in node["Index Cond"] for node in scans} == {True}


@pytest.mark.promise("P13")
def test_maintain_reads_schedules_of_its_queue_only(owner: Connection, open_owner: Open) -> None:
    for queue in ("hot", "cold"):
        call(owner, "create_queue", queue_name=queue)
        schedule(owner, queue, 200)
    watched = Watched(open_owner())
    pass_seconds(owner, "hot", 7200)
    plans = watched.run(lambda own: call(own, "maintain", queue_name="hot"))
    assert "schedule" in tables(plans)
    assert faults(plans) == set()
    assert len(dequeue(owner, "hot", 1000)) == 200


@pytest.mark.promise("P13")
def test_tick_finds_dedup_key_and_group_by_key(own_queue: CheckedQueue, open_owner: Open) -> None:
    """A name with another collation would pass it to all texts of the call."""
    own_queue.call(
        "create_schedule", schedule_name="s", interval_seconds=7200, overlap=False, group_key="g"
    )
    pass_seconds(own_queue.connection, "q", 7200)
    watched = Watched(open_owner())
    plans = watched.run(lambda own: call(own, "maintain", queue_name="q"))
    for table, key in (("dedup", "dedup_key"), ("group_slot", "group_key")):
        scans = [
            node
            for plan in plans
            for node in nodes(plan["Plan"])
            if node.get("Relation Name") == table and "Scan" in node["Node Type"]
        ]
        assert scans
        assert {key in node["Index Cond"] for node in scans} == {True}
    assert len(own_queue.dequeue(9)) == 1


@pytest.mark.pitfall("postgres 26")
@pytest.mark.promise("P16", "P31")
@pytest.mark.parametrize(
    "setting",
    [
        "timezone to 'America/New_York'",
        "timezone to 'Australia/Lord_Howe'",
        "datestyle to 'german'",
        "intervalstyle to 'sql_standard'",
        "lc_time to 'C'",
        "timezone_abbreviations to 'Australia'",
        "timezone to 'UTC-5'",
        "timezone to 'X0Y0:00:30,M1.1.0,M12.5.0'",
    ],
)
def test_session_settings_do_not_change_ticks(own_queue: CheckedQueue, setting: str) -> None:
    query = (
        "select z.name, extract(epoch from t.tick)::bigint"
        " from (values ('UTC'), ('Europe/Berlin')) z (name)"
        " cross join (values ('30 1,2 * * *'), ('*/7 2 * * *')) c (fields)"
        " cross join lateral rowq.next_ticks(p_cron => c.fields, p_time_zone => z.name,"
        " p_after => '2026-03-26 00:00Z', p_max_ticks => 50) t"
    )
    before = own_queue.connection.execute(query).fetchall()
    own_queue.connection.execute(f"set {setting}".encode())
    assert own_queue.connection.execute(query).fetchall() == before


@pytest.mark.pitfall("postgres 26")
@pytest.mark.promise("P15")
@pytest.mark.parametrize(
    "zone", ["EST5EDT4", "Foo/Bar", "+02:00", "europe/berlin", "UTC+3", "CET", "EST"]
)
def test_create_schedule_accepts_only_region_names(own_queue: CheckedQueue, zone: str) -> None:
    text = own_queue.refused(
        "RQ711", "create_schedule", schedule_name="a", cron="* * * * *", time_zone=zone
    )
    assert "time_zone" in text


@pytest.mark.promise("P30")
def test_maintain_with_old_snapshot_runs_no_tick(own_queue: CheckedQueue) -> None:
    own_queue.call("create_schedule", schedule_name="a", interval_seconds=3600)
    own_queue.pass_seconds(3600)
    for level in ("repeatable read", "serializable"):
        own_queue.connection.execute(f"begin isolation level {level}".encode())
        own_queue.call("maintain")
        own_queue.connection.execute("commit")
    assert own_queue.counts() == (0, 0, 0, 0)
    own_queue.call("maintain")
    assert own_queue.counts() == (1, 0, 0, 0)
