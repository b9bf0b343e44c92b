"""The script for SQL*Plus and SQLcl: whole units, each of which may be run again."""

import re

import pytest

from rowq import migrate
from rowq.migrate.engines import release_for
from rowq.migrate.frozen import created, drops
from rowq.migrate.oracle.look import shipped_routines
from rowq.migrate.oracle.sql import forgiven, units
from rowq.resources import sql_directory
from tests.static.plsql import gate, tools
from tests.static.plsql.gate import Script
from tests.static.required import need
from tests.static.test_plsql import REQUIRED

SCRIPT = migrate.script("oracle")
UNITS = list(units("\n".join(line for line in SCRIPT.splitlines() if not gate.is_client(line))))
COPIES = release_for("oracle").copies(1)


def test_a_unit_that_makes_something_may_be_run_again() -> None:
    assert [unit for unit in UNITS if unit.startswith("create ") and forgiven(unit)] == []
    wrapped = [unit for unit in UNITS if unit.startswith("begin\n    execute")]
    made = re.findall(r"^create (?:unique )?(?:table|sequence|index) (\w+)", SCRIPT, re.MULTILINE)
    assert len(wrapped) == len(made)
    assert all(unit.count("]'") == 1 for unit in wrapped)


def test_a_script_installs_and_remembers_everything() -> None:
    for relative, text in COPIES.items():
        for kind, name in created(text):
            assert re.search(rf"\bcreate (?:or replace )?{kind} {name}\b", SCRIPT), relative
    assert "merge into rowq_migration m\n" in SCRIPT
    assert SCRIPT.rstrip().endswith("commit\n/")


def test_a_script_stops_at_the_first_error_and_takes_no_word_for_a_variable() -> None:
    head = SCRIPT[: SCRIPT.index("declare")]
    assert "whenever sqlerror exit failure rollback\n" in head
    assert "set define off\n" in head


def test_the_unit_that_finds_compile_errors_comes_after_all_packages() -> None:
    bodies = [
        place for place, unit in enumerate(UNITS) if unit.startswith("create or replace pack")
    ]
    (check,) = (place for place, unit in enumerate(UNITS) if "from user_errors" in unit)
    assert max(bodies) < check


def test_a_rollback_drops_what_was_made_and_minds_nothing_that_is_gone() -> None:
    for text in COPIES.values():
        dropped = list(units(drops(text)))
        assert len(dropped) == len(list(created(text)))
        assert all(forgiven(unit) for unit in dropped)


def test_packages_are_compared_with_what_the_catalog_shows() -> None:
    shipped = shipped_routines(release_for("oracle"), 1)
    assert shipped.keys() == {
        f"{package} {kind}"
        for package in ("rowq", "rowq_produce", "rowq_consume", "rowq_look")
        for kind in ("package", "package body")
    }
    assert all(code.endswith(f"end {name.split()[0]};") for name, code in shipped.items())


@pytest.mark.parametrize("name", ["doorbell_off.sql", "maintain_job.sql"])
def test_a_rollback_to_nothing_removes_what_optional_scripts_have_made(name: str) -> None:
    """Word for word as they do it themselves: SQL*Plus has the one, the migrations the other."""
    text = (sql_directory() / "oracle" / name).read_text(encoding="utf-8")
    removals = re.findall(r"    select count.*?^    end if;\n", text, re.DOTALL | re.MULTILINE)
    assert removals
    assert all(one in release_for("oracle").text("remove.sql") for one in removals)


def scripts() -> list[Script]:
    """Return the units of the script, the packages apart, which are long; and of the rollback."""
    return [
        Script(str(place), f"{unit}\n/\n")
        for place, unit in enumerate([*UNITS, *units(release_for("oracle").text("remove.sql"))])
        if not unit.startswith("create or replace package")
    ]


@pytest.mark.timeout(900)
def test_the_script_is_accepted_by_the_grammar() -> None:
    need(tools.missing(), REQUIRED)
    assert not gate.check(scripts())
