"""A queue's life on oGRAC, call by call, each with what the contract says that it returns."""

from tests.laboratory.ograc.calls import Calls, UnexpectedError
from tests.laboratory.ograc.client import installed
from tests.laboratory.ograc.house import end, house, order, refusals
from tests.laboratory.ograc.ties import ties


def live(calls: Calls) -> None:
    """Go through the life of a queue. Raises UnexpectedError and RefusedError."""
    _settings(calls)
    _sending(calls)
    _finishing(calls)
    _time(calls)
    _dead(calls)
    _waiting(calls)
    house(calls)
    refusals(calls)
    order(calls)
    end(calls)
    ties(calls)


def _settings(calls: Calls) -> None:
    moment = "timestamp '2026-02-03 04:05:06.000789'"
    if calls.text(f"internal_iso_text({moment})") != "2026-02-03T04:05:06.000789+00:00":
        raise UnexpectedError("internal_iso_text")
    if calls.text(f"internal_microseconds({moment})") != "1770091506000789":
        raise UnexpectedError("internal_microseconds")
    if calls.text(f"internal_from_microseconds(internal_microseconds({moment}))") != calls.text(
        moment
    ):
        raise UnexpectedError("internal_from_microseconds")
    calls.want("version", installed())
    calls.want("create_queue", {"outcome": "created"}, queue_name="'a'", lease_seconds="60")
    calls.want("create_queue", {"outcome": "exists"}, queue_name="'a'")
    calls.want(
        "alter_queue", {"outcome": "altered"},
        queue_name="'a'", max_attempts="2", archive_days="3", backoff_jitter="0",
    )  # fmt: skip
    calls.want(
        "queue_stats",
        {"queue_name": "a", "lease_seconds": "60", "max_attempts": "2", "archive_days": "3"},
    )


def _sending(calls: Calls) -> None:
    new = {"outcome": "enqueued"}
    calls.want(
        "enqueue", new | {"message_id": "1"},
        queue_name="'a'", body="'one'", priority="7", dedup_key="'k'", headers="""'{"h": 1}'""",
        message_type="'t'",
    )  # fmt: skip
    calls.want(
        "rowq_produce.enqueue", {"outcome": "duplicate", "message_id": "1"},
        queue_name="'a'", body="'again'", dedup_key="'k'",
    )  # fmt: skip
    calls.want("enqueue", new, queue_name="'a'", body="'late'", delay_seconds="3600")
    calls.want(
        "enqueue_batch",
        new | {"position": "1"}, new | {"position": "2"},
        {"position": "3", "outcome": "duplicate", "message_id": "1"}, new | {"position": "4"},
        queue_name="'a'",
        messages="""'[{"body": "two"}, {"body": "three", "priority": 1, "dedup_key": "l"},"""
        """ {"dedup_key": "k"}, {"run_at": "2030-01-01T00:00:00+02:00", "max_attempts": 1}]'""",
    )  # fmt: skip
    calls.want(
        "peek", {"body": "three", "priority": "1"}, {"body": "two", "priority": "5"},
        {"body": "one", "headers": '{"h": 1}', "message_type": "t", "attempt": "0"},
        queue_name="'a'", max_messages="10",
    )  # fmt: skip
    calls.want(
        "get_message", {"state": "ready", "dedup_key": "k", "priority": "7", "max_attempts": "2"},
        queue_name="'a'", message_id="1",
    )  # fmt: skip
    calls.want("promote", {"promoted": "0"}, queue_name="'a'")
    for table in ("message", "delayed"):
        calls.change(
            f"update rowq_{table} set due_at = timestamp '2026-01-01 00:00:00'"
            " where due_at = timestamp '2029-12-31 22:00:00'"
        )
    calls.want("promote", {"promoted": "1"}, queue_name="'a'")
    calls.want("pause_queue", {"outcome": "paused"}, queue_name="'a'")
    calls.want("dequeue_fast", queue_name="'a'")
    calls.want("resume_queue", {"outcome": "resumed"}, queue_name="'a'")


