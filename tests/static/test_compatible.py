"""Incompatible changes of a version are found in the SQL text."""

from pathlib import Path

import pytest

from rowq.tools.migrate.frozen import migration_files
from rowq.tools.migrate.sources import sources, sources_of
from sql.generate.compatible import faults_of_next, signatures
from sql.generate.release import release
from tests.helpers.releases import (
    COLUMN,
    begin_next,
    change_everything,
    change_sources,
    copied_without_history,
    remove_unit,
)
from tests.static.each import for_each
from tests.static.sources import ENGINES, MIGRATIONS, SQL, Unit, code_units, name_on, object_name

OTHER_PARAMETERS = {
    "postgres": ("p_include_dead boolean default false", "p_include_dead boolean default true"),
    "mysql": ("p_include_dead boolean", "p_include_dead int"),
    "sqlserver": ("@include_dead bit = 0", "@include_dead bit = 1"),
    "oracle": ("p_include_dead in number default 0", "p_include_dead in number default 1"),
}
"""By engine, a parameter of purge_queue and an incompatible change of it."""


OF_UNITS = [engine for engine in ENGINES if engine != "oracle"]
"""The engines that replace single routines; on Oracle, an upgrade replaces whole packages."""
UNITS = [unit for unit in code_units() if unit.engine in OF_UNITS]


@pytest.fixture(params=ENGINES)
def migrations(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an engine's migrations, the first one released and the second one begun."""
    made = copied_without_history(tmp_path, str(request.param))
    release(made)
    begin_next(made, "more")
    return made


def edit(file: Path, old: str, new: str) -> None:
    """Replace all occurrences of a text in a file."""
    text = file.read_text(encoding="utf-8")
    assert old in text, f"{file} has no {old}"
    file.write_text(text.replace(old, new), encoding="utf-8")


def remove(migrations: Path, name: str) -> None:
    """Remove a unit from its file, or a file and its line in install.sql."""
    folder = sources_of(migrations)
    if not name.endswith(".sql"):
        remove_unit(folder, name)
        return
    (folder / name).unlink()
    install = folder / "install.sql"
    lines = install.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.rstrip().endswith(f"{name}")]
    assert len(kept) == len(lines) - 1
    install.write_text("".join(kept), encoding="utf-8")


@pytest.mark.parametrize("engine", ENGINES)
def test_next_version_is_compatible(engine: str) -> None:
    assert faults_of_next(MIGRATIONS / engine) == []


@for_each(UNITS)
def test_signature_is_found_in_every_unit(unit: Unit) -> None:
    assert object_name(unit) in signatures(unit.engine, unit.text)


def test_oracle_signatures_are_those_of_its_packages() -> None:
    declared = signatures("oracle", sources(SQL / "oracle")["packages/rowq.sql"])
    files = (SQL / "oracle" / "routines").glob("*.sql")
    assert {path.stem for path in files} <= declared.keys()
    assert declared["purge_queue"].startswith("( p_queue_name in varchar2,")
    assert "p_rows out sys_refcursor" in declared["enqueue"]


def test_version_may_change_texts_and_add_column_and_helper(tmp_path: Path) -> None:
    for engine in ENGINES:
        migrations = copied_without_history(tmp_path / engine, engine)
        release(migrations)
        assert faults_of_next(migrations) == []
        change_everything(migrations)
        assert faults_of_next(migrations) == []


def test_changed_parameters_are_incompatible(migrations: Path) -> None:
    old, new = OTHER_PARAMETERS[migrations.name]
    edit(sources_of(migrations) / "routines" / "purge_queue.sql", old, new)
    faults = faults_of_next(migrations)
    assert faults
    for fault in faults:
        assert "differs from" in fault
        assert "; keep it and add " in fault


@pytest.mark.parametrize("migrations", OF_UNITS, indirect=True)
def test_removed_routine_is_incompatible(migrations: Path) -> None:
    remove(migrations, "routines/peek.sql")
    (fault,) = faults_of_next(migrations)
    assert fault.startswith("routines/peek.sql of ")
    assert fault.endswith("is missing; a routine must stay")


@pytest.mark.parametrize("migrations", OF_UNITS, indirect=True)
def test_removed_helper_of_last_version_is_incompatible(migrations: Path) -> None:
    remove(migrations, "internal/push_delayed")
    (fault,) = faults_of_next(migrations)
    assert fault.startswith("internal/push_delayed is missing, but ")
    assert fault.endswith("may be running during an upgrade; keep it")


@pytest.mark.parametrize("migrations", OF_UNITS, indirect=True)
def test_removed_helper_of_old_version_is_incompatible(migrations: Path) -> None:
    """A database of the first release can get both upgrades while calls are running."""
    change_sources(migrations)
    helper = name_on(migrations.name, "internal_second")
    routine = sources_of(migrations) / "routines" / "peek.sql"
    without = routine.read_text(encoding="utf-8")
    # Any occurrence of the name counts as a call.
    routine.write_text(f"-- {helper}\n{without}", encoding="utf-8")
    calling = release(migrations)
    assert calling is not None
    begin_next(migrations, "calls-no-more")
    routine.write_text(without, encoding="utf-8")
    assert faults_of_next(migrations) == []
    release(migrations)
    begin_next(migrations, "drops")
    remove(migrations, "internal/second")
    (fault,) = faults_of_next(migrations)
    assert fault.startswith(f"internal/second is missing, but routines/peek.sql of {calling.stem}")


def test_changed_table_requires_a_statement(migrations: Path) -> None:
    table = sources_of(migrations) / "tables.sql"
    edit(table, "-- ", "-- (more to say) ")
    assert faults_of_next(migrations) == []
    edit(table, "created_at", "enqueued_at")
    (fault,) = faults_of_next(migrations)
    assert fault.startswith("tables/queue has changed, but ")
    assert "has no statement about" in fault
    migration_files(migrations)[-1].unlink()
    begin_next(migrations, "more", statement=COLUMN[migrations.name])
    assert faults_of_next(migrations) == []


def test_removed_table_requires_a_statement(migrations: Path) -> None:
    remove(migrations, "tables/limit_lock")
    (fault,) = faults_of_next(migrations)
    assert fault.startswith("tables/limit_lock has changed")
