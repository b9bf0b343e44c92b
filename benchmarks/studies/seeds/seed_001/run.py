"""Runs the sessions of a form over chains of messages, and looks at the history they leave."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness.observe import Counts
from benchmarks.harness.pace import once_a_second
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.team import Gate, Team
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.seed_001.sessions import (
    Account,
    ChainSession,
    OpenChain,
    RowqChainSession,
    consume,
    produce,
)

LENGTH = 200
_LOOK_SECONDS = 0.02


def chains(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Let consumers work on chains of messages while producers add to chains of their own.

    scenario.delayed: so many messages, in front of the others, are one chain that is stuck.
    """
    stuck = min(scenario.delayed, scenario.messages // 2)
    open_chain = opener(dialect, form.name)
    works: list[Callable[[Gate], Account]] = [
        *[partial(consume, open_chain, url, scenario.seconds)] * scenario.sessions,
        *[partial(produce, open_chain, url, scenario.seconds)] * scenario.producers,
    ]
    marks: list[Counts] = []
    with open_chain(url) as control, dialect.observe(url) as observer:
        control.create()
        first = control.prepare(scenario.messages, LENGTH, stuck)
        keep_house = once_a_second(control.maintain, at_once=False)

        def tick() -> None:
            observer.look()
            keep_house()

        began, accounts = Team(works).run(
            lambda: marks.append(observer.counts()), tick, _LOOK_SECONDS
        )
        observer.settle()
        used = observer.counts().since(marks[0])
    added = {key: value for account in accounts for key, value in account.predecessors.items()}
    done = sum(len(account.handled) for account in accounts)
    if not done:
        raise RuntimeError(f"{form.name} has handed out nothing")
    seconds = max(account.ended[-1] for account in accounts if account.ended) - began
    return {
        "messages": done,
        "seconds": round(seconds, 3),
        "messages_per_second": round(done / seconds, 1),
        "enqueued_per_second": round(len(added) / seconds, 1),
        "reads_per_message": round(used.reads / done, 1),
        "deadlocks": used.deadlocks,
        "retries": sum(account.retries for account in accounts),
        "lock_waits": used.lock_waits,
        "lock_wait_seconds": round(used.lock_wait_seconds, 2),
        "double_runs": done - len({message for account in accounts for message in account.handled}),
        "broken_order": broken_order(accounts, first | added),
    }


def opener(dialect: Dialect, form: str) -> OpenChain:
    """Return what opens a session of a form at a URL."""
    if form == "rowq":
        return partial(RowqChainSession, dialect)
    return partial(ChainSession, dialect, Path(__file__).parent / dialect.name / f"{form}.sql")


def broken_order(accounts: Sequence[Account], predecessors: Mapping[int, int]) -> int:
    """Return how many messages were handed out before the handler of their predecessor was done.

    predecessors: 0 where a message has none. A message that was never handed out breaks nothing.
    """
    started: dict[int, float] = {}
    ended: dict[int, float] = {}
    for account in accounts:
        for number, start, end in zip(account.handled, account.started, account.ended, strict=True):
            started[number] = min(start, started.get(number, start))
            ended[number] = max(end, ended.get(number, end))
    never = float("inf")
    return sum(
        start < ended.get(predecessors[number], never)
        for number, start in started.items()
        if predecessors.get(number)
    )
