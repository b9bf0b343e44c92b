"""Random calls on two queues: complete_and_dequeue on one, complete and dequeue_fast on the other.

All answers and all stored messages must be the same, apart from ids and times.
"""

import re
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import pytest

from rowq.contract import load_contract
from tests.dice import IS_GIVEN, dice, limit, times
from tests.engines.base import Connection, Server
from tests.helpers.calls import Row
from tests.helpers.queues import CheckedQueue, new_queue

pytestmark = pytest.mark.slow("18 random histories")

SETTINGS: list[dict[str, Any]] = [
    {},
    {},
    {"group_limit": 2},
    {"archive_days": 3},
    {"result_seconds": 1000},
    {"history_days": 3},
    {"max_leased": 12},
    {"rate_limit": 20, "rate_seconds": 500},
    {"archive_days": 3, "result_seconds": 1000, "history_days": 3, "max_leased": 20},
]
CAPABILITIES = {
    "group_limit": "groups",
    "max_leased": "limits",
    "rate_limit": "limits",
    "result_seconds": "results",
}
COLUMNS = [column.name for column in load_contract().routines["complete_and_dequeue"].columns]
IDS = {"message_id", "waits_for"}
SEEN = {
    *("leased", "nothing leased", "stale", "completed", "stale claim", "whole claim by ids"),
    *("part of a claim", "paused", "dead", "retrying", "released", "duplicate", "reaped"),
    *("promoted", "retried"),
}
SEEN_WITH = {"results": "results", "cancel": "requested", "groups": "blocked"}
"""The words that a run must have seen, by capability of the server."""


