"""Every feature is measured step by step, and the page says what its figures say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from benchmarks.engines.postgres import lab as postgres
from benchmarks.engines.postgres.session import PostgresSession
from benchmarks.studies.features import recurring
from benchmarks.studies.features.courses import KEEP, PUT, STEPS, TAKE
from benchmarks.studies.features.features import (
    BATCHES,
    FEATURES,
    PLAIN,
    RESULT,
    RESULT_BYTES,
    SCHEDULE,
    SCHEDULES,
)
from benchmarks.studies.features.houses import AT_ONCE, EACH_SECOND, TARGET, House, build
from benchmarks.studies.features.idle import IdlePlan
from benchmarks.studies.features.meter import FIGURES, SETTINGS
from benchmarks.studies.features.report import PRODUCTS, render, totals
from benchmarks.studies.features.run import FeaturesPlan, run_features, run_idle
from benchmarks.studies.peers.node import FETCH
from benchmarks.studies.queues.systems import rowq
from tests.benchmarks.runs import BENCHMARKS
from tests.engines.base import Unavailable
from tests.engines.mysql.local import find_programs

RESULTS = BENCHMARKS / "results"
HOUSES = (House(1, 0), House(2, 3))


def plan(home: Path) -> FeaturesPlan:
    """Return a run of a few seconds."""
    return FeaturesPlan(1, SCHEDULES, IdlePlan(1, 0.01, 1, HOUSES), home, home, "", "")


@pytest.fixture(scope="module")
def found(home: Path) -> dict[str, Any]:
    """Return a small run, as it is read from a file."""
    data: dict[str, Any] = json.loads(json.dumps(run_features(plan(home))))
    return data


@pytest.fixture
def committed() -> dict[str, dict[str, Any]]:
    """Return the committed results by the names of their files."""
    paths = [RESULTS / f"{name}.json" for name in PRODUCTS]
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths}


def costs(found: dict[str, Any], name: str, batch: int = SCHEDULES) -> dict[str, dict[str, float]]:
    """Return what one round of a feature cost, by step."""
    (turn,) = (t for t in found["rounds"] if (t["name"], t["batch"]) == (name, batch))
    measured: dict[str, dict[str, float]] = turn["costs"]
    return measured


def verdicts(page: str) -> Iterator[str]:
    """Yield what a page says of each target."""
    for line in page.splitlines():
        if "nothing due: %" in line:
            yield line.split(" | ")[-1].removesuffix(" |")


def test_every_step_of_every_feature_is_measured_and_shown(found: dict[str, Any]) -> None:
    page = render({"features": found})
    for feature in FEATURES:
        assert f"**{feature.name}** | {feature.title}" in page
        for batch in BATCHES:
            measured = costs(found, feature.name, batch)
            assert tuple(measured) == STEPS
            assert all(set(FIGURES) == set(cost) for cost in measured.values())
            assert min(measured[TAKE].values()) > 0
            assert min(measured[PUT].values()) > 0


def test_a_feature_costs_statements_where_it_works(found: dict[str, Any]) -> None:
    def statements(name: str, step: str, batch: int = 1) -> float:
        return costs(found, name, batch)[step]["statements"]

    assert statements(PLAIN, PUT) == 4
    assert statements("dedup_key", PUT) == 5
    assert statements("group_key", TAKE) > statements(PLAIN, TAKE) + 1
    assert statements("archive_days", KEEP) > statements(PLAIN, KEEP)
    assert statements("max_leased", TAKE) > statements(PLAIN, TAKE)
    assert statements("topic, 1 queue", PUT) > statements("topic, 3 queues", PUT)
    assert statements("expire_seconds", PUT) > statements(PLAIN, PUT)
    assert statements("result_seconds", TAKE) > statements(PLAIN, TAKE)
    assert statements("result_seconds", KEEP) > statements(PLAIN, KEEP)
    assert statements("history_days", TAKE) > statements(PLAIN, TAKE)
    assert statements(SCHEDULE, PUT) > statements(SCHEDULE, PUT, SCHEDULES) > 1


def test_the_whole_way_is_the_sum_of_the_steps(found: dict[str, Any]) -> None:
    (whole,) = totals(found, PLAIN, 1, "buffers")
    assert whole == pytest.approx(sum(c["buffers"] for c in costs(found, PLAIN, 1).values()))


def test_maintain_comes_to_every_house_at_either_pace(found: dict[str, Any]) -> None:
    for house in HOUSES:
        records = [r for r in found["idle"] if r["queues"] == house.queues]
        assert {record["pace"] for record in records} == {AT_ONCE, EACH_SECOND}
        assert all(r["schedules"] == house.schedules for r in records)
        assert all(r["cpu_us"] > 0 < r["statements"] for r in records)


def test_a_house_has_schedules_in_each_queue_of_which_none_is_due(home: Path) -> None:
    system = rowq()
    with postgres.open_lab(None, home, postgres.SETTINGS | SETTINGS) as lab:
        lab.prepare(system)
        with lab.database(system) as url, PostgresSession(url) as session:
            build(House(2, 3), url, session)
            with psycopg.connect(url) as connection:
                rows = connection.execute(
                    "select q.queue_name, count(s.schedule_name) from rowq.queue q"
                    " left join rowq.schedule s on s.part_id = q.part_id"
                    " and s.next_run_at > now() and s.body is not null"
                    " group by q.queue_name order by q.queue_name"
                ).fetchall()
    assert rows == [("queue 0", 3), ("queue 1", 3)]


def test_the_other_queues_are_measured_or_left_out_with_the_reason(found: dict[str, Any]) -> None:
    page = render({"features": found})
    for other in found["others"]:
        names = [turn["name"] for turn in found["rounds"] if turn["name"] == other["name"]]
        if "absent" in other:
            assert not names
            assert f"{other['name']} is left out: {other['absent']}" in page
        else:
            assert min(costs(found, *_only(found, other["name"]))[TAKE].values()) > 0
    assert list(costs(found, "scheduler")) == [TAKE]


def _only(found: dict[str, Any], name: str) -> tuple[str, int]:
    (batch,) = {turn["batch"] for turn in found["rounds"] if turn["name"] == name}
    return name, batch


def test_a_result_is_more_log(found: dict[str, Any]) -> None:
    without, with_one = (
        costs(found, name)[TAKE]["wal_bytes"] for name in ("result_seconds", RESULT)
    )
    assert with_one > without + RESULT_BYTES / 2
    page = render({"features": found})
    assert "| **rowq, no result** |" in page
    assert "| **rowq, result** |" in page


def test_an_output_is_more_log(found: dict[str, Any]) -> None:
    if any("absent" in other for other in found["others"] if other["name"] == "pg-boss"):
        pytest.skip(f"pg-boss is not here; to run it: {FETCH}")
    plain, output = (
        costs(found, name)[TAKE] for name in (recurring.PG_BOSS_PLAIN, recurring.PG_BOSS_OUTPUT)
    )
    assert output["wal_bytes"] > plain["wal_bytes"] + 100


def test_a_queue_that_is_absent_is_left_out_visibly(found: dict[str, Any]) -> None:
    others = [other | {"absent": "it is not here"} for other in found["others"]]
    rounds = [t for t in found["rounds"] if t["name"] in {f.name for f in FEATURES}]
    page = render({"features": found | {"others": others, "rounds": rounds}})
    assert "**pg-boss is left out: it is not here.**" in page


def test_mariadb_is_measured_where_nothing_is_due(home: Path) -> None:
    try:
        find_programs()
    except Unavailable as error:
        pytest.skip(f"{error}; to run it: apt-get install mariadb-server-core")
    data = json.loads(json.dumps(run_idle(plan(home))))
    assert all(record["cpu_us"] > 0 < record["buffers"] for record in data["idle"])
    page = render({"features_mariadb": data})
    assert "| MariaDB | 2 | 3 | one a second |" in page
    assert list(verdicts(page)) == ["not measured"] * len(TARGET)


@pytest.mark.parametrize(("cpu_us", "verdict"), [(19_900.0, "met"), (20_100.0, "**not met**")])
def test_the_page_says_whether_the_target_is_met(
    committed: dict[str, dict[str, Any]], cpu_us: float, verdict: str
) -> None:
    given = {
        name: data | {"idle": [record | {"cpu_us": cpu_us} for record in data["idle"]]}
        for name, data in committed.items()
    }
    page = render(given)
    assert list(verdicts(page)) == [verdict] * len(TARGET) * len(given)
    assert ("has no index" in page) == (verdict != "met")


def test_the_committed_page_is_fresh_and_of_whole_runs(
    committed: dict[str, dict[str, Any]],
) -> None:
    assert (BENCHMARKS / "RESULTS-features.md").read_text("utf-8") == render(committed)
    for data in committed.values():
        assert "QUICK" not in data["command"]
        assert {record["queues"] * record["schedules"] for record in data["idle"]} >= {200_000}
    features = committed["features"]
    turns = [turn for turn in features["rounds"] if turn["name"] == PLAIN]
    assert len(turns) == features["settings"]["rounds"] * len(BATCHES)
