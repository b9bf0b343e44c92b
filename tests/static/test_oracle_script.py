"""The script for SQL*Plus and SQLcl: whole units that can be rerun."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from rowq.contract import sql_directory
from rowq.tools import migrate
from rowq.tools.engines.oracle.script import SCRIPT as ORACLE
from rowq.tools.engines.oracle.script import forgiven, units
from rowq.tools.engines.oracle.status import shipped_routines
from rowq.tools.migrate.frozen import created, drops
from rowq.tools.migrate.release import read_release, release_for
from rowq.tools.migrate.sources import file_units, read, sources_of
from sql.generate.release import release
from tests.helpers.releases import SECOND, change_everything, copied_without_history
from tests.static.plsql.gate import Script, is_client
from tests.static.sources import ROOT, SQL

SCRIPT = migrate.script("oracle")
FILES = release_for("oracle").files(1)
OPTIONAL = "".join(
    (SQL / "oracle" / name).read_text("utf-8") for name in ("maintain_job.sql", "wakeup.sql")
)
CREATED = re.compile(
    r"\bcreate (?:or replace )?(?:unique )?(?:index|package|sequence|table|type)\s+(rowq_\w+)"
    r"|\bconstraint (rowq_\w+)|\bmake\('(rowq_\w+)'\)"
    r"|\bcreate_\w+\(\s*\w+ +=> '(ROWQ_\w+)'"
)
NAMING = (
    "migrations/oracle", "python_client/rowq", "sql/oracle", "tests/engine_only/oracle",
    "tests/engines/oracle",
)  # fmt: skip


def plain(script: str) -> list[str]:
    """Return the units of a script without SQL*Plus commands."""
    return list(units("\n".join(line for line in script.splitlines() if not is_client(line))))


UNITS = plain(SCRIPT)


def test_creating_unit_can_be_rerun() -> None:
    assert [unit for unit in UNITS if unit.startswith("create ") and forgiven(unit)] == []
    wrapped = [unit for unit in UNITS if unit.startswith("begin\n    execute")]
    made = re.findall(r"^create (?:unique )?(?:table|sequence|index) (\w+)", SCRIPT, re.MULTILINE)
    assert len(wrapped) == len(made)
    assert all(unit.count("]'") == 1 for unit in wrapped)


def test_script_installs_and_records_everything() -> None:
    for relative, text in FILES.items():
        for kind, name in created(text):
            assert re.search(rf"\bcreate (?:or replace )?{kind} {name}\b", SCRIPT), relative
    assert "merge into rowq_migration m\n" in SCRIPT
    assert SCRIPT.rstrip().endswith("commit\n/")


def test_script_stops_at_first_error_and_has_no_variables() -> None:
    head = SCRIPT[: SCRIPT.index("declare")]
    assert "whenever sqlerror exit failure rollback\n" in head
    assert "set define off\n" in head


def test_install_sql_exits_before_it_includes_a_file() -> None:
    lines = read(sql_directory() / "oracle" / "install.sql").splitlines()
    before = [line for line in lines if not line.startswith(("--", "@@"))]
    assert before[0].startswith("prompt Nothing was done: run the script")
    assert before[1:] == ["exit failure"]
    assert lines.index("exit failure") < min(map(lines.index, (x for x in lines if x[:2] == "@@")))


def test_compile_check_comes_after_all_packages() -> None:
    bodies = [
        place for place, unit in enumerate(UNITS) if unit.startswith("create or replace pack")
    ]
    (check,) = (place for place, unit in enumerate(UNITS) if "from user_errors" in unit)
    assert max(bodies) < check


def test_rollback_drops_every_object_that_exists() -> None:
    for text in FILES.values():
        dropped = list(units(drops(text)))
        assert len(dropped) == len(list(created(text)))
        assert all(forgiven(unit) for unit in dropped)


def test_shipped_packages_have_the_catalogs_form() -> None:
    shipped = shipped_routines(release_for("oracle").files(1))
    assert shipped.keys() == {
        f"{package} {kind}"
        for package in ("rowq", "rowq_wait", "rowq_produce", "rowq_consume", "rowq_look")
        for kind in ("package", "package body")
    }
    assert all(code.endswith(f"end {name.split()[0]};") for name, code in shipped.items())


@pytest.mark.parametrize("name", ["wakeup_off.sql", "maintain_job.sql"])
def test_rollback_to_0_removes_objects_of_optional_scripts(name: str) -> None:
    """remove.sql has the same text as the optional scripts."""
    text = (sql_directory() / "oracle" / name).read_text(encoding="utf-8")
    removals = re.findall(r"    select count.*?^    end if;\n", text, re.DOTALL | re.MULTILINE)
    assert removals
    assert all(removal in release_for("oracle").text("remove.sql") for removal in removals)


def undone_units() -> list[str]:
    """Return the units of the script that undoes the installation."""
    texts = release_for("oracle")
    return [unit for part in ORACLE.undone(texts, texts.get(1)) for unit in units(part.text)]


def test_undo_script_checks_for_messages_before_drops() -> None:
    undone = undone_units()
    refusal = next(place for place, unit in enumerate(undone) if "RQ805" in unit)
    drops_at = [
        place for place, unit in enumerate(undone) if re.search(r"^ *drop ", unit, re.MULTILINE)
    ]
    assert refusal < min(drops_at)
    assert len(drops_at) >= sum(len(list(created(text))) for text in FILES.values())
    assert all(
        unit.startswith("begin")
        for unit in undone
        if re.search(r"\bdrop (table|type) rowq_q", unit)
    )


def scripts() -> list[Script]:
    """Return the units of the script, without the long packages, and of the undo script."""
    return [
        Script(str(place), f"{unit}\n/\n")
        for place, unit in enumerate(dict.fromkeys([*UNITS, *undone_units()]))
        if not unit.startswith("create or replace package")
    ]


def scripts_of_releases() -> list[Script]:
    """Return the units of two releases, and the subprograms that the second one changes."""
    with TemporaryDirectory() as folder:
        migrations = copied_without_history(Path(folder), "oracle")
        release(migrations)
        change_everything(migrations)
        release(migrations)
        texts = read_release(migrations)
        sources = sources_of(migrations)
        family = "internal/text.sql"
        changed = {
            "routines/version.sql": read(sources / "routines" / "version.sql"),
            SECOND: file_units(family, read(sources / family))[SECOND],
        }
        return [
            *(
                Script(f"release {number}, {place}", f"{unit}\n/\n")
                for number in (1, 2)
                for place, unit in enumerate(plain(texts.script(number)))
                if not unit.startswith("create or replace package")
            ),
            *(Script(name, text) for name, text in changed.items()),
        ]


def test_two_releases_have_two_scripts() -> None:
    asked = scripts_of_releases()
    assert any("'ROWQ_QUEUE'" in script.text for script in asked)
    assert any("ora-0002-second" in script.text for script in asked)


def test_rights_queries_exclude_accounts() -> None:
    texts = [path.read_text("utf-8") for path in (sql_directory() / "oracle").rglob("*.sql")]
    queries = [part for text in texts for part in text.split("user_tab_privs_made")[1:]]
    assert queries
    assert all(
        re.search(r"\.type (?:<> 'USER'|in \()", query.partition(";")[0]) for query in queries
    )


def test_upper_case_name_is_created_by_a_script() -> None:
    names = {"".join(name).upper() for name in CREATED.findall(SCRIPT + OPTIONAL)}
    unknown = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in NAMING
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".in", ".py", ".sql"}
        for name in re.findall(r"'(ROWQ_\w+)'", path.read_text("utf-8"))
        if name not in names
    ]
    assert unknown == []
