"""Finds what becomes of messages of workers that are killed, slow, cut off or suspended."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.scenarios import Scenario
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.dialects import Dialect
from benchmarks.studies.seeds.seed_003.diary import Entry, read_diaries
from benchmarks.studies.seeds.seed_003.scene import CASES, RESCUER, Scene
from benchmarks.studies.seeds.seed_003.workers import BATCH


def crashes(dialect: Dialect, url: str, form: Form, scenario: Scenario) -> dict[str, Any]:
    """Let things happen to four workers with five messages each, and a fifth take over.

    scenario.seconds: the age at which a claim is reset, or the length of a lease; at least 1.
    """
    with (
        tempfile.TemporaryDirectory(prefix="rowq-bench-") as folder,
        form.open_client(url, scenario.body_bytes) as control,
    ):
        control.create()
        limit = max(1, round(scenario.seconds))
        scene = Scene(dialect, url, form, control, Path(folder), limit)
        happened, resumed = scene.play()
        return judge(read_diaries(Path(folder)), happened, resumed)


def judge(entries: Sequence[Entry], happened: float, resumed: float) -> dict[str, float]:
    """Return the figures of a diary.

    happened: when one worker was killed, one suspended, one cut off. resumed: when the suspended
    went on. A message is run twice when the rescuer and a worker that lived both began it.
    """
    figures: dict[str, float] = {}
    for case in CASES:
        begun = [entry for entry in entries if entry.text == case and entry.what == "started"]
        rescued = {entry.message: entry.at for entry in reversed(begun) if entry.who == RESCUER}
        own = {entry.message for entry in begun if entry.who == case}
        if case == "killed":
            figures["killed_back"] = len(rescued)
            last = max(rescued.values(), default=happened)
            figures["killed_back_seconds"] = round(last - happened, 2)
        else:
            figures[f"{case}_twice"] = len(own & rescued.keys())
        if case == "suspended":
            early = [at for at in rescued.values() if at < resumed]
            figures["suspended_taken_over"] = len(early)
    ended = {entry.message for entry in entries if entry.what == "ended"}
    return figures | {"never_done": BATCH * len(CASES) - len(ended)}
