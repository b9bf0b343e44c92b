"""Release a version: make release.

Dates its section of CHANGELOG.md, and freezes the newest migration of every engine: writes its
script, migrations/<engine>/<the migration's name>.sql, which psql, mysql, sqlcmd or SQL*Plus runs
as it is, `rowq sql` prints and the migration itself executes. From then on neither the migration
nor its script may change: their sums stand in migrations/<engine>/SHA256SUMS.

All of it is written, or nothing and every reason said.
"""

import hashlib
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.errors import MigrationError
from rowq.tools.migrate.frozen import (
    brought_by,
    files_after,
    is_released,
    migration_files,
    number_of,
    script_of,
    split,
)
from rowq.tools.migrate.release import read_release
from rowq.tools.migrate.sources import sources, sources_of
from sql.generate.compatible import faults_of_next
from sql.generate.files import stale_files
from sql.generate.version import (
    dated,
    engines_of,
    faults_of_changelog,
    faults_of_order,
    faults_of_version,
    released_versions,
    version_of,
)

SUMS = "SHA256SUMS"

ROOT = Path(__file__).resolve().parents[2]

_AFTERWARDS = """\
Next: make verify
      git add --all && git commit --message "rowq {version}"
      make dist && make test ARGS="tests/release" && git tag v{version}
"""


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return name and sum of files in a folder, as they are now."""
    return {name: digest_of(folder / name) for name in names}


def read_sums(folder: Path) -> dict[str, str]:
    """Return name and sum of every file that a folder's sums hold, none where it has no sums."""
    sums = folder / SUMS
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write_sums(folder: Path, sums: dict[str, str]) -> None:
    """Write name and sum of files into a folder, in the place of the sums that are there."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (folder / SUMS).write_text(text, encoding="utf-8", newline="\n")


class ReleasedError(Exception):
    """The newest migration is released and never changes; the next one must be begun first."""


def require_migration(migrations: Path) -> None:
    """Raise ReleasedError if sources have changed since the newest migration, a released one."""
    newest = migration_files(migrations)[-1]
    if not is_released(newest):
        return
    today, then = sources(sources_of(migrations)), files_after(migrations, number_of(newest))
    if changed := sorted(path for path in {*today, *then} if today.get(path) != then.get(path)):
        raise ReleasedError(
            f"{newest.name} is released and never changes; begin the next migration for"
            f" {', '.join(changed)}"
        )


def script_to_release(migrations: Path) -> str | None:
    """Return the script of the newest migration, None if it is released already.

    Raises:
        ReleasedError: it is released, and sources have changed since.
        ValueError: an earlier migration is not released, or a file could not be read back.
    """
    require_migration(migrations)
    *before, newest = migration_files(migrations)
    if is_released(newest):
        return None
    if left := [migration.name for migration in before if not is_released(migration)]:
        raise ValueError(f"{', '.join(left)} must be released before {newest.name}")
    script = read_release(migrations).script(number_of(newest))
    source_form = engine_module(migrations.name, "script", TOOLS).SCRIPT.source_form
    held = {part.name: source_form(part.text) for part in split(script)[1] if part.kind == "file"}
    for part in brought_by(newest, files_after(migrations, number_of(newest) - 1)):
        if part.kind == "file" and held.get(part.name) != part.text:
            raise ValueError(f"{part.name} could not be read back from the script")
    return script


def release(migrations: Path) -> Path | None:
    """Release the newest migration of an engine.

    Args:
        migrations: migrations/<engine>, with sql/<engine> beside its parent.

    Returns:
        The script that was written; None if there was nothing to release.

    Raises:
        ReleasedError, ValueError: as script_to_release; nothing was written.
    """
    script = script_to_release(migrations)
    return None if script is None else _write(migrations, script)


def faults_of_released(migrations: Path) -> list[str]:
    """Return where an engine's released files are not as they were released, in words."""
    sums, faults = read_sums(migrations), []
    for name, digest in sums.items():
        if not (migrations / name).exists():
            faults.append(f"{name} is released and gone")
        elif digest_of(migrations / name) != digest:
            faults.append(f"{name} is released and has changed")
    *before, newest = migration_files(migrations)
    frozen = {*before, *migrations.glob("*-[0-9]*.sql"), *([newest] if is_released(newest) else [])}
    faults += [
        f"{path.name} has no sum in {SUMS}, so it was never released"
        for path in sorted(frozen)
        if path.name not in sums
    ]
    return faults


