"""Release the newest migration of every engine: make release.

Writes its script, migrations/<engine>/<the migration's name>.sql, which psql, mysql, sqlcmd or
SQL*Plus runs as it is, `rowq sql` prints and the migration itself executes. From then on neither
the migration nor its script may change: their sums stand in migrations/<engine>/SHA256SUMS.
"""

import hashlib
from pathlib import Path

from rowq.engines import part_of
from rowq.migrate.frozen import (
    brought_by,
    files_after,
    is_released,
    migration_files,
    number_of,
    script_of,
    split,
)
from rowq.migrate.release import read_release
from rowq.migrate.sources import sources, sources_of

ROOT = Path(__file__).resolve().parents[2]
SUMS = "SHA256SUMS"


class ReleasedError(Exception):
    """The newest migration is released and never changes; the next one must be begun first."""


def released(migrations: Path) -> dict[str, str]:
    """Return name and sum of every released file of an engine."""
    sums = migrations / SUMS
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


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
    source_form = part_of(migrations.name, "script").SCRIPT.source_form
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


def release_all() -> None:
    """Release every engine, or none if one of them cannot be."""
    engines = sorted(path for path in (ROOT / "migrations").iterdir() if path.is_dir())
    scripts = {}
    for migrations in engines:
        try:
            scripts[migrations] = script_to_release(migrations)
        except (ReleasedError, ValueError) as error:
            raise SystemExit(f"{migrations.name}: {error}") from error
    for migrations, script in scripts.items():
        written = _write(migrations, script).name if script else "nothing new to release"
        print(f"{migrations.name}: {written}")


def _write(migrations: Path, script: str) -> Path:
    newest = migration_files(migrations)[-1]
    script_of(newest).write_text(script, encoding="utf-8", newline="\n")
    sums = released(migrations)
    sums |= {path.name: digest_of(path) for path in (newest, script_of(newest))}
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (migrations / SUMS).write_text(text, encoding="utf-8", newline="\n")
    return script_of(newest)
