"""Runs the profile and returns it as JSON data."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.rowq_bench import server
from benchmarks.rowq_bench.host import commit_of, host_facts
from benchmarks.rowq_bench.kinds import QUEUE
from benchmarks.rowq_bench.profile import statements
from benchmarks.rowq_bench.profile.actions import Action, Course, courses
from benchmarks.rowq_bench.profile.calls import Cost, Session
from benchmarks.rowq_bench.profile.wal import written

_WATCHED = 60
_WARM_UP = 20


def run(home: Path, root: Path, *, messages: int, singles: int, command: str) -> dict[str, Any]:
    """Profile every course.

    home: for the private server. root: the checkout. messages: in batches of 50; singles: one by
    one. command: for the report.
    """
    with server.open_lab(None, home, server.SETTINGS | statements.SETTINGS) as lab:
        facts = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit_of(root),
            "command": command,
            "host": host_facts(lab.directory),
            "server": lab.facts(),
        }
        found: list[dict[str, Any]] = []
        for course in courses(messages, singles):
            if course.system.name not in {one["system"] for one in found}:
                lab.prepare(course.system)
            with lab.database(course.system) as url:
                found.append(_profile(lab, url, course))
            print(f"{course.title}, batch {course.batch}: done", flush=True)
    return facts | {"courses": found}


def _profile(lab: server.Lab, url: str, course: Course) -> dict[str, Any]:
    """Run a course four times: to warm up, watched, against the clock, and statement by statement.

    Against the clock twice: with commits that wait for the disk, and without.
    """
    session = Session(url, course)
    connection = session.connection
    with connection:
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
                "durable_ms": durable[action.name].seconds * 1e3 / course.calls,
                "ms": free[action.name].seconds * 1e3 / course.calls,
                "cpu_ms": free[action.name].cpu * 1e3 / course.calls,
                "statements": [asdict(one) for one in inside[action.name]],
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


def _wal(lab: server.Lab, session: Session, cost: Cost) -> list[dict[str, Any]]:
    assert lab.local is not None
    found = written(lab.local.bin_dir, session.connection, cost.start, cost.end)
    return [asdict(one) for one in found]
