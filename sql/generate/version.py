"""The version of rowq in the package, its metadata, the newest migration and CHANGELOG.md.

CHANGELOG.md has new entries below [Unreleased], and a dated section for each released version.
"""

import re
from datetime import date
from pathlib import Path

from rowq.tools.migrate.frozen import is_released, migration_files

MIGRATION = re.compile(r'^__rowq_version__ = "(.*)"$', re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+")

_PLACES = {
    "pyproject.toml": re.compile(r'^version = "(.*)"$', re.MULTILINE),
    "python_client/rowq/__init__.py": re.compile(r'^__version__ = "(.*)"$', re.MULTILINE),
}
"""By file, the line with the version."""

UNRELEASED = "## [Unreleased]"

_SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<day>\S+))?$", re.MULTILINE)
_ENTRY = re.compile(r"^- ", re.MULTILINE)


def version_of(root: Path) -> str:
    """Return the version in the package's metadata."""
    return _found(root / "pyproject.toml", _PLACES["pyproject.toml"])


def write_version(root: Path, version: str) -> None:
    """Write a version into the package and its metadata, not into migrations."""
    for name, pattern in _PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        found = pattern.search(text)
        assert found is not None
        text = f"{text[: found.start(1)]}{version}{text[found.end(1) :]}"
        (root / name).write_text(text, encoding="utf-8", newline="\n")


def engines_of(root: Path) -> list[Path]:
    """Return the folder of each engine's migrations."""
    return sorted(path for path in (root / "migrations").iterdir() if path.is_dir())


def faults_of_version(root: Path) -> list[str]:
    """Return the files whose version differs from the package's metadata, as texts.

    A released migration keeps its version: a version without a database change has no migration.
    """
    version = version_of(root)
    if not VERSION.fullmatch(version):
        return [f"pyproject.toml: expected a version such as 0.1.0, got {version}"]
    named = {name: _found(root / name, pattern) for name, pattern in _PLACES.items()}
    for migrations in engines_of(root):
        newest = migration_files(migrations)[-1]
        if not is_released(newest):
            named[newest.relative_to(root).as_posix()] = _found(newest, MIGRATION)
    return [
        f"{name} has version {found}, pyproject.toml has {version}"
        for name, found in named.items()
        if found != version
    ]


def _found(path: Path, pattern: re.Pattern[str]) -> str:
    match = pattern.search(path.read_text(encoding="utf-8"))
    return match[1] if match else "nothing"


def released_versions(text: str) -> dict[str, str]:
    """Return the changelog's dated versions and their dates."""
    sections = _SECTION.finditer(text)
    return {found["name"]: found["day"] or "" for found in sections if found["name"][0].isdigit()}


def numbers_of(version: str) -> tuple[int, ...]:
    """Return a version such as 0.1.0 as numbers for comparison."""
    return tuple(int(number) for number in version.split("."))


def faults_of_changelog(text: str, version: str) -> list[str]:
    """Return the reasons against a section for a version, as texts."""
    sections = released_versions(text)
    if version in sections:
        day = sections[version]
        return [
            f"CHANGELOG.md has {version} as released{f' on {day}' if day else ''};"
            " begin the next version with make next"
        ]
    if later := faults_of_order(text, version):
        return later
    if not _ENTRY.search(unreleased(text)):
        return [f"CHANGELOG.md has no entry below {UNRELEASED}; describe {version} there"]
    return []


def faults_of_order(text: str, version: str) -> list[str]:
    """Return a reason if a higher version is already released."""
    later = [name for name in released_versions(text) if numbers_of(name) > numbers_of(version)]
    return [f"CHANGELOG.md has {later[0]}, which is higher than {version}"] if later else []


def dated(text: str, version: str, day: date) -> str:
    """Return the changelog with the unreleased entries as the section of a version."""
    heading = f"{UNRELEASED}\n\n## [{version}] - {day.isoformat()}\n"
    return text.replace(f"{UNRELEASED}\n", heading, 1)


def unreleased(text: str) -> str:
    """Return the unreleased entries."""
    rest = text.partition(f"\n{UNRELEASED}\n")[2]
    following = _SECTION.search(rest)
    return rest[: following.start()] if following else rest
