"""Run sessions, count what is left, drain the queue and judge the history."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import rowq
from rowq import Queue
from tests.concurrency.actors import (
    LONGEST_LIFE,
    MOST_PURGED,
    Actor,
    Killer,
    Maintainer,
    Producer,
    Run,
)
from tests.concurrency.checker import check
from tests.concurrency.consumers import Consumer, TransactionalConsumer
from tests.concurrency.history import Event, read, write
from tests.concurrency.purges import with_purge
from tests.dice import SEED
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of
from tests.stored_times import pass_seconds, tick

QUIET_SECONDS = 60
"""Seconds without a completed message after which sessions count as hanging."""
_NEARLY_DONE = 1000
_ENDS: dict[str | int, str] = {
    **{state: state for state in ("completed", "cancelled")},
    "requested": "cancelled",
    "expiring": "expired",
}
"""The ways in which a message may have ended, by outcome."""
_END_SECONDS = 120
"""Maximum seconds for a session's current turn."""


def ten_sessions(run: Run, messages: int) -> list[Actor]:
    """Return ten sessions that enqueue `messages` in all."""
    return [
        *(Producer(run, f"producer {number}", SEED, messages // 3 + 1) for number in range(3)),
        *(Consumer(run, f"consumer {number}", SEED) for number in range(4)),
        *(TransactionalConsumer(run, f"transaction {number}", SEED) for number in range(2)),
        Maintainer(run, "maintainer", SEED),
    ]


def perform(run: Run, messages: int, tmp_path: Path, disturb: Callable[[], None]) -> list[Event]:
    """Let ten sessions work and drain what they leave; return the history, without fault.

    disturb: called when the sessions have begun.
    """
    with _judge(run) as judge:
        dialect = dialect_of(judge)
        dialect.make_table(judge, "run_effect", "queue_name varchar(200), message_id bigint")
        deadlocks = dialect.deadlocks(judge)
    _let_work(run, ten_sessions(run, messages), disturb)
    with _judge(run) as judge:
        if run.expires:
            time.sleep(LONGEST_LIFE)
        for _ in range(2 if run.groups or run.waits or run.expires else 0):
            tick(judge, run.queue_name)
            _maintain(run, judge)
        left = _take_census(run, judge)
        drain(run, judge)
        while "blocked" in _take_census(run, judge):
            _reset(run, judge)
            drain(run, judge)
        assert set(_take_census(run, judge)) <= {"dead"}
        assert dialect_of(judge).held_keys(judge, run.queue_name) == 0
    with _judge(run) as judge:
        deadlocks = dialect_of(judge).deadlocks(judge) - deadlocks
        if not run.may_be_retried:
            assert not (deadlocks and dialect_of(judge).is_free_of_deadlocks)
        history = _judged(run, tmp_path / "history.jsonl")
        _check_effects(history, judge, run.queue_name)
        if run.has_results:
            _check_results(history, Queue(judge), run.queue_name)
    in_callers = len(run.deadlocks)
    print(
        f"{_summary(history, left)}; deadlocks: {deadlocks}, in callers' transactions: {in_callers}"
    )
    return history


def drain(run: Run, connection: Connection) -> None:
    """Let delays and leases end, and complete all messages."""
    judge = Consumer(run, "judge", SEED)
    idle = 0
    while idle < 3:
        start = run.recorder.clock()
        pass_seconds(connection, run.queue_name, 2 * run.lease_seconds)
        run.recorder.record(start, "judge", "expire", None)
        _maintain(run, judge.connection)
        idle += 1
        while messages := judge.dequeue():
            judge.finish(
                "complete", messages[0].claim_id, [message.message_id for message in messages]
            )
            idle = 0
    judge.connection.close()


def _maintain(run: Run, connection: Connection) -> None:
    start = run.recorder.clock()
    Queue(connection).maintain(run.queue_name, 10000)
    run.recorder.record(start, "judge", "maintain", None)


def _reset(run: Run, connection: Connection) -> None:
    """Reset all dead messages, because others wait for them.

    If the dedup key of one is taken, that message is cancelled.
    """
    queue = Queue(connection)
    start = run.recorder.clock()
    done = queue.reset(run.queue_name, max_messages=10000)
    outcomes = [(outcome.message_id, outcome.outcome) for outcome in done]
    run.recorder.record(start, "judge", "reset", None, outcomes)
    if held := [message_id for message_id, outcome in outcomes if outcome == "duplicate"]:
        start = run.recorder.clock()
        gone = queue.cancel(run.queue_name, held)
        outcomes = [(outcome.message_id, outcome.outcome) for outcome in gone]
        run.recorder.record(start, "judge", "cancel", None, outcomes)


def count(history: list[Event], action: str) -> int:
    """Return the number of messages of calls of one kind."""
    return sum(len(event.results) for event in history if event.action == action)


@contextmanager
def _judge(run: Run) -> Iterator[Connection]:
    connection = run.server.connect(run.direct_url or run.url)
    yield connection
    connection.close()


def _let_work(run: Run, actors: list[Actor], disturb: Callable[[], None]) -> None:
    """Run all sessions until most messages are done; raise their first error."""
    for actor in actors:
        actor.thread.start()
    try:
        disturb()
        _wait_while_they_work(
            run, [actor.thread for actor in actors if isinstance(actor, Producer)]
        )
    finally:
        run.stop.set()
    for actor in actors:
        actor.thread.join(_END_SECONDS)
        assert not actor.thread.is_alive(), f"{actor.name} does not end"
    if run.errors:
        raise run.errors[0]


def _wait_while_they_work(run: Run, producers: list[threading.Thread]) -> None:
    """Wait; fail if nothing is completed for QUIET_SECONDS."""
    done, since = 0, time.monotonic()
    with rowq.connect(run.direct_url or run.url) as queue:
        while not run.stop.wait(0.1):
            producing = any(thread.is_alive() for thread in producers)
            if not producing and queue.queue_stats(run.queue_name)[0].ready < _NEARLY_DONE:
                return
            if run.recorder.completed > done:
                done, since = run.recorder.completed, time.monotonic()
            assert time.monotonic() - since < QUIET_SECONDS, (
                f"nothing was completed for {QUIET_SECONDS} seconds, after {done} messages"
            )


def _take_census(run: Run, connection: Connection) -> Counter[str]:
    """Record the state of every message; no other session is working."""
    start = run.recorder.clock()
    dialect = dialect_of(connection)
    found = dialect.census(connection, run.queue_name)
    run.recorder.record(start, "judge", "census", None, found)
    kept = {message for message, _ in dialect.finished(connection, run.queue_name)}
    assert {message for message, _ in found} == dialect.bodies(connection, run.queue_name) - kept
    return Counter(state for _, state in found)


def _judged(run: Run, path: Path) -> list[Event]:
    """Return the history from its file, if the checker finds no error."""
    history = run.recorder.history()
    if run.purge is not None:
        history = with_purge(history, run.purge, MOST_PURGED)
    write(history, path)
    history = read(path)
    faults = check(history, max(run.group_limits))
    assert not faults, f"{len(faults)} faults, of which {faults[:10]}; the history is in {path}"
    return history


def _check_effects(history: list[Event], connection: Connection, queue: str) -> None:
    """Check that effects and completions of transactions are equal, and once each."""
    query = "select message_id from run_effect where queue_name = %s"
    rows = dialect_of(connection).execute(connection, query, [queue]).fetchall()
    effects = Counter(int(message_id) for (message_id,) in rows)
    calls = [
        event for event in history if event.action == "complete" and "transaction" in event.session
    ]
    sure = {message for call in calls if call.known for message, _ in call.results}
    possible = {message for call in calls for message, _ in call.results}
    assert sure <= set(effects) <= possible
    assert set(effects.values()) <= {1}


def _check_results(history: list[Event], queue: Queue, queue_name: str) -> None:
    """Check the results of messages against the outcomes that callers got."""
    returned_ends: dict[int, str | int] = {}
    possible_ends: dict[int, set[str]] = defaultdict(set)
    for event in history:
        for message, how in event.results:
            if how in _ENDS:
                possible_ends[message].add(_ENDS[how])
            if how in ("completed", "cancelled") and event.known:
                returned_ends[message] = how
    left = {message for event in history[-1:] for message, _ in event.results}
    found: Counter[str] = Counter()
    enqueues = [event for event in history if event.action == "enqueue"]
    for message in {message for event in enqueues for message, _ in event.results}:
        result = queue.get_result(queue_name, message)
        assert result is not None
        possible = {"dead"} if message in left else possible_ends[message]
        assert result.state in ({returned_ends[message]} if message in returned_ends else possible)
        found[result.state] += 1
    print(f"results: {dict(found)}")
    assert found["expired"] or not any(event.action == "expiring" for event in history)


def _summary(history: list[Event], left: Counter[str]) -> str:
    """Return a summary to print."""
    counts: Counter[str] = Counter()
    for event in history:
        if event.action != "census":
            counts[f"{event.action}{'' if event.known else ' lost'}"] += len(event.results) or 1
        counts["stale"] += sum(outcome == "stale" for _, outcome in event.results)
    seconds = history[-1].end - history[0].start
    return f"{seconds:.1f} s; {dict(counts)}; left before the drain: {dict(left)}"


def kill_now_and_then(run: Run) -> Callable[[], None]:
    """Return a function that starts a session which kills others until the run stops."""
    return Killer(run, "killer", SEED).thread.start
