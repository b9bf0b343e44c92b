"""Calls work with any session settings: numbers, dates, sort order, time zone."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from tests.engines.base import Connection
from tests.helpers.calls import (
    bodies,
    call,
    call_one,
    counts,
    dequeue,
    dequeue_one,
    enqueue,
    refused,
    state_of,
)
from tests.helpers.dialects import dialect_of
from tests.helpers.queues import Connect
from tests.stored_times import pass_seconds

DAY = 86_400
STRANGE = {
    "nothing": (),
    "decimal comma": ("nls_numeric_characters = ', '",),
    "linguistic comparison": ("nls_comp = linguistic", "nls_sort = binary_ai"),
    "another language": ("nls_language = turkish", "nls_territory = turkey"),
    "dates": (
        "nls_date_format = 'RR.DD'",
        "nls_timestamp_format = 'RR.DD'",
        "nls_timestamp_tz_format = 'RR.DD'",
    ),
    "calendar": ("nls_calendar = 'Thai Buddha'",),
    "bytes": ("nls_length_semantics = byte",),
    "time zone": ("time_zone = '+05:45'",),
    "first rows": ("optimizer_mode = first_rows_1",),
    "shared cursors": ("cursor_sharing = force",),
}


@pytest.fixture(params=STRANGE)
def strange(request: pytest.FixtureRequest, connect: Connect) -> Connection:
    """Return a session with settings of a caller."""
    session = connect()
    for setting in STRANGE[request.param]:
        dialect_of(session).execute(session, f"alter session set {setting}")
    return session


@pytest.mark.pitfall("oracle 13")
@pytest.mark.promise("P15", "P20")
def test_life_of_a_message_works_with_any_setting(
    strange: Connection, connection: Connection, queue_name: str
) -> None:
    settings = {"backoff_factor": 1.5, "backoff_jitter": 0.25, "backoff_base_seconds": 0.5}
    call(strange, "create_queue", queue_name=queue_name, archive_days=1, **settings)
    row = call_one(strange, "queue_stats", queue_name=queue_name)
    assert {name: getattr(row, name) for name in settings} == settings
    due = datetime.now(UTC).replace(microsecond=123456) + timedelta(hours=1)
    messages = [
        {"body": "now", "headers": {"pi": 3.25}},
        {"body": "soon", "delay_seconds": 1800.5},
        {"body": "later", "run_at": due.isoformat()},
    ]
    sent = call(strange, "enqueue_batch", queue_name=queue_name, messages=messages)
    at = {"queue_name": queue_name, "message_id": sent[2].message_id}
    assert call_one(strange, "get_message", **at).due_at == due
    assert call_one(connection, "get_message", **at).due_at == due
    soon = call_one(strange, "get_message", queue_name=queue_name, message_id=sent[1].message_id)
    delay = (soon.due_at - soon.enqueued_at).total_seconds()
    assert delay == pytest.approx(1800.5, abs=0.01)
    leased = dequeue_one(strange, queue_name)
    assert (leased.body, leased.headers) == ("now", {"pi": 3.25})
    assert abs((leased.enqueued_at - datetime.now(UTC)).total_seconds()) < 600
    call(strange, "retry_later", queue_name=queue_name, claim_id=leased.claim_id, delay_seconds=0.5)
    pass_seconds(strange, queue_name, 2 * 3600)
    rows = call_one(strange, "dequeue_wait", queue_name=queue_name, batch_size=10).messages
    assert sorted(row["body"] for row in rows) == ["later", "now", "soon"]
    assert all(datetime.fromisoformat(row["lease_until"]).utcoffset() is not None for row in rows)
    call(strange, "complete", queue_name=queue_name, claim_id=rows[0]["claim_id"])
    assert call_one(strange, "archive", queue_name=queue_name).archived == 3
    pass_seconds(strange, queue_name, 3 * DAY)
    call_one(strange, "maintain", queue_name=queue_name)
    assert counts(strange, queue_name) == (0, 0, 0, 0)
    assert call(strange, "health")
    refused(strange, "RQ711", "enqueue", queue_name=queue_name, priority=10)


@pytest.mark.pitfall("oracle 13")
@pytest.mark.promise("P12", "P15")
def test_names_and_keys_are_compared_as_bytes(strange: Connection, queue_name: str) -> None:
    words = ("istanbul", "ISTANBUL", "\N{LATIN SMALL LETTER DOTLESS I}stanbul", "é", "e")
    names = [f"{word} {queue_name[-20:]}" for word in words]
    for name in names:
        assert call_one(strange, "create_queue", queue_name=name).outcome == "created"
        enqueue(strange, name, name)
    for name in names:
        assert bodies(dequeue(strange, name, 10)) == [name]
    for key in ("key", "KEY", "kéy", "key "):
        row = call_one(strange, "enqueue", queue_name=names[0], dedup_key=key)
        assert row.outcome == "enqueued"
        again = call_one(strange, "enqueue", queue_name=names[0], dedup_key=key)
        assert (again.outcome, again.message_id) == ("duplicate", row.message_id)


@pytest.mark.promise("P12")
def test_batches_do_not_deadlock_with_different_nls_sorts(connect: Connect, queue: str) -> None:
    """One session sorts letters after digits, the other before them."""
    errors: list[Exception] = []
    start_line = threading.Barrier(2)

    def produce(session: Connection, sort: str) -> None:
        for setting in ("nls_comp = linguistic", f"nls_sort = {sort}"):
            dialect_of(session).execute(session, f"alter session set {setting}")
        try:
            for turn in range(50):
                keys = [f"{turn} {key}" for key in ("9", "A", "a", "0", "é", "Z", "_", "5")]
                start_line.wait(30)
                messages = [{"body": key, "dedup_key": key} for key in keys]
                call(session, "enqueue_batch", queue_name=queue, messages=messages)
        except Exception as error:
            errors.append(error)
            start_line.abort()

    producers = [
        threading.Thread(target=produce, args=(connect(), sort)) for sort in ("binary", "ebcdic")
    ]
    for producer in producers:
        producer.start()
    for producer in producers:
        producer.join()
    assert errors == []


@pytest.mark.pitfall("oracle 13")
@pytest.mark.promise("P20")
def test_timestamps_are_utc_in_any_time_zone(
    connection: Connection, connect: Connect, queue: str
) -> None:
    [message] = enqueue(connection, queue, "x")
    found = []
    for zone in ("-11:00", "+14:00"):
        session = connect()
        dialect_of(session).execute(session, f"alter session set time_zone = '{zone}'")
        found.append(
            call_one(session, "get_message", queue_name=queue, message_id=message).enqueued_at
        )
    assert found[0] == found[1]
    assert abs((found[0] - datetime.now(UTC)).total_seconds()) < 600
    assert state_of(connection, queue, message) == "ready"
