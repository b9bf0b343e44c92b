"""The profile of one call adds up, and the committed page is the one that its results give."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.profile.actions import courses
from benchmarks.studies.profile.report import render
from benchmarks.studies.profile.run import ProfilePlan, run_profile
from benchmarks.studies.profile.wal import Written, add_up
from tests.benchmarks.runs import BENCHMARKS

RESULTS = BENCHMARKS / "results" / "profile.json"


@pytest.fixture(scope="module")
def found(home: Path) -> dict[str, Any]:
    """Return a small profile, as it is read from a file."""
    plan = ProfilePlan(200, 20, rounds=1, home=home, root=home, command="", note="")
    data: dict[str, Any] = json.loads(json.dumps(run_profile(plan)))
    return data


def actions(found: dict[str, Any], system: str, batch: int) -> dict[str, dict[str, Any]]:
    """Return the actions of one course by their names."""
    (course, *_) = (c for c in found["courses"] if (c["system"], c["batch"]) == (system, batch))
    return {action["action"]: action for action in course["actions"]}


def test_every_action_of_every_course_is_timed_and_reported(found: dict[str, Any]) -> None:
    for course, planned in zip(found["courses"], courses(200, 20), strict=True):
        assert [a["action"] for a in course["actions"]] == [a.name for a in planned.actions]
        assert all(min(a["ms"] + a["durable_ms"]) > 0 for a in course["actions"])
        assert {len(a[key]) for a in course["actions"] for key in ("ms", "cpu_ms")} == {1}
        assert all(a["statements"] and a["wal"] for a in course["actions"])
    page = render(found)
    assert "### Dequeue, batch 50" in page
    assert "share of bare, COPY in" in page


def test_the_statements_inside_a_call_are_found_with_their_functions_and_lines(
    found: dict[str, Any],
) -> None:
    dequeue = actions(found, "rowq", 50)["dequeue"]["statements"]
    assert dequeue[0]["depth"] == 0
    deletes = [
        statement for statement in dequeue if statement["text"].startswith("delete from rowq.ready")
    ]
    assert [statement["where"].partition(":")[0] for statement in deletes] == ["internal_pop_ready"]
    complete = actions(found, "rowq", 50)["complete"]["statements"]
    (delete,) = (
        statement for statement in complete if "delete from rowq.message" in statement["text"]
    )
    assert (delete["depth"], delete["calls"]) == (2, 1)
    assert delete["wal_bytes"] > 50 * 40


def test_a_call_of_the_floor_is_one_statement(found: dict[str, Any]) -> None:
    for action in actions(found, "bare", 50).values():
        assert [statement["depth"] for statement in action["statements"]] == [0]


def test_the_log_holds_one_deleted_row_of_each_table_for_each_message(
    found: dict[str, Any],
) -> None:
    taken = actions(found, "rowq", 50)["dequeue"]["wal"]
    finished = actions(found, "rowq", 50)["complete"]["wal"]
    deleted = {
        wal["relation"]: wal["records"]
        for wal in [*taken, *finished]
        if wal["kind"] == "Heap DELETE"
    }
    assert (deleted["ready"], deleted["message"], deleted["claim"]) == (200, 200, 4)


def test_records_of_the_log_are_added_up_by_kind_and_relation() -> None:
    lines = [
        "rmgr: Heap        len (rec/tot):     54/    54, tx:        745, lsn: 0/0158E1B8,"
        " prev 0/0158E180, desc: DELETE xmax: 745, off: 1, infobits: [KEYS_UPDATED],"
        " flags: 0x00, blkref #0: rel 1663/5/16402 blk 0",
        "rmgr: Heap        len (rec/tot):     59/  8251, tx:        745, lsn: 0/0158E1F0,"
        " prev 0/0158E1B8, desc: DELETE xmax: 745, off: 2, infobits: [KEYS_UPDATED],"
        " flags: 0x00, blkref #0: rel 1663/5/16402 blk 1 FPW",
        "rmgr: Transaction len (rec/tot):     34/    34, tx:        745, lsn: 0/01590230,"
        " prev 0/0158E1F0, desc: COMMIT 2026-01-01 00:00:00.000000 UTC",
        "not a record",
    ]
    assert add_up(lines, {"16402": "ready"}) == [
        Written("Heap DELETE", "ready", 2, 8305, 8192),
        Written("Transaction COMMIT", "", 1, 34, 0),
    ]


def test_the_committed_page_is_fresh_and_of_a_whole_run() -> None:
    data = json.loads(RESULTS.read_text("utf-8"))
    assert (BENCHMARKS / "RESULTS-profile.md").read_text("utf-8") == render(data)
    assert "QUICK" not in data["command"]