def release_all(
    root: Path = ROOT,
    day: date | None = None,
    stale: Callable[[], Iterable[str]] = stale_files,
) -> None:
    """Release the version of a checkout, or nothing.

    Args:
        root: the checkout, without a change that is not committed.
        day: what its section of CHANGELOG.md says; today by default.
        stale: returns generated files that are not fresh.

    Raises:
        SystemExit: something is not as it must be; its text lists all of that.
    """
    version, text = version_of(root), _changelog_of(root)
    faults = [
        *_faults_of_tree(root),
        *faults_of_version(root),
        *faults_of_changelog(text, version),
        *(f"{name} is not fresh: make generate" for name in stale()),
    ]
    scripts: dict[Path, str | None] = {}
    for migrations in engines_of(root):
        found, scripts[migrations] = _examined(migrations)
        faults += [f"{migrations.name}: {fault}" for fault in found]
    if faults:
        raise SystemExit("\n".join(["Nothing was released:", *faults]))
    for migrations, script in scripts.items():
        written = _write(migrations, script).name if script else "nothing new to release"
        print(f"{migrations.name}: {written}")
    day = day or datetime.now(UTC).date()
    dated_text = dated(text, version, day)
    (root / "CHANGELOG.md").write_text(dated_text, encoding="utf-8", newline="\n")
    print(f"CHANGELOG.md: {version} - {day}")
    print(_AFTERWARDS.format(version=version), end="")


def is_claimed(root: Path) -> bool:
    """Return whether a checkout says that its version is released: by CHANGELOG.md, or by a tag."""
    version = version_of(root)
    return (
        version in released_versions(_changelog_of(root))
        or commit_of(root, f"v{version}") is not None
    )


def faults_of_build(root: Path) -> list[str]:
    """Return where a checkout is not the release that it claims to be, in words.

    The version of the package, the dated section of CHANGELOG.md, the frozen migrations and the
    version's tag, where there is one, must be those of one commit.
    """
    version, text = version_of(root), _changelog_of(root)
    tag, head = commit_of(root, f"v{version}"), commit_of(root, "HEAD")
    faults = [*_faults_of_tree(root), *faults_of_version(root)]
    if not released_versions(text).get(version):
        faults.append(f"CHANGELOG.md has no dated section of {version}")
    faults += faults_of_order(text, version)
    for migrations in engines_of(root):
        found, script = _examined(migrations)
        if script is not None:
            found.append(f"{migration_files(migrations)[-1].name} is not frozen")
        faults += [f"{migrations.name}: {fault}" for fault in found]
    if tag not in (None, head):
        faults.append(
            f"v{version} is the commit {str(tag)[:12]}, and this is {str(head)[:12]}:"
            f" git checkout v{version}, or make next"
        )
    return faults


def commit_of(root: Path, name: str) -> str | None:
    """Return the commit that a tag or another name of git's stands for, None if there is none."""
    words = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _changelog_of(root: Path) -> str:
    return (root / "CHANGELOG.md").read_text(encoding="utf-8")


def _examined(migrations: Path) -> tuple[list[str], str | None]:
    """Return what keeps an engine from its release, and the script that it would get."""
    try:
        read_release(migrations)
        faults = [*faults_of_released(migrations), *faults_of_next(migrations)]
        return faults, script_to_release(migrations)
    except (MigrationError, ReleasedError, ValueError) as error:
        return [str(error)], None


def _faults_of_tree(root: Path) -> list[str]:
    """Return what git knows of a checkout and has not committed."""
    words = ["git", "-C", str(root), "status", "--porcelain"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"git status: {done.stderr.strip()}"]
    names = [line[3:] for line in done.stdout.splitlines()]
    return [f"the tree is not clean, commit it first: {', '.join(names)}"] if names else []


def _write(migrations: Path, script: str) -> Path:
    newest = migration_files(migrations)[-1]
    script_of(newest).write_text(script, encoding="utf-8", newline="\n")
    sums = sums_of(migrations, [newest.name, script_of(newest).name])
    write_sums(migrations, read_sums(migrations) | sums)
    return script_of(newest)
