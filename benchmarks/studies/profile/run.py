"""Runs the profile and returns it as JSON data."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.postgres.lab import SETTINGS, Lab, open_lab
from benchmarks.harness.runner import run_facts
from benchmarks.harness.scenarios import turned
from benchmarks.studies.profile import statements
from benchmarks.studies.profile.actions import Action, Course, courses
from benchmarks.studies.profile.calls import Cost, Session
from benchmarks.studies.profile.wal import written
from benchmarks.studies.queues.kinds import QUEUE

_WATCHED = 60
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """The settings of a run of the profile.

    messages: how many pass in batches of 50. singles: how many one by one. rounds: how often.
    home: the private server's directory. root: the checkout. command, note: for the report.
    """

    messages: int
    singles: int
    rounds: int
    home: Path
    root: Path
    command: str
    note: str


def run_profile(plan: ProfilePlan) -> dict[str, Any]:
    """Profile every course, and return the results as JSON data."""
    began = time.monotonic()
    with open_lab(None, plan.home, SETTINGS | statements.SETTINGS) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        planned = courses(plan.messages, plan.singles)
        for system in {course.system.name: course.system for course in planned}.values():
            lab.prepare(system)
        found: list[list[dict[str, Any]]] = [[] for _ in planned]
        for turn in range(plan.rounds):
            for number in turned(range(len(planned)), turn):
                with lab.database(planned[number].system) as url:
                    found[number].append(_profile(lab, url, planned[number]))
            print(f"round {turn + 1} of {plan.rounds}: done", flush=True)
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "rounds": plan.rounds,
        "courses": [_merge(rounds) for rounds in found],
    }


def _merge(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one course from its rounds.

    Its times are lists, one for each round; statements and log are those of the round in which the
    statements took the least, for that was disturbed least.
    """
    actions = []
    for turns in zip(*(measured_round["actions"] for measured_round in rounds), strict=True):
        best = min(turns, key=lambda turn: sum(x["milliseconds"] for x in turn["statements"]))
        times = {key: [turn[key] for turn in turns] for key in ("ms", "durable_ms", "cpu_ms")}
        actions.append(best | times)
    return rounds[0] | {"actions": actions}


def _profile(lab: Lab, url: str, course: Course) -> dict[str, Any]:
    """Run a course four times: to warm up, watched, against the clock, and statement by statement.

    Against the clock twice: with commits that wait for the disk, and without.
    """
    with Session(url, course) as session:
        connection = session.connection
        create = course.system.statements.create.replace("$1::text", f"'{QUEUE}'")
        connection.execute(create)
        connection.execute("create extension pg_stat_statements")
        watcher = statements.Watcher(connection)
        session.pass_through(lambda action: session.run(action, _WARM_UP))
        with watcher:
            session.pass_through(lambda action: session.run(action, _WATCHED))
        durable = _clock(session, course, "on")
        free = _clock(session, course, "off")
        inside = session.pass_through(
            lambda action: _inside(session, watcher, action, course.calls)
        )
        actions = [
            {
                "action": action.name,
                "durable_ms": durable[action.name].seconds * 1e3,
                "ms": free[action.name].seconds * 1e3,
                "cpu_ms": free[action.name].cpu * 1e3,
                "statements": [asdict(statement) for statement in inside[action.name]],
                "wal": _wal(lab, session, free[action.name]),
            }
            for action in course.actions
        ]
    return {
        "title": course.title,
        "system": course.system.name,
        "batch": course.batch,
        "calls": course.calls,
        "actions": actions,
    }


def _clock(session: Session, course: Course, durable: str) -> dict[str, Cost]:
    session.connection.execute(f"set synchronous_commit = {durable}")
    return session.pass_through(lambda action: session.cost(action, course.calls))


def _inside(
    session: Session, watcher: statements.Watcher, action: Action, calls: int
) -> list[statements.Statement]:
    statements.start(session.connection)
    session.run(action, calls)
    return statements.stop(session.connection, watcher.places, calls)


def _wal(lab: Lab, session: Session, cost: Cost) -> list[dict[str, Any]]:
    assert lab.local is not None
    found = written(lab.local.bin_dir, session.connection, cost.start, cost.end)
    return [asdict(statement) for statement in found]
