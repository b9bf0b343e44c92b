"""Seed 003: claims by an owner, their reset, and what the diaries of workers say."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.studies.seeds import seed_003
from benchmarks.studies.seeds.base import Form
from benchmarks.studies.seeds.seed_003.crashes import judge
from benchmarks.studies.seeds.seed_003.diary import Diary, Entry, read_diaries


def form_of(name: str, engine: str) -> Form:
    (form,) = (form for form in seed_003.SEED.forms(engine) if form.name == name)
    return form


@pytest.mark.parametrize("name", ["claim_for_update", "claim_update_limit"])
def test_an_owner_claims_each_message_once(
    name: str, engine: str, place: Callable[[Form], Any]
) -> None:
    form = form_of(name, engine)
    with (
        place(form) as url,
        form.open_client(url, 100) as first,
        form.open_client(url, 100) as second,
    ):
        first.fill(45)
        first.settle()
        counts = [client.complete(client.dequeue(20)) for client in (first, second, first, second)]
        assert counts == [20, 20, 5, 0]
        assert len(set(first.handled + second.handled)) == 45


def test_a_claim_is_reset_by_age_and_kept_where_its_session_lives(
    engine: str, place: Callable[[Form], Any]
) -> None:
    form = form_of("reset_by_age", engine)
    with place(form) as url, form.open_client(url, 100) as control:
        control.fill(3)
        with form.open_client(url, 100) as worker:
            assert len(worker.dequeue(10)) == 3
            own = [worker.session.backend]

            def reset(section: str, *, seconds: int, sessions: list[int]) -> int:
                text = control.sections[section]
                control.session.run(text, seconds=seconds, sessions=sessions)
                return control.session.affected

            assert reset("reset_by_age", seconds=3600, sessions=own) == 0
            assert reset("reset_by_age_and_session", seconds=0, sessions=own) == 0
            assert reset("reset_by_age_and_session", seconds=0, sessions=[0]) == 3
            assert len(control.dequeue(10)) == 3


def test_what_a_worker_noted_is_read_in_the_order_of_time(tmp_path: Path) -> None:
    first, second = Diary(tmp_path / "one.diary"), Diary(tmp_path / "two.diary")
    first.note("started", 7, "slow")
    second.note("started", 8, "killed")
    first.note("ended", 7, "slow")
    found = [(entry.who, entry.what, entry.message, entry.text) for entry in read_diaries(tmp_path)]
    assert found == [
        ("one", "started", 7, "slow"),
        ("two", "started", 8, "killed"),
        ("one", "ended", 7, "slow"),
    ]


def test_a_diary_tells_what_was_run_twice_and_when_messages_came_back() -> None:
    entries = [
        Entry(9.0, "killed", "started", 1, "killed"),
        Entry(9.1, "slow", "started", 6, "slow"),
        Entry(9.2, "suspended", "started", 16, "suspended"),
        Entry(12.0, "rescuer", "started", 1, "killed"),
        Entry(12.5, "rescuer", "started", 2, "killed"),
        Entry(12.6, "rescuer", "ended", 2, "killed"),
        Entry(12.7, "rescuer", "started", 6, "slow"),
        Entry(13.0, "rescuer", "started", 17, "suspended"),
        Entry(15.0, "rescuer", "started", 16, "suspended"),
        Entry(16.0, "slow", "ended", 6, "slow"),
    ]
    figures = judge(entries, happened=10.0, resumed=14.0)
    assert (figures["killed_back"], figures["killed_back_seconds"]) == (2, 2.5)
    assert (figures["slow_twice"], figures["cut_off_twice"], figures["suspended_twice"]) == (
        1,
        0,
        1,
    )
    assert figures["suspended_taken_over"] == 1
    assert figures["never_done"] == 20 - 2
