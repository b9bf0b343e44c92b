"""Groups, limits and predecessors on oGRAC: what lets a message wait for others, or not at all."""

from tests.laboratory.ograc.calls import Calls, Row, UnexpectedError

NEW = {"outcome": "enqueued"}
PAST = "sys_extract_utc(systimestamp) - numtodsinterval(1, 'hour')"
WAITING = ("blocked", "successor", "grouped", "message_group", "recheck")


def ties(calls: Calls) -> None:
    """Go through everything that ties one message to others. Raises as life.live does."""
    _groups(calls)
    _dead_groups(calls)
    _wider_groups(calls)
    _limits(calls)
    _predecessors(calls)
    _lists(calls)
    _deaths(calls)
    _trees(calls)
    _delays(calls)
    _archive(calls)


def send(calls: Calls, queue: str, body: str, **given: str) -> str:
    """Enqueue a message and return its id."""
    return calls.want("enqueue", NEW, queue_name=f"'{queue}'", body=f"'{body}'", **given)[0][
        "message_id"
    ]


def take(calls: Calls, queue: str, *bodies: str) -> list[Row]:
    """Dequeue everything, which must be these bodies."""
    rows = [{"body": body} for body in bodies]
    return calls.want("dequeue_fast", *rows, queue_name=f"'{queue}'", batch_size="100")


def end(calls: Calls, queue: str, row: Row, routine: str = "complete", **given: str) -> None:
    """End one message of a claim."""
    outcome = {"complete": "completed", "fail_now": "dead", "retry_later": "retrying"}[routine]
    calls.want(
        routine, {"message_id": row["message_id"], "outcome": outcome},
        queue_name=f"'{queue}'", claim_id=row["claim_id"],
        message_ids=f"'[{row['message_id']}]'", **given,
    )  # fmt: skip


def finish_next(calls: Calls, queue: str, body: str, routine: str = "complete") -> None:
    """Dequeue one message, which must be this one, and end it."""
    row = calls.want("dequeue_fast", {"body": body}, queue_name=f"'{queue}'")[0]
    end(calls, queue, row, routine)


def expect(calls: Calls, queue: str, message: str, **expected: str) -> None:
    """Compare where a message is."""
    calls.want("get_message", expected, queue_name=f"'{queue}'", message_id=message)


def settle(calls: Calls, queue: str) -> None:
    """Keep house, as if what is to be looked at again were due."""
    calls.change(f"update rowq_recheck set due_at = {PAST} where due_at > {PAST}")
    calls.change("update rowq_lane set check_after = timestamp '2000-01-01 00:00:00'")
    calls.want("maintain", {"elected": "1"}, queue_name=f"'{queue}'")


def nothing_waits(calls: Calls, queue: str) -> None:
    """See that nothing is left of what has waited, and drop the queue."""
    for table in WAITING:
        if calls.count(f"rowq_{table}"):
            raise UnexpectedError(f"rows are left in rowq_{table}")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name=f"'{queue}'", force="1")


