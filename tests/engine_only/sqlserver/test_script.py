"""The script for sqlcmd, tested without a server."""

import re

import pytest

from rowq.tools import migrate
from rowq.tools.engines.sqlserver.script import batches
from rowq.tools.engines.sqlserver.status import shipped_routines
from rowq.tools.migrate.frozen import GRANTS, created
from rowq.tools.migrate.release import release_for

MADE = re.compile(r"^create or alter (?:procedure|function) rowq\.(\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def script() -> str:
    return migrate.script("sqlserver")


def parts_of(script: str) -> list[str]:
    """Return the batches after the first, without the lines that name the script's parts."""
    plain = re.sub(r"^-- \[.*\]\n", "", script, flags=re.MULTILINE)
    return list(batches(plain.partition("\ngo\n")[2]))


def test_script_makes_sqlcmd_stop_at_first_error(script: str) -> None:
    assert script.startswith(":on error exit\n")
    commands = [line for line in script.splitlines() if line.startswith((":", "!!"))]
    assert commands == [":on error exit", ":setvar rowq_runs_in sqlcmd"]


def test_script_uses_sqlcmd_variables_for_the_mode_only(script: str) -> None:
    assert re.findall(r"\$\(\w*\)?", script) == ["$(rowq_runs_in)"]


def test_script_without_sqlcmd_mode_executes_nothing(script: str) -> None:
    first = parts_of(script)[0]
    assert "set noexec on" in first
    assert script.index("set noexec on") < script.index("begin transaction")


def test_script_is_one_transaction(script: str) -> None:
    parts = parts_of(script)
    begin = parts.index("begin transaction;")
    assert parts[-2].startswith("commit transaction;")
    assert parts[-1] == "set noexec off;"
    options = next(part for part in parts[:begin] if "xact_abort on" in part)
    for option in ("quoted_identifier", "ansi_nulls", "arithabort", "concat_null_yields_null"):
        assert option in options
    outside = re.compile(r"^\s*(begin|commit|rollback) transaction", re.MULTILINE)
    for part in parts[begin + 1 : -2]:
        if not MADE.search(part):
            assert not outside.search(part)


def test_script_has_every_routine_once_in_its_own_batch(script: str) -> None:
    found: list[str] = []
    for part in batches(script.partition("\ngo\n")[2]):
        if made := list(MADE.finditer(part)):
            assert len(made) == 1
            before = part[: made[0].start()].splitlines()
            assert not [line for line in before if line and not line.startswith("--")]
            found.append(made[0][1])
    release = release_for("sqlserver")
    assert sorted(found) == sorted(shipped_routines(release.files(release.newest)))
    assert found


def test_script_has_every_object_and_ends_with_rights(script: str) -> None:
    files = release_for("sqlserver").files(release_for("sqlserver").newest)
    for relative, text in files.items():
        for kind, name in created(text):
            assert re.search(rf"{kind} rowq\.{name}\b", script), relative
    rights = list(batches(files[GRANTS]))
    assert script.rindex(rights[-1]) > script.index("insert into rowq.migration_log")


def test_script_is_ascii(script: str) -> None:
    assert script.isascii()


def test_script_lines_are_short_enough_for_sqlcmd(script: str) -> None:
    assert max(map(len, script.splitlines())) <= 1000


def test_upgrade_script_names_its_start() -> None:
    with pytest.raises(migrate.UnknownMigration, match="RQ807"):
        migrate.script("sqlserver", 99)
