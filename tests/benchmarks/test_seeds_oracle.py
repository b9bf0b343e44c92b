"""The seeds on Oracle: complete forms, statements sent, errors without a server, a whole run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import oracledb
import pytest
from oracledb.errors import _Error

from benchmarks.engines.oracle.lab import NEEDS_A_URL
from benchmarks.engines.oracle.session import RETURNED, ROWS, _told, spelled
from benchmarks.harness.session import NAMED_VALUE, RetryError
from benchmarks.studies import command
from benchmarks.studies.seeds.all_seeds import SEEDS, seeds_engine, seeds_scenarios
from benchmarks.studies.seeds.report import PRODUCTS, render
from benchmarks.studies.seeds.sections import read_sections
from tests.engines.base import url_variable
from tests.static.sources import ROOT

SEEDS_FOLDER = ROOT / "benchmarks" / "studies" / "seeds"
ON_POSTGRES = sorted(SEEDS_FOLDER.glob("seed_*/postgres/*.sql"))
NOT_NEEDED = {"session"}
"""A section that only some engines need."""


def values_of(text: str) -> set[str]:
    """Return the names of the values that a section is given."""
    return set(NAMED_VALUE.findall(text)) - {ROWS, RETURNED}


@pytest.mark.parametrize(
    "path", ON_POSTGRES, ids=lambda path: f"{path.parent.parent.name} {path.stem}"
)
def test_a_form_has_the_sections_and_values_that_it_has_on_postgresql(path: Path) -> None:
    ours = read_sections(path)
    theirs = read_sections(path.parent.parent / "oracle" / path.name)
    assert theirs.keys() - NOT_NEEDED == ours.keys() - NOT_NEEDED
    for section in theirs.keys() - NOT_NEEDED - {"install"}:
        assert values_of(theirs[section]) == values_of(ours[section]), section


def test_rowq_is_called_as_on_the_other_engines() -> None:
    ours, theirs = (
        read_sections(SEEDS_FOLDER / "rowq" / f"{name}.sql") for name in ("mariadb", "oracle")
    )
    assert theirs.keys() == ours.keys()
    assert all(values_of(theirs[name]) == values_of(ours[name]) for name in ours)


@pytest.mark.parametrize(
    "path", ON_POSTGRES, ids=lambda path: f"{path.parent.parent.name} {path.stem}"
)
def test_what_returns_rows_on_postgresql_returns_them_here(path: Path) -> None:
    ours = read_sections(path)
    theirs = read_sections(path.parent.parent / "oracle" / path.name)
    for section in theirs.keys() & {"dequeue", "own", "find", "fetch", "lock_and_fetch", "hold"}:
        text = theirs[section]
        assert text.startswith("select") or f":{ROWS}" in text, section
    if "returning id" in ours.get("enqueue", ""):
        assert theirs["enqueue"].endswith(f"returning id into :{RETURNED}")


def test_every_system_of_a_scenario_has_a_form() -> None:
    forms = {form.name for form in seeds_engine("oracle").systems()}
    scenarios = seeds_scenarios("oracle")
    assert {scenario.kind for scenario in scenarios} == {
        kind for seed in SEEDS for kind in seed.kinds
    }
    assert all(set(scenario.systems) <= forms for scenario in scenarios)


def test_values_get_names_that_are_no_words_of_sql() -> None:
    text, names = spelled("select 1 from x where sid = :session and t > to_char(y, 'hh24:mi')", ())
    assert text == "select 1 from x where sid = :p_session and t > to_char(y, 'hh24:mi')"
    assert names == ["session"]


def test_a_list_is_as_many_values_as_it_has() -> None:
    text, names = spelled("delete from t where id in (:ids) and a = :a", (("ids", 3),))
    assert text == "delete from t where id in (:p_ids_0, :p_ids_1, :p_ids_2) and a = :p_a"
    assert names == ["ids", "a"]


def test_a_block_ends_with_a_semicolon_and_a_statement_does_not() -> None:
    assert spelled("begin\n    x(:rows);\nend", ())[0] == "begin\n    x(:p_rows);\nend;"
    assert spelled("declare\n    x number;\nbegin null;\nend", ())[0].endswith("\nend;")
    assert spelled("call x(1)", ())[0] == "call x(1)"


@pytest.mark.parametrize(
    ("text", "is_tried_again"),
    [
        ("ORA-00060: deadlock detected while waiting for resource", True),
        ("ORA-00054: resource busy and acquire with NOWAIT specified", True),
        ("ORA-30006: resource busy; acquire with WAIT timeout expired", True),
        ("ORA-08177: can't serialize access for this transaction", True),
        ("DPY-4024: call timeout of 1000 ms exceeded", True),
        ("DPY-4011: the database or network closed the connection", False),
        ("ORA-00942: table or view does not exist", False),
    ],
)
def test_what_another_session_has_caused_is_tried_again(text: str, is_tried_again: bool) -> None:
    kind, _, number = text.partition(":")[0].partition("-")
    code = int(number) if kind == "ORA" else 0
    found = _told(oracledb.DatabaseError(_Error(text, code=code)))
    assert isinstance(found, RuntimeError)
    assert isinstance(found, RetryError) == is_tried_again
    assert text in str(found)


def test_there_is_no_private_server(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="where a URL is given") as error,
        seeds_engine("oracle").open_lab(None, tmp_path),
    ):
        pass
    assert str(error.value) == NEEDS_A_URL


def test_who_measures_another_engine_needs_no_driver_of_oracle() -> None:
    code = (
        "import sys; sys.modules['oracledb'] = None\n"
        "from benchmarks.studies import command\n"
        "from rowq import errors\n"
        "from benchmarks.studies.seeds import all_seeds, report\n"
        "from benchmarks.studies.seeds.dialects import DIALECTS\n"
        "assert all_seeds.seeds_engine('oracle').systems()\n"
        "url = 'oracle://a:b@localhost/c'\n"
        "lab = all_seeds.seeds_engine('oracle').open_lab(url, None)\n"
        "for open_it in (lambda: DIALECTS['oracle'].open(url), lab.__enter__):\n"
        "    try:\n"
        "        open_it()\n"
        "    except errors.DriverMissing as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == 2 * "Oracle needs python-oracledb: pip install 'rowq[oracle]'\n"


def part(report: str, title: str) -> str:
    """Return what a report says of a scenario."""
    _, after = report.split(f"### {title}\n")
    return after.split("\n#")[0]


def test_a_report_shows_oracle_when_it_has_been_measured_and_is_the_same_when_not() -> None:
    stored = ROOT / "benchmarks" / "results" / "seeds_mariadb.json"
    data = json.loads(stored.read_text("utf-8"))
    without, shown = render({"mariadb": data}), render({"mariadb": data, "oracle": data})
    assert PRODUCTS["oracle"] not in without
    for scenario in data["scenarios"]:
        assert f"\n| {PRODUCTS['oracle']} | " in part(shown, scenario["title"])
    assert "[oracle](results/seeds_oracle.json)" in shown


@pytest.mark.timeout(3600)
def test_the_quick_size_of_all_experiments_runs_at_a_url(
    oracle_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words = ["--set", "seeds", "--engine", "oracle", "--quick", "--url", oracle_url]
    command.main([*words, "--to", str(tmp_path)])
    found = json.loads((tmp_path / "results" / "seeds_oracle.json").read_text("utf-8"))
    for scenario in seeds_scenarios("oracle", quick=True):
        measured = {run["system"] for run in found["runs"] if run["scenario"] == scenario.name}
        assert measured == set(scenario.systems), scenario.name
        report = (tmp_path / "RESULTS-seeds.md").read_text("utf-8")
        assert f"\n| {PRODUCTS['oracle']} | " in part(report, scenario.title)
    secret = os.environ[url_variable("oracle")].partition("@")[0]
    assert secret not in json.dumps(found)
