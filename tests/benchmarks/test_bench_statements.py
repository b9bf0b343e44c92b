"""The counts of what a call runs: by traces where the engine runs, by the SQL's text elsewhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.results import read_results
from benchmarks.studies.statements import path
from benchmarks.studies.statements.command import BY_TEXT, text_counts
from benchmarks.studies.statements.count import Count, counted, usual
from benchmarks.studies.statements.course import CALLS, CountPlan, run_counts
from benchmarks.studies.statements.report import SOURCES, render
from tests.benchmarks.runs import BENCHMARKS
from tests.engines.base import Unavailable
from tests.engines.mysql.local import find_programs
from tests.static.sources import ROOT

RESULTS = BENCHMARKS / "results"

TSQL = """
create or alter procedure rowq.Begun
    @size int
as
begin
    -- begin; if
    if @size > 0
        and exists (select 1 from rowq.part p where p.note = N'; return')
    begin
        begin transaction;
        exec rowq.Inner @size;
        exec rowq.Inner @size;
    end;
    else if @size is null
        exec rowq.Inner @size;
    else
        delete from rowq.ready;
    begin try
        set @size = next value for rowq.claim_seq;
    end try
    begin catch
        throw;
    end catch;
end
go
"""
TSQL_INNER = """
create or alter procedure rowq.Inner
    @size int
as
begin
    with head as (select 1 as a)
    delete from head;
    if @size > 0
        return;
    select 1;
end
go
"""
PLSQL = """
procedure begun(p_size in number)
is
    cursor head(p_lane in number) is
        select r.seq from rowq_ready r; -- ; end if
    v_inner number := internal_inner(p_size);
begin
    savepoint rowq_call;
    for i in 1 .. 3 loop
        if p_size is null then
            v_inner := 1;
        elsif p_size > 0 then
            v_inner := internal_inner(p_size);
        else
            delete from rowq_ready;
        end if;
    end loop;
    open head(1);
    fetch head into v_inner;
    forall i in 1 .. v_rows.count
        insert into rowq_ready (seq) values (v_rows(i));
    begin
        v_inner := rowq_claim_seq.nextval;
    exception
        when no_data_found then
            if p_size > 0 then
                delete from rowq_ready;
            end if;
        when others then
            raise;
    end;
    open p_rows for select 1 from dual;
end begun;
"""
PLSQL_INNER = """
function internal_inner(p_size in number)
return number
is
begin
    update rowq_lane set floor_seq = 1;
    return 1;
    delete from rowq_lane;
