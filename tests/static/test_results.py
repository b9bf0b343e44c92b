"""The files of results are small, and the reports and plots are the ones that they give."""

import json
import re
from pathlib import Path

import pytest

from benchmarks.harness.results import read_results, write_results
from benchmarks.studies.pages import PAGES, Page

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RESULTS = BENCHMARKS / "results"
STORED = sorted(RESULTS.glob("*.json"))
PLOTS = sorted(RESULTS.glob("*.svg"))
ROOM_OF_A_PLOT = 80_000


def shown(page: Page) -> list[str]:
    """Return the pictures that the committed report shows."""
    text = (BENCHMARKS / page.file).read_text("utf-8")
    return re.findall(r"!\[[^\]]+\]\(results/([^)]+)\)", text)


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_file_of_results_has_a_record_on_each_line(path: Path, tmp_path: Path) -> None:
    write_results(tmp_path / path.name, read_results(path))
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_results_are_written_a_record_a_line_and_read_as_they_were(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_writing_a_report_and_its_plots_again_changes_nothing(page: Page, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for path in STORED:
        (tmp_path / "results" / path.name).write_bytes(path.read_bytes())
    page.write(tmp_path)
    assert (tmp_path / page.file).read_bytes() == (BENCHMARKS / page.file).read_bytes()
    drawn = sorted((tmp_path / "results").glob("*.svg"))
    assert sorted(shown(page)) == [path.name for path in drawn]
    for path in drawn:
        assert path.read_bytes() == (RESULTS / path.name).read_bytes(), "run: make generate"


def test_there_are_results_and_the_plots_that_a_report_shows_and_nothing_else() -> None:
    pictures = sorted(name for page in PAGES for name in shown(page))
    assert pictures == [path.name for path in PLOTS]
    assert sorted(RESULTS.iterdir()) == sorted([*STORED, *PLOTS])
    assert {path.stem for path in STORED} <= {name for page in PAGES for name in page.sources}


@pytest.mark.parametrize("path", PLOTS, ids=lambda path: path.stem)
def test_a_plot_is_small_and_its_words_are_text(path: Path) -> None:
    assert path.stat().st_size < ROOM_OF_A_PLOT
    text = path.read_text("utf-8")
    (stored,) = re.findall(r"<!-- Generated from (\S+) by make generate", text)
    systems = {system["name"] for system in read_results(RESULTS / stored)["systems"]}
    words = re.findall(r">([^<>]+)</text>", text)
    assert "rowq" in systems & set(words)
    assert len(words) > 10
    assert "<image" not in text
