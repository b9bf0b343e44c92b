"""A release is one script per engine that contains the sources and never changes."""

import re
from pathlib import Path

import pytest

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.frozen import (
    GRANTS,
    Section,
    created,
    files_after,
    is_released,
    joined,
    migration_files,
    script_of,
    split,
)
from rowq.tools.migrate.release import read_release, recorded, release_for
from rowq.tools.migrate.sources import read, sources, sources_of
from sql.generate.release import (
    SUMS,
    ReleasedError,
    faults_of_released,
    read_sums,
    release,
    require_migration,
)
from tests.helpers.releases import (
    SECOND,
    begin_next,
    change_everything,
    change_sources,
    copied_without_history,
    remove_unit,
)
from tests.static.sources import ENGINES, MIGRATIONS, SQL

CHANGED = {
    "postgres": [SECOND, "routines/version.sql", "comments.sql"],
    "mysql": [SECOND, "routines/version.sql"],
    "sqlserver": [SECOND, "routines/version.sql", "comments.sql"],
    "oracle": ["statistics.sql", "packages/rowq_body.sql", "compiled.sql", "comments.sql"],
}
"""The files in a test's second release, besides the rights."""


@pytest.fixture(params=ENGINES)
def migrations(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an engine's unreleased migrations."""
    return copied_without_history(tmp_path, str(request.param))


@pytest.mark.parametrize("engine", ENGINES)
def test_newest_migration_yields_the_sources_byte_by_byte(engine: str) -> None:
    require_migration(MIGRATIONS / engine)
    newest = release_for(engine).newest
    assert files_after(MIGRATIONS / engine, newest) == sources(SQL / engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_released_files_never_change(engine: str) -> None:
    assert faults_of_released(MIGRATIONS / engine) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_released_migration_has_sums_of_both_files(engine: str) -> None:
    files = [path for path in migration_files(MIGRATIONS / engine) if is_released(path)]
    names = {name for path in files for name in (path.name, f"scripts/{script_of(path).name}")}
    assert read_sums(MIGRATIONS / engine).keys() == names


@pytest.mark.parametrize("engine", ENGINES)
def test_only_the_newest_migration_may_be_unreleased(engine: str) -> None:
    assert all(is_released(path) for path in migration_files(MIGRATIONS / engine)[:-1])


def test_engines_have_the_same_migration_names() -> None:
    slugs = {
        engine: [
            path.stem.split("-", 1)[1] for path in sorted((MIGRATIONS / engine).glob("*-*.py"))
        ]
        for engine in ENGINES
    }
    assert len({tuple(slug) for slug in slugs.values()}) == 1, slugs


@pytest.mark.parametrize("engine", ENGINES)
def test_migration_leaves_transactions_to_rowq_and_names_its_version(engine: str) -> None:
    for numbered in release_for(engine).migrations:
        # yoyo's savepoints would end with the DDL of MariaDB.
        assert not numbered.migration.use_transactions
        assert re.fullmatch(r"\d+\.\d+\.\d+", numbered.rowq_version)


@pytest.mark.parametrize("engine", ENGINES)
def test_rollback_knows_every_created_object(engine: str) -> None:
    # An index is dropped with its table; remove.sql drops SQL Server's partitions.
    kept = ("schema", "database", "index", "role", "partition", "unique", "nonclustered")
    for text in files_after(MIGRATIONS / engine, 9999).values():
        lines = re.findall(r"^create (?:or replace |or alter )?(\w+)", text, re.MULTILINE)
        assert len(list(created(text))) == len([kind for kind in lines if kind not in kept])


def test_script_yields_every_source_byte_by_byte(migrations: Path) -> None:
    release(migrations)
    newest = migration_files(migrations)[-1]
    assert is_released(newest)
    engine = engine_module(migrations.name, "script", TOOLS).SCRIPT
    held = {
        part.name: engine.source_form(part.text)
        for part in split(read(script_of(newest)))[1]
        if part.kind == "file"
    }
    folder = sources_of(migrations)
    today = sources(folder)
    assert list(held) == list(today)
    for name, text in today.items():
        file = folder / name
        wanted = file.read_bytes() if file.exists() else text.encode()
        assert held[name].encode() == wanted, name
    # Only two engines write files in another form for their clients.
    texts = [part.text for part in split(read(script_of(newest)))[1] if part.kind == "file"]
    is_other = texts != list(today.values())
    assert is_other == (migrations.name in ("mysql", "oracle"))


def test_released_script_is_the_printed_one(migrations: Path) -> None:
    before = read_release(migrations).script(1)
    script = release(migrations)
    assert script is not None
    assert read(script) == before == read_release(migrations).script(1)
    change_sources(migrations)
    assert read_release(migrations).script(1) == before


def test_migration_executes_the_texts_of_its_script(migrations: Path) -> None:
    release(migrations)
    change_everything(migrations)
    release(migrations)
    engine = engine_module(migrations.name, "script", TOOLS).SCRIPT
    for numbered in read_release(migrations).migrations:
        steps = recorded(numbered.migration)
        assert steps
        written = split(read(script_of(numbered.file)))[1]
        own = [part for part in written if part.kind in ("statement", "file", "gone")]
        assert own[-1].name == GRANTS
        assert [
            Section(step.kind, step.name, engine.client_form(step.text)) for step in steps
        ] == own[:-1]


def test_later_release_has_changed_files_and_its_statements(migrations: Path) -> None:
    first = release(migrations)
    assert first is not None
    was = first.read_bytes()
    change_everything(migrations)
    second = release(migrations)
    assert second is not None
    parts = split(read(second))[1]
    own = [(part.kind, part.name) for part in parts if part.kind not in ("before", "after")]
    files = [("file", name) for name in CHANGED[migrations.name]]
    assert own == [("statement", ""), *files, ("file", GRANTS)]
    assert files_after(migrations, 2) == sources(sources_of(migrations))
    assert faults_of_released(migrations) == []
    assert len(read_sums(migrations)) == 4
    assert first.read_bytes() == was


def test_removed_source_is_dropped(migrations: Path) -> None:
    release(migrations)
    change_everything(migrations)
    release(migrations)
    folder = sources_of(migrations)
    remove_unit(folder, SECOND)
    begin_next(migrations, "third")
    release(migrations)
    assert files_after(migrations, 3) == sources(folder)
    steps = recorded(read_release(migrations).get(3).migration)
    gone = [step for step in steps if step.kind == "gone"]
    if migrations.name == "oracle":
        # Oracle replaces the package.
        assert gone == []
    else:
        (part,) = gone
        (name,) = (name for _, name in created(files_after(migrations, 2)[SECOND]))
        assert re.fullmatch(rf"drop \w+ if exists rowq\.{name}(\(\))?;\n(go\n)?", part.text)


def test_changed_missing_or_added_released_file_is_found(migrations: Path) -> None:
    release(migrations)
    begin_next(migrations, "more")
    assert faults_of_released(migrations) == []
    first, more = migration_files(migrations)
    script = f"scripts/{script_of(first).name}"
    assert set(read_sums(migrations)) == {first.name, script}

    text = read(script_of(first))
    script_of(first).write_text(text + "\n", encoding="utf-8")
    assert faults_of_released(migrations) == [f"{script} is released and has changed"]
    script_of(first).unlink()
    first.rename(first.with_suffix(".txt"))
    assert faults_of_released(migrations) == [
        f"{first.name} is released but missing",
        f"{script} is released but missing",
    ]
    first.with_suffix(".txt").rename(first)
    script_of(first).write_text(text, encoding="utf-8", newline="\n")
    assert faults_of_released(migrations) == []

    short = first.stem.partition("-")[0]
    for name in (f"scripts/{short}-0001-again.sql", f"scripts/{script_of(more).name}"):
        (migrations / name).write_text("select 1;\n", encoding="utf-8")
        assert f"{name} has no sum in {SUMS}; it was never released" in faults_of_released(
            migrations
        )
        (migrations / name).unlink()
    again = migrations / f"{short}-0001-again.py"
    again.write_text(read(first), encoding="utf-8")
    assert faults_of_released(migrations) == [
        f"{again.name} has no sum in {SUMS}; it was never released"
    ]
    again.unlink()
    (migrations / SUMS).write_text("", encoding="utf-8")
    assert len(faults_of_released(migrations)) == 2


def test_source_change_after_release_requires_new_migration(migrations: Path) -> None:
    release(migrations)
    sums = (migrations / SUMS).read_bytes()
    assert release(migrations) is None
    require_migration(migrations)

    change_sources(migrations)
    # Every migration runs the files outside the folders, so they do not count.
    changed = next(name for name in CHANGED[migrations.name] if "/" in name)
    with pytest.raises(ReleasedError, match=rf"begin the next migration for .*{changed}"):
        require_migration(migrations)
    with pytest.raises(ReleasedError, match=changed):
        release(migrations)
    assert (migrations / SUMS).read_bytes() == sums

    begin_next(migrations, "more")
    require_migration(migrations)
    assert release(migrations) is not None
    assert faults_of_released(migrations) == []


def test_migration_is_released_after_its_predecessor(migrations: Path) -> None:
    begin_next(migrations, "more")
    with pytest.raises(ValueError, match=r"first-release\.py must be released before"):
        release(migrations)
    assert not (migrations / SUMS).exists()


@pytest.mark.parametrize("text", ["select 1;", "select 1;\n-- [file a.sql]\nselect 2;\n"])
def test_script_refuses_unreadable_sections(text: str) -> None:
    with pytest.raises(ValueError, match=r"file x\.sql cannot be a section of a script"):
        joined("-- head\n", [Section("file", "x.sql", text)])
