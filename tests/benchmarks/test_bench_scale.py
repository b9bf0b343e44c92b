"""The study of many queues and connections runs, and its pages say what its figures say."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.results import read_results
from benchmarks.studies.pages import PAPER, SCALE
from benchmarks.studies.scale import paper
from benchmarks.studies.scale.report import render
from benchmarks.studies.scale.run import ScalePlan, run_scale
from tests.benchmarks.runs import BENCHMARKS
from tests.engines.postgres.pgbouncer import PROGRAM, TO_RUN

FOUND = {
    source: read_results(BENCHMARKS / "results" / f"{source}.json") for source in paper.SOURCES
}


@pytest.mark.skipif(PROGRAM is None, reason=TO_RUN)
def test_every_size_and_both_ways_to_connect_are_measured(home: Path) -> None:
    plan = ScalePlan((10, 60), 5, 25, 2, home, home, "", "")
    data: dict[str, Any] = json.loads(json.dumps(run_scale(plan)))
    assert [size["queues"] for size in data["sizes"]] == [10, 60]
    for size in data["sizes"]:
        assert size["maintained_queues"] == size["queues"]
        assert all(size[key] > 0 for key in size)
    hot, direct, pooled = data["connections"]
    assert hot["queues"] == 1 < direct["queues"]
    assert direct["sessions"] == direct["clients"] == 25
    assert pooled["sessions"] <= data["settings"]["pool"] < pooled["clients"]
    assert direct["messages"] == pooled["messages"] == 50
    assert f"| dequeue, buffers | {data['sizes'][0]['dequeue_buffers']:g} |" in render(data)


def test_the_committed_pages_are_of_a_whole_run() -> None:
    for page in (SCALE, PAPER):
        found = {source: FOUND[source] for source in page.sources}
        assert (BENCHMARKS / page.file).read_text("utf-8") == page.render(found)
    data = FOUND["scale"]
    assert "QUICK" not in data["command"]
    assert data["sizes"][-1]["queues"] == 100_000
    assert data["connections"][-1]["clients"] == 1_000


def test_the_page_says_of_buffers_what_the_figures_do() -> None:
    few, *between, many = FOUND["scale"]["sizes"]
    more = many | {"dequeue_buffers": few["dequeue_buffers"] + 3}
    page = render(FOUND["scale"] | {"sizes": [few, *between, more]})
    assert "a dequeue of one of them reads 3 buffers more than with" in page


def test_a_node_is_reckoned_from_what_a_message_costs() -> None:
    cost = paper.Cost("a way", cpu_us=80.0, log_bytes=1000.0)
    assert cost.rate == paper.CORES * paper.BUSY * 1e6 / 80
    row = [cost.way, *(paper.nodes_text(cost, rate) for rate in (100_000, 100_001))]
    assert row[1:] == ["1 node, 8.6 TB of log a day", "2 nodes, 8.6 TB of log a day"]
    batch = paper.costs(FOUND)[1]
    assert f"| {batch.rate:,.0f} |" in paper.render(FOUND)
