"""Release a version: make release.

Date the version's section of CHANGELOG.md, and freeze the newest migration of every engine: write
its script migrations/<engine>/scripts/<name>.sql for the engine's client, which `rowq sql` prints
and the migration executes. Neither may change afterwards: migrations/<engine>/SHA256SUMS has their
sums. If anything is wrong, print all reasons and write nothing.
"""

import hashlib
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from pathlib import Path

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.errors import MigrationError
from rowq.tools.migrate.frozen import (
    SCRIPTS,
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
    """Return the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sums_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the current sums of files in a folder by name."""
    return {name: digest_of(folder / name) for name in names}


def read_sums(folder: Path) -> dict[str, str]:
    """Return the recorded sums of a folder by name, empty if there are none."""
    sums = folder / SUMS
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def write_sums(folder: Path, sums: dict[str, str]) -> None:
    """Replace the recorded sums of a folder."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (folder / SUMS).write_text(text, encoding="utf-8", newline="\n")


class ReleasedError(Exception):
    """The newest migration is released; begin the next one before changing sources."""


def require_migration(migrations: Path) -> None:
    """Raise ReleasedError if sources have changed since a released newest migration."""
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
    """Return the script of the newest migration, None if it is released.

    Raises:
        ReleasedError: it is released, and sources have changed since.
        ValueError: an earlier migration is not released, or a file cannot be restored from it.
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
    """Release the newest migration of an engine; return its script, None if already released.

    Raises:
        ReleasedError, ValueError: as script_to_release; nothing was written.
    """
    script = script_to_release(migrations)
    return None if script is None else _write(migrations, script)


def faults_of_released(migrations: Path) -> list[str]:
    """Return the changes of an engine's released files, as texts."""
    sums, faults = read_sums(migrations), []
    for name, digest in sums.items():
        if not (migrations / name).exists():
            faults.append(f"{name} is released but missing")
        elif digest_of(migrations / name) != digest:
            faults.append(f"{name} is released and has changed")
    *before, newest = migration_files(migrations)
    scripts = (migrations / SCRIPTS).glob("*-[0-9]*.sql")
    frozen = {*before, *scripts, *([newest] if is_released(newest) else [])}
    names = sorted(path.relative_to(migrations).as_posix() for path in frozen)
    faults += [
        f"{name} has no sum in {SUMS}; it was never released" for name in names if name not in sums
    ]
    return faults


def release_all(
    root: Path = ROOT, day: date | None = None, stale: Callable[[], Iterable[str]] = stale_files
) -> None:
    """Release the version of a checkout, or nothing.

    Args:
        root: the checkout, without uncommitted changes.
        day: the date in CHANGELOG.md, today by default.
        stale: returns the generated files that are not current.

    Raises:
        SystemExit: the text lists all reasons.
    """
    version, text = version_of(root), _changelog_of(root)
    faults = [
        *_faults_of_tree(root),
        *faults_of_version(root),
        *faults_of_changelog(text, version),
        *(f"{name} is not current; run make generate" for name in stale()),
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
    """Return whether CHANGELOG.md or a tag claims that a checkout's version is released."""
    version = version_of(root)
    return (
        version in released_versions(_changelog_of(root))
        or commit_of(root, f"v{version}") is not None
    )


def faults_of_build(root: Path) -> list[str]:
    """Return the differences of a checkout from the release that it claims to be, as texts."""
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
    """Return the commit of a git revision, or None."""
    words = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout.strip() or None


def _changelog_of(root: Path) -> str:
    return (root / "CHANGELOG.md").read_text(encoding="utf-8")


def _examined(migrations: Path) -> tuple[list[str], str | None]:
    """Return the reasons against an engine's release, and its script."""
    try:
        read_release(migrations)
        faults = [*faults_of_released(migrations), *faults_of_next(migrations)]
        return faults, script_to_release(migrations)
    except (MigrationError, ReleasedError, ValueError) as error:
        return [str(error)], None


def _faults_of_tree(root: Path) -> list[str]:
    """Return a reason if a checkout has uncommitted changes."""
    words = ["git", "-C", str(root), "status", "--porcelain"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"git status: {done.stderr.strip()}"]
    names = [line[3:] for line in done.stdout.splitlines()]
    return [f"the tree is not clean; commit first: {', '.join(names)}"] if names else []


def _write(migrations: Path, script: str) -> Path:
    newest = migration_files(migrations)[-1]
    script_of(newest).write_text(script, encoding="utf-8", newline="\n")
    sums = sums_of(migrations, [newest.name, f"{SCRIPTS}/{script_of(newest).name}"])
    write_sums(migrations, read_sums(migrations) | sums)
    return script_of(newest)
