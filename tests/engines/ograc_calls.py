"""A queue's life on oGRAC, call by call, each with what the contract says that it returns."""

from __future__ import annotations

from tests.engines.ograc import Client, Refused

Row = dict[str, str]


class Unexpected(Exception):
    """A call has returned something else than the contract says."""


class Calls:
    """Calls routines and compares what they return.

    returned: routines that have returned what was expected; refused: the error numbers they raised.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.returned: set[str] = set()
        self.refused: dict[str, set[int]] = {}

    def want(self, name: str, *rows: Row, **arguments: str) -> list[Row]:
        """Call a routine that must return these rows, columns that are not named apart."""
        package, _, routine = name.rpartition(".")
        got = self._client.call(f"{package or 'rowq'}.{routine}", **arguments)
        seen = [{key: one.get(key, "(none)") for key in row} for one, row in zip(got, rows)]
        if seen != list(rows) or len(got) != len(rows):
            raise Unexpected(f"{name}({arguments}) returned {got}, not {list(rows)}")
        self.returned.add(routine)
        return got

    def refuse(self, code: int, name: str, **arguments: str) -> None:
        """Call a routine that must raise an error with this number."""
        try:
            got = self._client.call(f"rowq.{name}", **arguments)
        except Refused as error:
            if error.code != code:
                raise Unexpected(f"{name}({arguments}) raised {error}, not {code}") from error
            self.refused.setdefault(name, set()).add(code)
            return
        raise Unexpected(f"{name}({arguments}) returned {got} instead of raising {code}")

    def change(self, statement: str) -> None:
        """Change rows behind the routines' back: so time passes without waiting."""
        self._client.rows(f"{statement};\ncommit;\n")

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        return int(self._client.rows(f"select count(*) as n from {table};\n")[0]["n"])


def live(calls: Calls) -> None:
    """Go through the life of a queue. Raises Unexpected and Refused."""
    _settings(calls)
    _sending(calls)
    _finishing(calls)
    _time(calls)
    _dead(calls)
    _house(calls)
    _refusals(calls)
    _end(calls)


def _settings(calls: Calls) -> None:
    calls.want("version", {"rowq_version": "0.1.0", "schema_version": "1"})
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
        queue_name="'a'", batch_size="10",
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
    calls.want(
        "retry_later", {"outcome": "retrying"}, queue_name="'a'", claim_id=late["claim_id"]
    )
    calls.want(
        "get_message", {"state": "delayed"}, queue_name="'a'", message_id=late["message_id"]
    )
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


def _house(calls: Calls) -> None:
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
        "archive_fault", "clean_up_horizon", "dead_messages", "expired_leases", "oldest_ready",
        "overdue_delayed", "sequence_behind",
    ]  # fmt: skip
    calls.want("health", *({"check_name": name, "status": "ok"} for name in checks))
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'", delay_seconds="100")
    calls.want("queue_stats", {"ready": "1", "delayed": "1", "leased": "0"}, queue_name="'a'")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'a'", max_messages="1")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'a'", include_dead="1")


def _refusals(calls: Calls) -> None:
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
    calls.refuse(-20711, "peek", queue_name="'a'", batch_size="0")


def _end(calls: Calls) -> None:
    calls.want("alter_queue", {"outcome": "altered"}, queue_name="'a'", archive_days="0")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'", dedup_key="'z'")
    calls.refuse(-20704, "drop_queue", queue_name="'a'")
    claim = calls.want("dequeue_fast", {"attempt": "1"}, queue_name="'a'")[0]["claim_id"]
    calls.want("complete", {"outcome": "completed"}, queue_name="'a'", claim_id=claim)
    for table in ("message", "ready", "leased", "claim", "dedup", "finished"):
        if calls.count(f"rowq_{table}"):
            raise Unexpected(f"rows are left in rowq_{table}")
    calls.want("enqueue", {"outcome": "enqueued"}, queue_name="'a'")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name="'a'", force="1")
    calls.want("queue_stats")