def _groups(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'g'")
    for body in ("1", "2", "3"):
        send(calls, "g", body, group_key="'a'")
    send(calls, "g", "other", group_key="'b'")
    first, other = take(calls, "g", "1", "other")
    calls.want("queue_stats", {"leased": "2", "blocked": "2"}, queue_name="'g'")
    second = str(int(first["message_id"]) + 1)
    expect(calls, "g", second, state="blocked", waits_for="", group_key="a")
    expect(calls, "g", str(int(second) + 1), state="blocked", waits_for=second)
    end(calls, "g", first)
    end(calls, "g", other)
    row = take(calls, "g", "2")[0]
    end(calls, "g", row, "retry_later", delay_seconds="3600", error="'why'")
    take(calls, "g")
    for table in ("message", "delayed"):
        calls.change(f"update rowq_{table} set due_at = {PAST} where due_at > {PAST}")
    row = calls.want("dequeue_fast", {"body": "2", "last_error": "why"}, queue_name="'g'")[0]
    end(calls, "g", row, "fail_now")
    finish_next(calls, "g", "3")
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'g'", message_ids=f"'[{second}]'")
    send(calls, "g", "late", group_key="'a'", delay_seconds="60")
    send(calls, "g", "soon", group_key="'a'")
    for table in ("message", "delayed"):
        calls.change(f"update rowq_{table} set due_at = {PAST} where due_at > {PAST}")
    calls.want("promote", {"promoted": "1"}, queue_name="'g'")
    finish_next(calls, "g", "soon")
    finish_next(calls, "g", "late")
    nothing_waits(calls, "g")


def _dead_groups(calls: Calls) -> None:
    calls.want(
        "create_queue", {"outcome": "created"},
        queue_name="'h'", group_after_dead="'hold'", max_attempts="1",
    )  # fmt: skip
    messages = ", ".join(f'{{"body": "{body}", "group_key": "a"}}' for body in "1234")
    calls.want("enqueue_batch", NEW, NEW, NEW, NEW, queue_name="'h'", messages=f"'[{messages}]'")
    finish_next(calls, "h", "1", "fail_now")
    take(calls, "h")
    calls.want("reset", {"outcome": "reset"}, queue_name="'h'")
    row = take(calls, "h", "1")[0]
    calls.change(f"update rowq_claim set lease_until = {PAST}")
    calls.want("reap", {"reaped": "0", "died": "1"}, queue_name="'h'")
    take(calls, "h")
    ids = f"'[{row['message_id']}]'"
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'h'", message_ids=ids)
    row = take(calls, "h", "2")[0]
    calls.want("release", {"outcome": "released"}, queue_name="'h'", claim_id=row["claim_id"])
    calls.want("alter_queue", {"outcome": "altered"}, queue_name="'h'", group_pause_seconds="600")
    finish_next(calls, "h", "2")
    take(calls, "h")
    settle(calls, "h")
    finish_next(calls, "h", "3")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'h'")
    settle(calls, "h")
    nothing_waits(calls, "h")


def _wider_groups(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'w'", group_limit="2")
    for body in "12345":
        send(calls, "w", body, group_key="'a'")
    rows = take(calls, "w", "1", "2")
    calls.want("alter_queue", {"outcome": "altered"}, queue_name="'w'", group_limit="3")
    settle(calls, "w")
    rows += take(calls, "w", "3")
    calls.want("alter_queue", {"outcome": "altered"}, queue_name="'w'", group_limit="1")
    for row in rows:
        end(calls, "w", row)
    settle(calls, "w")
    finish_next(calls, "w", "4")
    finish_next(calls, "w", "5")
    settle(calls, "w")
    nothing_waits(calls, "w")


def _limits(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'l'", max_leased="2")
    for body in "12345":
        send(calls, "l", body)
    rows = take(calls, "l", "1", "2")
    take(calls, "l")
    end(calls, "l", rows[0])
    rows += take(calls, "l", "3")
    calls.want(
        "alter_queue", {"outcome": "altered"},
        queue_name="'l'", max_leased="0", rate_limit="1", rate_seconds="60",
    )  # fmt: skip
    rows += take(calls, "l", "4")
    take(calls, "l")
    calls.change(f"update rowq_started set started_at = {PAST}")
    rows += take(calls, "l", "5")
    calls.want("queue_stats", {"leased": "4", "rate_limit": "1"}, queue_name="'l'")
    calls.change(f"update rowq_started set started_at = {PAST}")
    settle(calls, "l")
    if calls.count("rowq_started"):
        raise UnexpectedError("beginnings are kept too long")
    for row in rows[1:]:
        end(calls, "l", row)
    nothing_waits(calls, "l")


def _predecessors(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    first = send(calls, "p", "first")
    second = send(calls, "p", "second", predecessor_ids=f"'[{first}]'", dedup_key="'k'")
    send(calls, "p", "third", predecessor_ids=f"'[{second}, {first}]'")
    send(calls, "p", "beside", predecessor_ids="'[-5, 0]'")
    expect(calls, "p", second, state="blocked", waits_for=first, dedup_key="k")
    calls.want("queue_stats", {"ready": "2", "blocked": "2"}, queue_name="'p'")
    rows = take(calls, "p", "first", "beside")
    end(calls, "p", rows[1])
    take(calls, "p")
    end(calls, "p", rows[0])
    expect(calls, "p", second, state="ready", waits_for="")
    late = send(calls, "p", "late", predecessor_ids=f"'[{first}]'")
    finish_next(calls, "p", "second")
    finish_next(calls, "p", "third")
    finish_next(calls, "p", "late")
    first = send(calls, "p", "first")
    second = send(calls, "p", "second", predecessor_ids=f"'[{first}]'")
    send(calls, "p", "third", predecessor_ids=f"'[{second}]'")
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'p'", message_ids=f"'[{second}]'")
    finish_next(calls, "p", "third")
    finish_next(calls, "p", "first")
    first = send(calls, "p", "first")
    send(calls, "p", "second", predecessor_ids=f"'[{first}]'")
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'p'", message_ids=f"'[{first}]'")
    finish_next(calls, "p", "second")
    first = send(calls, "p", "first")
    send(calls, "p", "second", predecessor_ids=f"'[{first}]'")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'p'", max_messages="1")
    calls.want("purge_queue", {"removed": "1"}, queue_name="'p'")
    calls.refuse(-20711, "enqueue", queue_name="'p'", predecessor_ids="'[4611686018427387904]'")
    calls.refuse(-20711, "enqueue", queue_name="'p'", predecessor_ids="'{}'")
    calls.refuse(-20711, "enqueue", queue_name="'p'", on_predecessor_dead="'stop'")
    if late in (first, second):
        raise UnexpectedError("an id was given out twice")
    nothing_waits(calls, "p")


def _lists(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    ids = [send(calls, "p", body) for body in "123"]
    last = send(calls, "p", "last", predecessor_ids=f"'[{ids[1]}, {ids[2]}, {ids[0]}, {ids[1]}]'")
    rows = take(calls, "p", "1", "2", "3")
    for row in (rows[1], rows[2]):
        expect(calls, "p", last, state="blocked", waits_for=ids[2])
        end(calls, "p", row)
    expect(calls, "p", last, state="blocked", waits_for=ids[0])
    end(calls, "p", rows[0])
    finish_next(calls, "p", "last")
    messages = (
        '[{"body": "begin"}, {"body": "left", "predecessor_positions": [1]},'
        ' {"body": "right", "predecessor_positions": [1]},'
        ' {"body": "end", "predecessor_positions": [3, 2]},'
        ' {"body": "beside", "predecessor_positions": []}]'
    )
    calls.want("enqueue_batch", NEW, NEW, NEW, NEW, NEW, queue_name="'p'", messages=f"'{messages}'")
    for body in ("begin", "left", "right", "end", "beside"):
        finish_next(calls, "p", body)
    nothing_waits(calls, "p")


def _deaths(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'", max_attempts="1")
    for death in ("fail_now", "retry_later", "reap"):
        first = send(calls, "p", "first")
        waits = {
            asked: send(
                calls, "p", asked, predecessor_ids=f"'[{first}]'", on_predecessor_dead=f"'{asked}'"
            )
            for asked in ("hold", "continue", "fail")
        }
        row = take(calls, "p", "first")[0]
        if death == "reap":
            calls.change(f"update rowq_claim set lease_until = {PAST}")
            calls.want("reap", {"reaped": "0", "died": "1"}, queue_name="'p'")
        else:
            given = {"queue_name": "'p'", "claim_id": row["claim_id"]}
            calls.want(death, {"outcome": "dead"}, **given)
        why = f"predecessor {first} is dead"
        expect(calls, "p", waits["hold"], state="blocked", waits_for=first)
        expect(calls, "p", waits["fail"], state="dead", last_error=why, attempt="0")
        finish_next(calls, "p", "continue")
        late = send(
            calls, "p", "late", predecessor_ids=f"'[{first}]'", on_predecessor_dead="'fail'"
        )
        expect(calls, "p", late, state="dead", last_error=why)
        calls.want(
            "cancel", {"outcome": "cancelled"}, {"outcome": "cancelled"},
            queue_name="'p'", message_ids=f"'[{waits['fail']}, {late}]'",
        )  # fmt: skip
        calls.want("reset", {"outcome": "reset"}, queue_name="'p'")
        finish_next(calls, "p", "first")
        finish_next(calls, "p", "hold")
    nothing_waits(calls, "p")


def _trees(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    messages = ['{"body": "0"}']
    messages += [
        f'{{"body": "{place}", "predecessor_positions": [{place}], "on_predecessor_dead": "fail"}}'
        for place in range(1, 8)
    ]
    messages += ['{"body": "held", "predecessor_positions": [8]}']
    messages += [
        '{"body": "goes on", "predecessor_positions": [8], "on_predecessor_dead": "continue"}'
    ]
    given = f"'[{', '.join(messages)}]'"
    rows = calls.want("enqueue_batch", *[NEW] * 10, queue_name="'p'", messages=given)
    finish_next(calls, "p", "0", "fail_now")
    calls.want("queue_stats", {"dead": "8", "blocked": "1", "ready": "1"}, queue_name="'p'")
    finish_next(calls, "p", "goes on")
    last = rows[7]["message_id"]
    calls.want("cancel", {"outcome": "cancelled"}, queue_name="'p'", message_ids=f"'[{last}]'")
    finish_next(calls, "p", "held")
    calls.want("purge_queue", {"removed": "7"}, queue_name="'p'", include_dead="1")
    nothing_waits(calls, "p")


def _delays(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'")
    first = send(calls, "p", "first")
    late = send(calls, "p", "late", predecessor_ids=f"'[{first}]'", delay_seconds="60")
    finish_next(calls, "p", "first")
    expect(calls, "p", late, state="delayed", waits_for="")
    for table in ("message", "delayed"):
        calls.change(f"update rowq_{table} set due_at = {PAST} where due_at > {PAST}")
    calls.want("promote", {"promoted": "1"}, queue_name="'p'")
    finish_next(calls, "p", "late")
    first = send(calls, "p", "first")
    send(calls, "p", "waits", predecessor_ids=f"'[{first}]'", group_key="'a'")
    send(calls, "p", "alone", predecessor_ids=f"'[{first}]'", group_key="'b'")
    send(calls, "p", "a1", group_key="'a'")
    send(calls, "p", "a2", group_key="'a'")
    rows = take(calls, "p", "first", "a1")
    end(calls, "p", rows[0])
    calls.want("queue_stats", {"blocked": "2"}, queue_name="'p'")
    finish_next(calls, "p", "alone")
    end(calls, "p", rows[1])
    finish_next(calls, "p", "waits")
    finish_next(calls, "p", "a2")
    nothing_waits(calls, "p")


def _archive(calls: Calls) -> None:
    calls.want("create_queue", {"outcome": "created"}, queue_name="'p'", archive_days="1")
    first = send(calls, "p", "first")
    send(calls, "p", "second", predecessor_ids=f"'[{first}]'")
    finish_next(calls, "p", "first")
    finish_next(calls, "p", "second")
    send(calls, "p", "third", predecessor_ids=f"'[{first}]'")
    finish_next(calls, "p", "third")
    # As if the flag had been committed after the end: then it is the archive that frees.
    named = send(calls, "p", "named")
    waits = send(calls, "p", "waits", predecessor_ids=f"'[{named}]'")
    calls.change(f"update rowq_message set has_successors = null where message_id = {named}")
    finish_next(calls, "p", "named")
    expect(calls, "p", waits, state="blocked", waits_for=named)
    calls.change(f"update rowq_message set has_successors = 1 where message_id = {named}")
    calls.want("archive", {"archived": "4"}, queue_name="'p'")
    finish_next(calls, "p", "waits")
    calls.want("archive", {"archived": "1"}, queue_name="'p'")
    nothing_waits(calls, "p")
