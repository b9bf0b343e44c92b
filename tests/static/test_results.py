"""The result files are small, and the page is generated from them."""

import json
from pathlib import Path

import pytest

from benchmarks.harness.results import read_results, write_results
from benchmarks.studies.page import PAGE, ROOT, write

RESULTS = ROOT / "results"
STORED = sorted(RESULTS.glob("*.json"))
MOST_LINES = 410


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_result_file_has_one_record_per_line(path: Path, tmp_path: Path) -> None:
    write_results(tmp_path / path.name, read_results(path))
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_results_round_trip_with_one_record_per_line(tmp_path: Path) -> None:
    runs = [{"round": 0, "figures": {"samples": [[1, 0.1], [2, 1e-07]]}}, {"round": 1}]
    courses = [{"title": "µs", "actions": [{"name": "one"}, {"name": "two"}]}, {"actions": []}]
    data = {"note": 'a "note"', "host": {"cores": 2}, "runs": runs, "courses": courses, "none": []}
    path = tmp_path / "made" / "found.json"
    write_results(path, data)
    assert json.loads(path.read_bytes()) == read_results(path) == data
    assert path.read_text("utf-8").splitlines() == [
        "{",
        ' "note": "a \\"note\\"",',
        ' "host": {"cores": 2},',
        ' "runs": [',
        '  {"round": 0, "figures": {"samples": [[1, 0.1], [2, 1e-07]]}},',
        '  {"round": 1}',
        " ],",
        ' "courses": [',
        "  {",
        '   "title": "\\u00b5s",',
        '   "actions": [',
        '    {"name": "one"},',
        '    {"name": "two"}',
        "   ]",
        "  },",
        '  {"actions": []}',
        " ],",
        ' "none": []',
        "}",
    ]


def test_page_is_current_and_short(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for path in STORED:
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    write(tmp_path)
    page = (tmp_path / PAGE).read_text("utf-8")
    assert page == (ROOT / PAGE).read_text("utf-8"), "run: make generate"
    assert len(page.splitlines()) <= MOST_LINES


def test_page_has_every_stored_run() -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    for path in STORED:
        found = read_results(path)
        assert f"`{found['command']}`" in page, path.name
        assert "QUICK" not in found["command"]
        assert "--only" not in found["command"]
    assert "not measured" not in page
    assert sorted(RESULTS.iterdir()) == STORED
