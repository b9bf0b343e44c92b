"""The version of rowq, wherever it is written: the package, its metadata, the newest migration."""

import re
from pathlib import Path

from rowq.migrate.frozen import is_released, migration_files

MIGRATION = re.compile(r'^__rowq_version__ = "(.*)"$', re.MULTILINE)
VERSION = re.compile(r"\d+\.\d+\.\d+")

_PLACES = {
    "pyproject.toml": re.compile(r'^version = "(.*)"$', re.MULTILINE),
    "python_client/rowq/__init__.py": re.compile(r'^__version__ = "(.*)"$', re.MULTILINE),
}
"""By file, the one line that names the version."""


def version_of(root: Path) -> str:
    """Return the version that the package's metadata name."""
    return _found(root / "pyproject.toml", _PLACES["pyproject.toml"])


def write_version(root: Path, version: str) -> None:
    """Write a version into the package and its metadata; a migration keeps its own."""
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
    """Return where another version is named than in the package's metadata, in words.

    A newest migration that is released keeps the version that it came with: a version that changes
    nothing in the database has no migration.
    """
    version = version_of(root)
    if not VERSION.fullmatch(version):
        return [f"pyproject.toml: {version} is no version such as 0.1.0"]
    named = {name: _found(root / name, pattern) for name, pattern in _PLACES.items()}
    for migrations in engines_of(root):
        newest = migration_files(migrations)[-1]
        if not is_released(newest):
            named[newest.relative_to(root).as_posix()] = _found(newest, MIGRATION)
    return [
        f"{name} says {found}, and pyproject.toml {version}"
        for name, found in named.items()
        if found != version
    ]


def _found(path: Path, pattern: re.Pattern[str]) -> str:
    match = pattern.search(path.read_text(encoding="utf-8"))
    return match[1] if match else "nothing"