end internal_inner;
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an engine's private routines, in place of the product's."""
    monkeypatch.setattr(path, "_SQL", tmp_path)
    made = tmp_path / "made" / "internal"
    made.mkdir(parents=True)
    return made


def walk(
    kind: type[path.Walk], folder: Path, texts: list[str], conditions: dict[str, bool], name: str
) -> Count:
    """Walk through a routine of these texts, and count."""
    for number, text in enumerate(texts):
        (folder / f"{number}.sql").write_text(text, "utf-8")
    walked = kind("made", path.Assumed(conditions, frozenset(), set()))
    walked.routine(name)
    return counted(walked.ran, walked.calls)


def trace(engine: str, home: Path) -> dict[str, dict[str, Any]]:
    """Count on a private server; return the calls by their names."""
    plan = CountPlan(engine, None, home, home, "", "", passes=9, waiting=200)
    found = json.loads(json.dumps(run_counts(plan)))
    assert [call["call"] for call in found["calls"]] == list(CALLS)
    return {call["call"]: call for call in found["calls"]}


def test_kinds_are_counted_once_and_a_cursor_or_assignment_is_no_statement() -> None:
    ran = [
        ((1,), "select 1"),
        ((1,), "select 1"),
        ((2,), " with a as (select 1) delete from b"),
        ((3,), "SET transaction isolation level read committed"),
        ((4,), "set v_x = 1"),
        ((5,), "call rowq.internal_x()"),
    ]
    assert counted(ran, 1, 7) == Count(3, 2, 1, 1, 7)


def test_a_figure_is_the_median_of_the_calls_and_none_where_it_was_not_measured() -> None:
    counts = [Count(number, 2, None, 0, number * 10) for number in (3, 1, 9, 4)]
    assert list(usual(counts).values()) == [3, 2, None, 0, 30]


def test_the_way_through_t_sql_is_that_of_the_conditions(folder: Path) -> None:
    texts = [TSQL, TSQL_INNER]
    condition = "@size > 0 and exists (select 1 from rowq.part p where p.note = N'; return')"
    taken = {condition: True, "@size > 0": True}
    assert walk(path.Tsql, folder, texts, taken, "Begun") == Count(4, 3, 2, 1, None)
    other = {condition: False, "@size is null": False}
    assert walk(path.Tsql, folder, texts, other, "Begun") == Count(3, 3, 0, 0, None)


def test_the_way_through_pl_sql_is_that_of_the_conditions(folder: Path) -> None:
    taken = {"p_size is null": False, "p_size > 0": True, "i in 1 .. v_rows.count": False}
    found = walk(path.Plsql, folder, [PLSQL, PLSQL_INNER], taken, "begun")
    assert found == Count(5, 4, 2, 1, None)
    found = walk(
        path.Plsql,
        folder,
        [PLSQL, PLSQL_INNER],
        taken | {"begun: p_size > 0": False, "i in 1 .. v_rows.count": True},
        "begun",
    )
    assert found == Count(6, 6, 1, 1, None)


def test_a_condition_that_nobody_has_judged_is_an_error(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"Begun: .* does not say whether this holds: @size"):
        walk(path.Tsql, folder, [TSQL, TSQL_INNER], {}, "Begun")


@pytest.mark.parametrize("engine", BY_TEXT)
def test_the_text_of_todays_sql_is_counted_without_a_server(engine: str) -> None:
    calls = {call["call"]: call for call in text_counts(engine, ROOT, "", "")["calls"]}
    assert list(calls) == list(CALLS)
    for call in calls.values():
        assert 3 <= call["kinds"] <= call["statements"]
        assert call["reads"] is None


def test_what_path_toml_judges_in_vain_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path.Tsql, "routine", lambda *_: None)
    with pytest.raises(ValueError, match="judges what no call comes to"):
        path.count_text("sqlserver")


def test_nested_statements_of_postgresql_are_counted(home: Path) -> None:
    calls = trace("postgres", home)
    # Queue, message, ready.
    assert (calls["enqueue"]["statements"], calls["enqueue"]["calls"]) == (3, 0)
    dequeue = calls["dequeue_fast(50)"]
    # internal_pop_ready is called; whatever the batch, its statements are as many.
    assert dequeue["calls"] == 1
    assert dequeue["kinds"] == dequeue["statements"] == calls["dequeue_fast(10)"]["statements"]
    assert dequeue["reads"] > calls["dequeue_fast(1)"]["reads"] > 5


def test_nested_statements_of_mariadb_are_counted(tmp_path: Path) -> None:
    try:
        find_programs()
    except Unavailable as error:
        pytest.skip(f"{error}; to run it: apt-get install mariadb-server-core")
    calls = trace("mariadb", tmp_path)
    many, few = calls["dequeue_fast(50)"], calls["dequeue_fast(10)"]
    # A cursor takes a batch apart, and each row is deleted by its key.
    assert many["statements"] - few["statements"] == 40
    assert many["kinds"] == few["kinds"]
    # set transaction, start transaction, commit
    assert {call["transaction"] for call in calls.values()} == {3}
    assert many["reads"] > few["reads"] > 0


def test_engines_that_are_not_at_hand_are_said_to_be_counted_by_their_text() -> None:
    found = {name: read_results(RESULTS / f"{name}.json") for name in SOURCES}
    page = render(found)
    assert page == (BENCHMARKS / "README.md").read_text("utf-8")
    for engine in BY_TEXT:
        data = found[f"statements_{engine}"]
        assert data["source"] == "text"
        assert all(call["reads"] is None for call in data["calls"])
    assert page.count("**counted in the text of the SQL, not run on the engine**") == 2
    rows = [line for line in page.splitlines() if "(text) |" in line]
    assert len(rows) == len(BY_TEXT) * len(CALLS)
    assert all(line.endswith("| not measured |") for line in rows)


def test_the_command_writes_results_and_table(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.run", "--set", "statements"]
    command += ["--engine", "oracle", "--to", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert read_results(tmp_path / "results" / "statements_oracle.json")["engine"] == "oracle"
    assert "| `enqueue` | Oracle (text) |" in (tmp_path / "README.md").read_text("utf-8")
