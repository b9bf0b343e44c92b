"""Migrations hold what the sources say today, and released ones never change."""

import re
import shutil
from pathlib import Path

import pytest

from generate_frozen import (
    SUMS,
    ReleasedError,
    digest_of,
    expected_copies,
    files_of,
    freeze,
    install_order,
    newest_migration,
    number_of,
    release,
    released,
)
from rowq.migrate.engines import release_for
from rowq.migrate.frozen import ORDER, created, newest_copies, order, read
from tests.static.sources import ENGINES, MIGRATIONS, SQL


def changed_files(migrations: Path) -> list[str]:
    """Return the released files that are gone or no longer have the sum they were released with."""
    return [
        path
        for path, digest in released(migrations).items()
        if not (migrations / path).exists() or digest_of(migrations / path) != digest
    ]


@pytest.fixture
def copy(tmp_path: Path) -> tuple[Path, Path]:
    """Copies of PostgreSQL's sources and migrations, free to be changed."""
    shutil.copytree(SQL / "postgres", tmp_path / "sql")
    shutil.copytree(MIGRATIONS / "postgres", tmp_path / "migrations")
    return tmp_path / "sql", tmp_path / "migrations"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_newest_frozen_copy_of_every_source_is_equal_byte_by_byte(engine: str) -> None:
    copies = newest_copies(MIGRATIONS / engine, number_of(newest_migration(MIGRATIONS / engine)))
    sources = install_order(SQL / engine)
    assert sorted(copies) == sorted(sources), "run: make generate"
    for relative in sources:
        frozen = copies[relative].read_bytes()
        assert frozen == (SQL / engine / relative).read_bytes(), f"{relative}; run: make generate"


@pytest.mark.parametrize("engine", ENGINES)
def test_frozen_folders_hold_what_their_order_lists_and_nothing_else(engine: str) -> None:
    for folder in (MIGRATIONS / engine).glob("[0-9]*"):
        files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
        assert files == {*order(folder), ORDER}


@pytest.mark.parametrize("engine", ENGINES)
def test_the_newest_migration_installs_in_the_order_of_install_sql(engine: str) -> None:
    newest = newest_migration(MIGRATIONS / engine)
    wanted = expected_copies(SQL / engine, MIGRATIONS / engine)
    assert order(MIGRATIONS / engine / f"{number_of(newest):04d}") == list(wanted)


@pytest.mark.parametrize("engine", ENGINES)
def test_released_files_never_change(engine: str) -> None:
    assert not changed_files(MIGRATIONS / engine)


def test_all_engines_have_the_same_numbers_and_slugs() -> None:
    slugs = {
        engine: [
            path.stem.split("-", 1)[1] for path in sorted((MIGRATIONS / engine).glob("*-*.py"))
        ]
        for engine in ENGINES
    }
    assert len({tuple(each) for each in slugs.values()}) == 1, slugs


@pytest.mark.parametrize("engine", ENGINES)
def test_every_migration_is_one_transaction_and_names_its_version(engine: str) -> None:
    for numbered in release_for(engine).migrations:
        assert numbered.migration.use_transactions
        assert re.fullmatch(r"\d+\.\d+\.\d+", numbered.rowq_version)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rollback_knows_everything_that_a_frozen_copy_creates(engine: str) -> None:
    # An index goes with its table; partitions of SQL Server are in remove.sql.
    kept = ("schema", "database", "index", "role", "partition", "unique", "nonclustered")
    for path in newest_copies(MIGRATIONS / engine, 9999).values():
        lines = re.findall(r"^create (?:or replace |or alter )?(\w+)", read(path), re.MULTILINE)
        assert len(list(created(read(path)))) == len([kind for kind in lines if kind not in kept])


def test_a_released_file_that_changed_is_found(copy: tuple[Path, Path]) -> None:
    _, migrations = copy
    release(migrations)
    assert not changed_files(migrations)
    assert len(released(migrations)) == len(files_of(newest_migration(migrations)))

    victim = migrations / "0001" / "routines" / "enqueue.sql"
    victim.write_text(victim.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    (migrations / "0001" / "routines" / "peek.sql").unlink()
    assert changed_files(migrations) == ["0001/routines/enqueue.sql", "0001/routines/peek.sql"]


def test_a_source_that_changes_after_the_release_asks_for_a_new_migration(
    copy: tuple[Path, Path],
) -> None:
    sources, migrations = copy
    freeze(sources, migrations)
    release(migrations)
    sums = (migrations / SUMS).read_bytes()
    freeze(sources, migrations)

    source = sources / "routines" / "version.sql"
    source.write_text(source.read_text(encoding="utf-8") + "-- more\n", encoding="utf-8")
    with pytest.raises(ReleasedError, match=r"routines/version\.sql"):
        freeze(sources, migrations)

    shutil.copy(newest_migration(migrations), migrations / "pg-0002-more.py")
    freeze(sources, migrations)
    assert order(migrations / "0002") == ["routines/version.sql"]
    assert (migrations / SUMS).read_bytes() == sums
    assert not changed_files(migrations)
