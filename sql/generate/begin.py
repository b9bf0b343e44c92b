"""Begin the next version: make next VERSION=0.2.0 NAME=more-settings.

Write the version into the package and its metadata and, if the version changes the database, a
migration for every engine, to be completed by hand.
"""

import re
from pathlib import Path

from rowq.tools.migrate.frozen import is_released, migration_files, number_of
from sql.generate.files import ROOT, write_all
from sql.generate.version import (
    VERSION,
    engines_of,
    numbers_of,
    released_versions,
    version_of,
    write_version,
)

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MIGRATION = '''\
"""Version {version}: see CHANGELOG.md."""

from rowq.tools.migrate.steps import frozen

__depends__ = {{"{before}"}}
__transactional__ = False
__rowq_version__ = "{version}"

frozen(__file__)
'''
_DJANGO = Path("python_client/rowq/contrib/django/migrations")
_OF_DJANGO = '''\
"""Version {version}: see CHANGELOG.md."""

from django.db import migrations

from rowq.contrib.django.operations import RunRowqMigration


class Migration(migrations.Migration):  # type: ignore[misc]
    """Migration {number} of rowq."""

    dependencies = (("rowq", "{before}"),)
    operations = (RunRowqMigration({number}),)
'''


def begin_all(version: str, name: str = "") -> None:
    """Begin the next version of this checkout, and write its generated files."""
    for path in begin(ROOT, version, name):
        print(f"{path.relative_to(ROOT).as_posix()}: written")
    write_all()


def begin(root: Path, version: str, name: str = "") -> list[Path]:
    """Begin the next version.

    Args:
        root: the checkout.
        version: such as 0.2.0.
        name: the last part of the migrations' names, words with hyphens; empty if the version does
            not change the database.

    Returns:
        The new migrations, Django's last.

    Raises:
        SystemExit: the previous version is not released, or not lower; nothing was changed.
    """
    newest = {migrations: migration_files(migrations)[-1] for migrations in engines_of(root)}
    if fault := _fault(root, version, name, list(newest.values())):
        raise SystemExit(fault)
    write_version(root, version)
    written = []
    for migrations, before in newest.items() if name else ():
        short = before.stem.partition("-")[0]
        path = migrations / f"{short}-{number_of(before) + 1:04d}-{name}.py"
        text = _MIGRATION.format(version=version, before=before.stem)
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return [*written, _for_django(root, version, written[0], newest)] if written else []


def _for_django(root: Path, version: str, migration: Path, newest: dict[Path, Path]) -> Path:
    """Write the Django migration that runs rowq's, and return it."""
    names = [_name_on_django(path) for path in (newest[migration.parent], migration)]
    text = _OF_DJANGO.format(version=version, number=number_of(migration), before=names[0])
    path = root / _DJANGO / f"{names[1]}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _name_on_django(migration: Path) -> str:
    return migration.stem.partition("-")[2].replace("-", "_")


def _fault(root: Path, version: str, name: str, newest: list[Path]) -> str | None:
    changelog = released_versions((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    now = version_of(root)
    if not VERSION.fullmatch(version) or (name and not _NAME.fullmatch(name)):
        return "usage: make next VERSION=0.2.0 NAME=more-settings (no NAME: no migration)"
    if now not in changelog or not all(map(is_released, newest)):
        return f"{now} is not released; run make release"
    if numbers_of(version) <= numbers_of(now):
        return f"the new version must be higher than {now}, got {version}"
    return None
