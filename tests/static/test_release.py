"""make release releases everything or nothing, and make next begins the next version."""

import re
from datetime import date
from pathlib import Path

import pytest

from rowq.tools.migrate.frozen import is_released, migration_files, number_of
from rowq.tools.migrate.release import read_release
from sql.generate.begin import begin
from sql.generate.dist import require_release
from sql.generate.files import stale_files
from sql.generate.release import SUMS, faults_of_build, faults_of_released, is_claimed, release_all
from sql.generate.version import (
    UNRELEASED,
    dated,
    faults_of_changelog,
    faults_of_version,
    released_versions,
    version_of,
    write_version,
)
from tests.helpers.releases import begin_next, change_sources, checkout_without_history, commit, git
from tests.static.sources import ROOT

ENGINES = ["mysql", "postgres"]
"""Two engines are enough here; tests/release covers all."""
DAY = date(2026, 12, 24)
NEW = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A queue.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without a release."""
    return checkout_without_history(tmp_path, ENGINES)


def release_of(root: Path) -> None:
    """Release a checkout without checking its generated files."""
    release_all(root, DAY, stale=list)


def refusal_of(root: Path) -> list[str]:
    """Return the reasons why a checkout is not released, and assert that it is unchanged."""
    before = git(root, "status", "--porcelain")
    with pytest.raises(SystemExit) as refused:
        release_of(root)
    assert git(root, "status", "--porcelain") == before
    head, *reasons = str(refused.value).splitlines()
    assert head == "Nothing was released:"
    return reasons


def reasons_against_building(root: Path) -> list[str]:
    """Return the reasons why a checkout is not built."""
    with pytest.raises(SystemExit) as refused:
        require_release(root)
    head, *reasons = str(refused.value).splitlines()
    assert head == "Nothing was built:"
    return reasons


def test_version_is_the_same_everywhere() -> None:
    assert faults_of_version(ROOT) == []


def test_release_dates_changelog_and_freezes_every_engine(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = version_of(checkout)
    assert not is_claimed(checkout)
    release_of(checkout)
    assert is_claimed(checkout)
    said = capsys.readouterr().out
    assert f"CHANGELOG.md: {version} - 2026-12-24" in said
    for engine in ENGINES:
        migrations = checkout / "migrations" / engine
        newest = migration_files(migrations)[-1]
        assert is_released(newest)
        assert (migrations / SUMS).exists()
        assert faults_of_released(migrations) == []
        assert f"{engine}: {newest.stem}.sql" in said
    changelog = (checkout / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = f"## [Unreleased]\n\n## [{version}] - 2026-12-24\n\n### Added\n\n- A queue.\n"
    assert changelog == f"# Changelog\n\n{heading}"

    (reason,) = faults_of_build(checkout)
    assert reason.startswith("the tree is not clean")
    commit(checkout)
    assert faults_of_build(checkout) == []
    (reason,) = refusal_of(checkout)
    assert reason == (
        f"CHANGELOG.md has {version} as released on 2026-12-24;"
        " begin the next version with make next"
    )


def test_refused_release_lists_all_reasons_and_changes_nothing(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(NEW.replace("- A queue.\n", ""), encoding="utf-8")
    package = checkout / "python_client" / "rowq" / "__init__.py"
    version = version_of(checkout)
    package.write_text(package.read_text("utf-8").replace(version, "7.0.0"), encoding="utf-8")
    begin_next(checkout / "migrations" / "mysql", "too-early", version)
    reasons = "\n".join(refusal_of(checkout))
    assert "the tree is not clean; commit first: CHANGELOG.md, python_client/rowq/" in reasons
    assert (
        f"python_client/rowq/__init__.py has version 7.0.0, pyproject.toml has {version}" in reasons
    )
    assert f"no entry below ## [Unreleased]; describe {version} there" in reasons
    assert "mysql: my-0001-first-release.py must be released before my-0002-too-early.py" in reasons
    with pytest.raises(SystemExit, match=r"sql/CONTRACT\.md is not current; run make generate"):
        release_all(checkout, DAY, stale=lambda: ["sql/CONTRACT.md"])


def test_release_refuses_a_changed_released_file(checkout: Path) -> None:
    release_of(checkout)
    commit(checkout)
    begin(checkout, "7.0.0", "more")
    changelog = checkout / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(
        text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n"), encoding="utf-8"
    )
    script = checkout / "migrations" / "postgres" / "scripts" / "pg-0001-first-release.sql"
    script.write_text(script.read_text("utf-8") + "\n", encoding="utf-8")
    commit(checkout)
    assert refusal_of(checkout) == [
        "postgres: scripts/pg-0001-first-release.sql is released and has changed"
    ]
    script.write_text(script.read_text("utf-8")[:-1], encoding="utf-8")
    commit(checkout)
    release_of(checkout)
    commit(checkout)
    assert faults_of_build(checkout) == []
    assert list(released_versions(changelog.read_text("utf-8"))) == ["7.0.0", "0.1.0"]


def test_build_refuses_a_checkout_that_is_not_its_release(checkout: Path) -> None:
    version = version_of(checkout)
    require_release(checkout)
    git(checkout, "tag", f"v{version}")
    assert reasons_against_building(checkout) == [
        f"CHANGELOG.md has no dated section of {version}",
        "mysql: my-0001-first-release.py is not frozen",
        "postgres: pg-0001-first-release.py is not frozen",
    ]
    tagged = git(checkout, "rev-parse", "HEAD")[:12]
    release_of(checkout)
    commit(checkout)
    head = git(checkout, "rev-parse", "HEAD")[:12]
    assert reasons_against_building(checkout) == [
        f"v{version} is the commit {tagged}, and this is {head}: git checkout v{version}, or make"
        " next"
    ]
    git(checkout, "tag", "--force", f"v{version}")
    require_release(checkout)

    change_sources(checkout / "migrations" / "mysql")
    changelog = checkout / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(f"{text}\n## [9.0.0] - 2026-12-25\n\n- More.\n", encoding="utf-8")
    commit(checkout)
    later, changed, moved = reasons_against_building(checkout)
    assert later == f"CHANGELOG.md has 9.0.0, which is higher than {version}"
    assert changed.startswith("mysql: my-0001-first-release.py is released and never changes")
    assert moved.startswith(f"v{version} is the commit {head}")


def test_build_refuses_different_versions(checkout: Path) -> None:
    version = version_of(checkout)
    package = checkout / "python_client" / "rowq" / "__init__.py"
    package.write_text(package.read_text("utf-8").replace(version, "7.0.0"), encoding="utf-8")
    assert reasons_against_building(checkout) == [
        f"python_client/rowq/__init__.py has version 7.0.0, pyproject.toml has {version}"
    ]


def test_next_version_begins_after_release(checkout: Path) -> None:
    version = version_of(checkout)
    with pytest.raises(SystemExit, match=f"{re.escape(version)} is not released"):
        begin(checkout, "7.0.0", "more-settings")
    release_of(checkout)
    commit(checkout)
    for wrong in (("7.0", "more"), ("7.0.0", "More"), ("7.0.0", "more_settings")):
        with pytest.raises(SystemExit, match="usage: make next"):
            begin(checkout, *wrong)
    with pytest.raises(SystemExit, match="must be higher than"):
        begin(checkout, version, "more-settings")
    assert git(checkout, "status", "--porcelain") == ""

    *written, of_django = begin(checkout, "7.0.0", "more-settings")
    assert [path.parent.name for path in written] == ENGINES
    assert version_of(checkout) == "7.0.0"
    assert faults_of_version(checkout) == []
    for path in written:
        numbered = read_release(path.parent).get(number_of(path))
        assert (numbered.rowq_version, numbered.number) == ("7.0.0", 2)
        assert numbered.id.endswith("-0002-more-settings")
    assert of_django.name == "0002_more_settings.py"
    text = of_django.read_text(encoding="utf-8")
    assert '(("rowq", "0001_first_release"),)' in text
    assert "RunRowqMigration(2)" in text
    with pytest.raises(SystemExit, match=r"7\.0\.0 is not released"):
        begin(checkout, "8.0.0", "more")


def test_version_without_database_change_has_no_migration(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release_of(checkout)
    commit(checkout)
    assert begin(checkout, "7.0.0") == []
    changelog = checkout / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(
        text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- A fix.\n"), encoding="utf-8"
    )
    commit(checkout)
    capsys.readouterr()
    change_sources(checkout / "migrations" / "mysql")
    commit(checkout)
    (reason,) = refusal_of(checkout)
    assert reason.startswith("mysql: my-0001-first-release.py is released and never changes;")
    git(checkout, "reset", "--quiet", "--hard", "HEAD~1")
    release_of(checkout)
    assert capsys.readouterr().out.count("nothing new to release") == len(ENGINES)


def test_changelog_gets_each_section_once_and_in_order() -> None:
    assert faults_of_changelog(NEW, "0.1.0") == []
    text = dated(NEW, "0.1.0", DAY)
    assert released_versions(text) == {"0.1.0": "2026-12-24"}
    assert "has 0.1.0 as released on 2026-12-24" in faults_of_changelog(text, "0.1.0")[0]
    assert "no entry below ## [Unreleased]" in faults_of_changelog(text, "0.2.0")[0]
    assert "has 0.1.0, which is higher than 0.0.9" in faults_of_changelog(text, "0.0.9")[0]
    assert "no entry below ## [Unreleased]" in faults_of_changelog("# Changelog\n", "0.1.0")[0]
    more = text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n")
    assert list(released_versions(dated(more, "0.10.0", DAY))) == ["0.10.0", "0.1.0"]
    assert (
        "has 0.10.0, which is higher than 0.9.0"
        in faults_of_changelog(dated(more, "0.10.0", DAY), "0.9.0")[0]
    )


def test_django_has_a_migration_for_each_of_rowqs() -> None:
    folder = ROOT / "python_client" / "rowq" / "contrib" / "django" / "migrations"
    own = migration_files(ROOT / "migrations" / "postgres")
    names = [path.stem.partition("-")[2].replace("-", "_") for path in own]
    assert sorted(path.stem for path in folder.glob("[0-9]*.py")) == names


def test_changelog_is_released_or_can_be() -> None:
    """A new version may have no entry yet; make release requires one."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version = version_of(ROOT)
    told = text.replace(f"\n{UNRELEASED}\n", f"\n{UNRELEASED}\n\n- A line.\n", 1)
    assert version in released_versions(text) or faults_of_changelog(told, version) == []


def test_write_version_writes_every_place(checkout: Path) -> None:
    write_version(checkout, "7.8.9")
    assert version_of(checkout) == "7.8.9"
    assert len(faults_of_version(checkout)) == len(ENGINES)
    write_version(checkout, "7.8")
    assert faults_of_version(checkout) == [
        "pyproject.toml: expected a version such as 0.1.0, got 7.8"
    ]


def test_release_checks_generated_files() -> None:
    assert release_all.__defaults__ is not None
    assert stale_files in release_all.__defaults__