def _finishing(calls: Calls) -> None:
    leased = calls.want(
        "rowq_consume.dequeue_fast",
        {"body": "three", "attempt": "1"}, {"body": "two"}, {"message_type": ""}, {"body": "one"},
        queue_name="'a'", batch_size="10", worker_name="'w'",
    )  # fmt: skip
    claim = leased[0]["claim_id"]
    three, two, once, one = (row["message_id"] for row in leased)
    calls.want(
        "get_message", {"state": "leased", "claim_id": claim, "worker_name": "w"},
        queue_name="'a'", message_id=one,
    )  # fmt: skip
    calls.want(
        "extend_lease", {"claim_id": claim}, queue_name="'a'", claim_id=claim, lease_seconds="600"
    )
    given = {"queue_name": "'a'", "claim_id": claim}
    calls.want(
        "complete", {"message_id": three, "outcome": "completed"}, {"outcome": "stale"},
        message_ids=f"'[{three}, 999]'", **given,
    )  # fmt: skip
    calls.want(
        "retry_later",
        {"message_id": two, "outcome": "retrying"}, {"message_id": once, "outcome": "dead"},
        message_ids=f"'[{two}, {once}]'", delay_seconds="0", error="'why'", **given,
    )  # fmt: skip
    calls.want("release", {"message_id": one, "outcome": "released"}, **given)
    calls.refuse(-20721, "release", **given)
    calls.want(
        "complete", {"message_id": one, "outcome": "stale"}, message_ids=f"'[{one}]'", **given
    )
    calls.want(
        "dequeue_wait", {"messages": f'[{{"message_id":{two},"attempt":2}}]'}, queue_name="'a'"
    )
    claim = str(int(claim) + 1 + calls.count("rowq_finished"))
    calls.want(
        "fail_now", {"message_id": two, "outcome": "dead"},
        queue_name="'a'", claim_id=claim, error="'for good'",
    )  # fmt: skip


def _time(calls: Calls) -> None:
    calls.want("dequeue_fast", {"message_id": "1", "attempt": "1"}, queue_name="'a'")
    past = "sys_extract_utc(systimestamp) - numtodsinterval(1, 'hour')"
    calls.change(f"update rowq_claim set lease_until = {past}")
    calls.want("reap", {"reaped": "1", "died": "0"}, queue_name="'a'")
    calls.want("dequeue_fast", {"message_id": "1", "attempt": "2"}, queue_name="'a'")
    calls.change(f"update rowq_claim set lease_until = {past}")
    calls.want("reap", {"reaped": "0", "died": "1"}, queue_name="'a'")
    calls.change(f"update rowq_delayed set due_at = {past}")
    calls.change(f"update rowq_message set due_at = {past} where due_at is not null")
    late = calls.want("dequeue_fast", {"body": "late", "attempt": "1"}, queue_name="'a'")[0]
    calls.want("retry_later", {"outcome": "retrying"}, queue_name="'a'", claim_id=late["claim_id"])
    calls.want("get_message", {"state": "delayed"}, queue_name="'a'", message_id=late["message_id"])
    calls.want(
        "cancel", {"outcome": "cancelled"}, {"outcome": "not_found"},
        queue_name="'a'", message_ids=f"'[{late['message_id']}, 999]'",
    )  # fmt: skip


def _dead(calls: Calls) -> None:
    dead = calls.want(
        "rowq_look.list_dead",
        {"message_id": "1", "last_error": "lease expired"}, {"last_error": "for good"},
        {"last_error": "why"},
        queue_name="'a'",
    )  # fmt: skip
    calls.want(
        "reset", {"message_id": "1", "outcome": "reset"}, {"outcome": "not_found"},
        queue_name="'a'", message_ids="'[1, 999]'",
    )  # fmt: skip
    calls.want("enqueue", {"outcome": "duplicate"}, queue_name="'a'", dedup_key="'k'")
    calls.want(
        "reset", {"message_id": dead[1]["message_id"], "outcome": "reset"},
        queue_name="'a'", max_messages="1",
    )  # fmt: skip
    calls.want(
        "cancel", {"outcome": "cancelled"}, {"outcome": "cancelled"},
        queue_name="'a'", message_ids=f"'[1, {dead[2]['message_id']}]'",
    )  # fmt: skip


def _waiting(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'w'")
    calls.want("dequeue_wait", queue_name="'w'", wait_seconds="4")
    part = calls.text("(select part_id from rowq_queue where queue_name = 'w')")
    until = "(select max(listened_until) from rowq_queue where queue_name = 'w')"
    calls.change(f"delete from rowq_seen where name = 'ring {part}'")
    if calls.count(f"rowq_seen where name = 'listen {part}'") == 0 or not calls.text(until):
        raise UnexpectedError("nobody listened")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'w'", body="'heard'")
    if calls.count(f"rowq_seen where name = 'ring {part}'") != 1:
        raise UnexpectedError("nobody rang")
    calls.change("update rowq_queue set listened_until = null where queue_name = 'w'")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'w'", body="'unheard'")
    if calls.count(f"rowq_seen where name = 'ring {part}'") != 1:
        raise UnexpectedError("somebody rang for nobody")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name="'w'", force="1")