class Side:
    """A queue whose messages and claims have numbers in the order of their appearance."""

    def __init__(self, queue: CheckedQueue) -> None:
        self.queue = queue
        self.ids: list[int] = []
        self.claims: list[int] = []

    def plain(self, row: Row) -> dict[str, Any]:
        """Return a row with numbers instead of ids, and without times and names of queues."""
        return {name: self._plain(name, value) for name, value in vars(row).items()}

    def _plain(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name in IDS:
            return self.ids.index(value)
        if name == "claim_id":
            if value not in self.claims:
                self.claims.append(value)
            return self.claims.index(value)
        if name == "last_error":
            return re.sub(r"\d+", lambda id_: str(self.ids.index(int(id_[0]))), value)
        is_time = isinstance(value, datetime) or name.endswith("_seconds")
        return "set" if is_time or name == "queue_name" else value

    def contents(self) -> list[Any]:
        """Return the number of rows in each table, and all that calls return of the messages."""
        rows: list[Any] = [self.queue.stored()]
        ready = self.queue.call("peek", max_messages=1000)
        rows.append([self.plain(row) for row in ready + self.queue.call("list_claims")])
        for one in self.ids:
            found = [
                self.plain(row)
                for routine in ("get_message", "get_result", "get_history")
                for row in self.queue.call(routine, message_id=one)
            ]
            rows.append(found)
        return rows


class TwoQueues:
    """The same calls on two queues."""

    def __init__(self, one: Side, other: Side, capabilities: frozenset[str]) -> None:
        self.one, self.other = one, other
        self.capabilities = capabilities
        self.seen: Counter[str] = Counter()
        self.claimed: dict[int, list[int]] = {}
        self.has_results = one.queue.call_one("queue_stats").result_seconds
        self.is_paused = False

    def step(self, random: Random) -> None:
        """Make a random call on both queues."""
        calls = {
            self.enqueue: 5,
            self.dequeue: 3,
            self.exchange: 10,
            self.finish: 4,
            self.cancel: 1,
            self.let_time_pass: 2,
            self.pause_or_resume: 0.7,
        }
        (call,) = random.choices(list(calls), list(calls.values()))
        call(random)

    def compare(self) -> None:
        """Compare everything that is stored."""
        assert self.one.contents() == self.other.contents()
        self.seen.update(state for _, state in self.one.queue.census())

    def both(self, call: Callable[[Side], list[Row]]) -> list[dict[str, Any]]:
        """Make a call on both queues; return the rows of the first."""
        return self._same(call(self.one), call(self.other))

    def enqueue(self, random: Random) -> None:
        """Enqueue messages with random options."""
        plain = random.random() < 0.4
        messages = [
            {} if plain else self._options(random) for _ in range(random.choice([1, 2, 5, 20]))
        ]

        def call(side: Side) -> list[Row]:
            given = []
            for number, options in enumerate(messages):
                named = [side.ids[one] for one in options.get("predecessor_ids", ())]
                linked = {"predecessor_ids": named} if named else {}
                given.append({**options, "body": f"{len(side.ids)}.{number}", **linked})
            rows = side.queue.call("enqueue_batch", messages=given)
            side.ids += [row.message_id for row in rows if row.outcome == "enqueued"]
            return rows

        self.seen.update(row["outcome"] for row in self.both(call))

    def _options(self, random: Random) -> dict[str, Any]:
        options: dict[str, Any] = {"max_attempts": random.choice([1, 2, 5])}
        if random.random() < 0.3:
            options["priority"] = random.choice([0, 5, 9])
        if random.random() < 0.1:
            options["dedup_key"] = random.choice("klm")
        if random.random() < 0.1:
            options["delay_seconds"] = 50
        if random.random() < 0.4 and "groups" in self.capabilities:
            options["group_key"] = random.choice("xyz")
        if random.random() < 0.2 and "predecessors" in self.capabilities and self.one.ids:
            known = len(self.one.ids)
            options["predecessor_ids"] = random.sample(range(known), min(known, 2))
            options["on_predecessor_dead"] = random.choice(["hold", "continue", "fail"])
        if random.random() < 0.1 and "expiry" in self.capabilities:
            options["expire_seconds"] = 150
        return options

    def dequeue(self, random: Random) -> None:
        """Lease a batch."""
        size = random.choice([1, 1, 3, 30])
        self._leased(self.both(lambda side: side.queue.dequeue(size, worker_name="w")))

    def exchange(self, random: Random) -> None:
        """Complete messages of a claim that may be stale, and dequeue."""
        claim, asked = self._some_claim(random)
        options = {"batch_size": random.choice([1, 1, 3, 30]), "worker_name": "w"}
        held = self.claimed.get(claim, [])
        ended = held if asked is None else asked
        results: dict[str, Any] = {}
        if self.has_results and random.random() < 0.5 and (asked is not None or len(held) == 1):
            results = {"results": [{"number": one} for one in ended]}
            self.seen["results"] += 1

        def arguments(side: Side) -> dict[str, Any]:
            ids = {} if asked is None else {"message_ids": [side.ids[one] for one in asked]}
            return {"claim_id": side.claims[claim], **ids, **results}

        given = arguments(self.one)
        if asked is None and not held:
            self.one.queue.refused("RQ721", "complete", **given)
            completed = [Row(outcome="stale", message_id=None)]
            self.seen["stale claim"] += 1
        else:
            completed = self.one.queue.call("complete", **given)
        self.seen.update(row.outcome for row in completed)
        gone = dict.fromkeys(COLUMNS) | {"claim_id": given["claim_id"]}
        left = [Row(**gone | vars(row)) for row in completed if row.outcome == "stale"]
        leased = self.one.queue.call("dequeue_fast", **options)
        left += [Row(outcome="leased", **vars(row)) for row in leased]
        right = self.other.queue.call("complete_and_dequeue", **arguments(self.other), **options)
        rows = self._same(left, right)
        if asked is not None and held:
            is_whole = set(asked) >= set(held)
            self.seen["whole claim by ids" if is_whole else "part of a claim"] += 1
        self._ended(claim, asked)
        self._leased([row for row in rows if row["outcome"] == "leased"])

    def finish(self, random: Random) -> None:
        """Finish messages of a claim by another routine."""
        claim, asked = self._some_claim(random)
        if asked is None and not self.claimed.get(claim):
            return
        routine = random.choice(["release", "retry_later", "retry_later", "fail_now"])
        options: dict[str, Any] = {}
        if routine == "retry_later":
            options = {"delay_seconds": random.choice([0, 50]), "error": "again"}

        def call(side: Side) -> list[Row]:
            ids = None if asked is None else [side.ids[one] for one in asked]
            claim_id = side.claims[claim]
            return side.queue.call(routine, claim_id=claim_id, message_ids=ids, **options)

        self.seen.update(row["outcome"] for row in self.both(call))
        self._ended(claim, asked)

    def cancel(self, random: Random) -> None:
        """Cancel messages in any state."""
        if not self.one.ids or "cancel" not in self.capabilities:
            return
        numbers = random.sample(range(len(self.one.ids)), min(3, len(self.one.ids)))
        rows = self.both(
            lambda side: side.queue.call(
                "cancel", message_ids=[side.ids[one] for one in numbers], include_leased=True
            )
        )
        self.seen.update(row["outcome"] for row in rows)

    def let_time_pass(self, random: Random) -> None:
        """Let time pass, and mostly call maintain."""
        seconds = random.choice([100, 100, 1000])
        for side in (self.one, self.other):
            side.queue.pass_seconds(seconds)
        if random.random() < 0.6:
            (row,) = self.both(lambda side: side.queue.call("maintain"))
            self.seen["promoted"] += row["promoted"]
            self.seen["reaped"] += row["reaped"]
            held = {found[0] for found in self.one.queue.census() if found[1] == "leased"}
            for claim, numbers in self.claimed.items():
                self.claimed[claim] = [one for one in numbers if self.one.ids[one] in held]

    def pause_or_resume(self, random: Random) -> None:
        """Pause the queues for a while."""
        self.is_paused = not self.is_paused and random.random() < 0.5
        routine = "pause_queue" if self.is_paused else "resume_queue"
        self.both(lambda side: side.queue.call(routine))
        self.seen["paused"] += self.is_paused

    def _some_claim(self, random: Random) -> tuple[int, list[int] | None]:
        """Return a claim, and some of its messages or None."""
        held = [claim for claim, numbers in self.claimed.items() if numbers]
        if not self.one.claims:
            for side in (self.one, self.other):
                side.claims.append(9_000_000_000)
        if held and random.random() < 0.9:
            claim = random.choice(held[-4:])
        else:
            claim = random.randrange(len(self.one.claims))
        numbers = self.claimed.get(claim, [])
        asked = [one for one in numbers if random.random() < 0.6]
        if random.random() < 0.3:
            asked = numbers[:]
        if random.random() < 0.2 and self.one.ids:
            asked.append(random.randrange(len(self.one.ids)))
        if random.random() < 0.1:
            random.shuffle(asked)
        return claim, asked if random.random() < 0.4 else None

    def _ended(self, claim: int, asked: list[int] | None) -> None:
        held = self.claimed.get(claim, [])
        self.claimed[claim] = [one for one in held if asked is not None and one not in asked]

    def _leased(self, rows: list[dict[str, Any]]) -> None:
        self.seen["leased" if rows else "nothing leased"] += 1
        self.seen["retried"] += any(row["attempt"] > 1 for row in rows)
        for row in rows:
            self.claimed.setdefault(row["claim_id"], []).append(row["message_id"])

    def _same(self, left: list[Row], right: list[Row]) -> list[dict[str, Any]]:
        rows = [self.one.plain(row) for row in left]
        assert rows == [self.other.plain(row) for row in right]
        return rows


@pytest.mark.timeout(limit(300))
@pytest.mark.promise("P03", "P04", "P05", "P08", "P18", "P19", "P21", "P26", "P28", "P32", "P37")
def test_one_call_equals_complete_and_dequeue_fast(
    server: Server, connection: Connection, queue_name: str
) -> None:
    if "complete_and_dequeue" not in load_contract().of(server.engine):
        pytest.skip(
            "no complete_and_dequeue on this engine; to run it: --engine postgres18,mariadb"
        )
    seen: Counter[str] = Counter()
    for number in range(times(2 * len(SETTINGS))):
        draw = dice("one call or two", number)
        settings = {
            name: value
            for name, value in SETTINGS[number % len(SETTINGS)].items()
            if CAPABILITIES.get(name, "days") in {*server.capabilities, "days"}
        }
        sides = [
            Side(new_queue(connection, f"{queue_name}_{number}_{side}", **settings))
            for side in ("two calls", "one call")
        ]
        queues = TwoQueues(sides[0], sides[1], server.capabilities)
        for place in range(60):
            queues.step(draw)
            if place % 20 == 19:
                queues.compare()
        seen += queues.seen
    wanted = SEEN | {word for name, word in SEEN_WITH.items() if name in server.capabilities}
    assert IS_GIVEN or wanted - (+seen).keys() == set()
