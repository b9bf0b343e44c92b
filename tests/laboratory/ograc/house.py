"""The second half of a queue's life on oGRAC: its housekeeping, its refusals and its end."""

from tests.laboratory.ograc.calls import Calls, UnexpectedError


def house(calls: Calls) -> None:
    """The archive, maintain, health and purge."""
    calls.want("archive", {"archived": "4"}, queue_name="'a'")
    calls.want("get_message", {"state": "cancelled"}, queue_name="'a'", message_id="1")
    calls.change("update rowq_archive set finished_at = finished_at - numtodsinterval(9, 'day')")
    calls.want("purge_archive", {"purged": "4"}, queue_name="'a'")
    calls.want("dequeue_fast", {"body": "two"}, queue_name="'a'")
    calls.change("update rowq_lane set check_after = timestamp '2000-01-01 00:00:00'")
    calls.want(
        "maintain",
        {"queue_name": "a", "elected": "1", "promoted": "0", "reaped": "0", "archived": "0"},
    )
    calls.change(
        "update rowq_claim set lease_until = sys_extract_utc(systimestamp)"
        " - numtodsinterval(1, 'hour')"
    )
    calls.want("maintain", {"reaped": "1", "died": "0"}, queue_name="'a'")
    checks = [
        "clean_up_horizon", "dead_messages", "expired_leases", "maintain_fault", "oldest_ready",
        "overdue_delayed", "overdue_groups", "sequence_behind", "waits_for_dead",
    ]  # fmt: skip
    calls.want("health", *({"check_name": name, "status": "ok"} for name in checks))
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'", delay_seconds="100")
    calls.want("queue_stats", {"ready": "1", "delayed": "1", "leased": "0"}, queue_name="'a'")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'a'", max_messages="1")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'a'", include_dead="1")


def refusals(calls: Calls) -> None:
    """Errors by their numbers."""
    calls.refuse(-20701, "enqueue", queue_name="'none'")
    calls.refuse(-20701, "maintain", queue_name="'none'")
    calls.refuse(-20701, "dequeue_fast", queue_name="'none'")
    calls.refuse(-20711, "create_queue", queue_name="'b'", lease_seconds="0")
    calls.refuse(-20711, "create_queue", queue_name="null")
    calls.refuse(-20711, "enqueue", queue_name="'a'", priority="10")
    calls.refuse(-20711, "enqueue", queue_name="'a'", headers="'[1]'")
    calls.refuse(-20711, "enqueue_batch", queue_name="'a'", messages="'{}'")
    calls.refuse(-20711, "enqueue_batch", queue_name="'a'", messages="""'[{"priority": 11}]'""")
    calls.refuse(-20711, "dequeue_fast", queue_name="'a'", batch_size="1.5")
    calls.refuse(-20711, "complete", queue_name="'a'", claim_id="1", message_ids="'x'")
    calls.refuse(-20711, "complete", queue_name="'a'", claim_id="null")
    calls.refuse(-20721, "complete", queue_name="'a'", claim_id="4711")
    calls.refuse(-20721, "extend_lease", queue_name="'a'", claim_id="4711")
    calls.refuse(-20711, "peek", queue_name="'a'", max_messages="0")


def order(calls: Calls) -> None:
    """Priorities, the front and the tail of a lane, keys that are free again, two queues."""
    sent = [("b", 5), ("c", 5), ("d", 9), ("a", 0)]
    for body, priority in sent:
        calls.want(
            "enqueue", {"outcome": "enqueued"},
            queue_name="'a'", body=f"'{body}'", priority=str(priority), dedup_key=f"'{body}'",
        )  # fmt: skip
    first = calls.want(
        "dequeue_fast", {"body": "a"}, {"body": "b"}, queue_name="'a'", batch_size="2"
    )
    given = {"queue_name": "'a'", "claim_id": first[0]["claim_id"]}
    calls.want(
        "retry_later", {"outcome": "retrying"},
        delay_seconds="0", message_ids=f"'[{first[1]['message_id']}]'", **given,
    )  # fmt: skip
    calls.want("release", {"outcome": "released"}, **given)
    calls.want(
        "peek", {"body": "a", "attempt": "0"}, {"body": "c"}, {"body": "b", "attempt": "1"},
        {"body": "d"},
        queue_name="'a'", max_messages="9",
    )  # fmt: skip
    calls.want("create_queue", {"outcome": "created"}, queue_name="'c'", max_attempts="1")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'c'", dedup_key="'a'")
    claim = calls.want("dequeue_fast", {"attempt": "1"}, queue_name="'c'")[0]["claim_id"]
    calls.want(
        "retry_later", {"outcome": "dead"}, queue_name="'c'", claim_id=claim, delay_seconds="5"
    )
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'c'", dedup_key="'a'")
    calls.want("reset", {"outcome": "duplicate"}, queue_name="'c'")
    calls.want("queue_stats", {"ready": "4", "dead": "0"}, {"ready": "1", "dead": "1"})
    calls.want("maintain", {"queue_name": "a", "elected": "1"}, {"queue_name": "c", "elected": "1"})
    calls.want("purge_queue", {"removed": "1"}, queue_name="'c'")
    calls.want("reset", {"outcome": "reset"}, queue_name="'c'")
    calls.want("dequeue_fast", {"attempt": "1"}, queue_name="'c'")
    calls.change("update rowq_claim set lease_until = timestamp '2026-01-01 00:00:00'")
    calls.want("maintain", {"reaped": "0", "died": "1"}, queue_name="'c'")
    calls.want("purge_queue", {"removed": "0"}, queue_name="'c'")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'c'", include_dead="1")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name="'c'")
    rest = calls.want(
        "dequeue_fast", {"body": "a"}, {"body": "c"}, {"body": "b"}, {"body": "d"},
        queue_name="'a'", batch_size="1000",
    )  # fmt: skip
    calls.want(
        "complete", *({"outcome": "completed"} for _ in rest),
        queue_name="'a'", claim_id=rest[0]["claim_id"],
    )  # fmt: skip
    calls.want("archive", {"archived": "4"}, queue_name="'a'")
    twice = calls.want(
        "enqueue_batch",
        {"outcome": "enqueued"}, {"outcome": "enqueued"}, {"outcome": "duplicate"},
        queue_name="'a'",
        messages="""'[{"dedup_key": "y"}, {"dedup_key": "x"}, {"dedup_key": "y"}]'""",
    )  # fmt: skip
    if twice[0]["message_id"] != twice[2]["message_id"]:
        raise UnexpectedError("a key that stands twice in a batch is two messages")
    calls.want("purge_queue", {"removed": "2"}, queue_name="'a'")


def end(calls: Calls) -> None:
    """What is left after the last message, and the end of the queue."""
    calls.want("alter_queue", {"outcome": "altered"}, queue_name="'a'", archive_days="0")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'", dedup_key="'z'")
    calls.refuse(-20704, "drop_queue", queue_name="'a'")
    calls.refuse(-20704, "drop_queue", queue_name="'a'", force="null")
    calls.refuse(-20711, "drop_queue", queue_name="'a'", force="2")
    claim = calls.want("dequeue_fast", {"attempt": "1"}, queue_name="'a'")[0]["claim_id"]
    calls.want("complete", {"outcome": "completed"}, queue_name="'a'", claim_id=claim)
    for table in ("message", "ready", "leased", "claim", "dedup", "finished"):
        if calls.count(f"rowq_{table}"):
            raise UnexpectedError(f"rows are left in rowq_{table}")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name="'a'", force="1")
    calls.want("queue_stats")
