"""Measures every feature, the idle houses and the other queues, and returns JSON data."""

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engines.mysql import lab as mysql
from benchmarks.engines.postgres import lab as postgres
from benchmarks.harness.runner import run_facts
from benchmarks.harness.scenarios import turned
from benchmarks.studies.features.courses import Course
from benchmarks.studies.features.features import BATCHES, FEATURES
from benchmarks.studies.features.idle import IdlePlan, keep_mariadb, keep_postgres
from benchmarks.studies.features.meter import SETTINGS
from benchmarks.studies.features.queue import RowqCourse
from benchmarks.studies.features.recurring import OTHERS
from benchmarks.studies.queues.systems import rowq


@dataclass(frozen=True, slots=True)
class FeaturesPlan:
    """The settings of a run.

    rounds: how often the features take turns. messages: of a turn. idle: how often maintain is
    called where nothing is due. home: the private server's directory. root: the checkout. command,
    note: for the report.
    """

    rounds: int
    messages: int
    idle: IdlePlan
    home: Path
    root: Path
    command: str
    note: str


def run_features(plan: FeaturesPlan) -> dict[str, Any]:
    """Measure everything on PostgreSQL, and return the results as JSON data."""
    began = time.monotonic()
    with postgres.open_lab(None, plan.home, postgres.SETTINGS | SETTINGS) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        idle = keep_postgres(lab, plan.idle)
        others = [other.facts() for other in OTHERS]
        with contextlib.ExitStack() as stack:
            courses = _courses(lab, stack, {o["name"] for o in others if "absent" not in o})
            rounds = []
            for turn in range(plan.rounds):
                for course in turned(courses, turn):
                    costs = course.turn(plan.messages)
                    where = {"round": turn + 1, "name": course.name, "batch": course.batch}
                    rounds.append(where | {"costs": costs})
                print(f"round {turn + 1} of {plan.rounds}: done", flush=True)
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "settings": {"rounds": plan.rounds, "messages": plan.messages},
        "features": [{"name": f.name, "title": f.title, "by": f.by} for f in FEATURES],
        "others": others,
        "idle": idle,
        "rounds": rounds,
    }


def run_idle(plan: FeaturesPlan) -> dict[str, Any]:
    """Measure the idle houses on MariaDB, and return the results as JSON data."""
    began = time.monotonic()
    with mysql.open_lab(None) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        idle = keep_mariadb(lab, plan.idle)
    return facts | {"minutes": round((time.monotonic() - began) / 60, 1), "idle": idle}


def _courses(lab: postgres.Lab, stack: contextlib.ExitStack, present: set[str]) -> list[Course]:
    """Return the courses of every feature in one database, and of each other queue in its own."""
    own = rowq()
    lab.prepare(own)
    url = stack.enter_context(lab.database(own))
    courses: list[Course] = [
        stack.enter_context(RowqCourse(url, feature, batch))
        for feature in FEATURES
        for batch in BATCHES
    ]
    for other in OTHERS:
        if other.name in present:
            lab.prepare(other)
            url = stack.enter_context(lab.database(other))
            courses += [stack.enter_context(course(url)) for course in other.courses]
    return courses
