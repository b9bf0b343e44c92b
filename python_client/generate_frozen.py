"""Freeze today's SQL into the newest migration of every engine: make generate.

Copies every file that install.sql names and whose text differs from its newest released copy to
migrations/<engine>/NNNN/, and lists them there in order.txt. A released migration never changes
again: `python python_client/generate_frozen.py --release` writes its files' sums to SHA256SUMS.
"""

import argparse
import hashlib
import re
import shutil
from pathlib import Path

from rowq.migrate.frozen import ORDER, newest_copies, read

ROOT = Path(__file__).resolve().parent.parent
SUMS = "SHA256SUMS"

_INCLUDE = re.compile(r"^(?:(?:\\ir|source|:r) +|@@)(\S+)$", re.MULTILINE)
_MIGRATION = "*-[0-9][0-9][0-9][0-9]-*.py"


class ReleasedError(Exception):
    """The newest migration is released; a new one must be written first."""


def install_order(source: Path) -> list[str]:
    """Return the files that an engine's install.sql names, in its order."""
    return _INCLUDE.findall(read(source / "install.sql"))


def newest_migration(migrations: Path) -> Path:
    """Return the migration file with the highest number."""
    return max(migrations.glob(_MIGRATION), key=number_of)


def number_of(migration: Path) -> int:
    """Return the number in a migration's file name."""
    return int(migration.stem.split("-")[1])


def files_of(migration: Path) -> list[Path]:
    """Return a migration's file and its frozen copies."""
    folder = migration.parent / f"{number_of(migration):04d}"
    return [migration, *sorted(path for path in folder.rglob("*") if path.is_file())]


def released(migrations: Path) -> dict[str, str]:
    """Return path and sum of every released file of an engine."""
    sums = migrations / SUMS
    lines = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    return {path: digest for digest, path in (line.split("  ", 1) for line in lines)}


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def expected_copies(source: Path, migrations: Path) -> dict[str, str]:
    """Return path and text of what the newest migration must hold for today's sources, in order.

    Raises:
        ReleasedError: sources have changed since the newest migration, which is released.
    """
    newest = newest_migration(migrations)
    is_released = newest.name in released(migrations)
    earlier = newest_copies(migrations, number_of(newest) - (0 if is_released else 1))
    changed = {
        relative: read(source / relative)
        for relative in install_order(source)
        if relative not in earlier or read(earlier[relative]) != read(source / relative)
    }
    if changed and is_released:
        raise ReleasedError(
            f"{newest.name} is released and never changes; begin the next migration for"
            f" {', '.join(changed)}"
        )
    return {} if is_released else changed


def freeze(source: Path, migrations: Path) -> None:
    """Write the frozen copies of the newest migration anew."""
    copies = expected_copies(source, migrations)
    if not copies:
        return
    folder = migrations / f"{number_of(newest_migration(migrations)):04d}"
    if folder.exists():
        shutil.rmtree(folder)
    for relative, text in copies.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_text(text, encoding="utf-8")
    (folder / ORDER).write_text("".join(f"{name}\n" for name in copies), encoding="utf-8")


def release(migrations: Path) -> None:
    """Add the sums of the newest migration's files to SHA256SUMS."""
    sums = released(migrations)
    for path in files_of(newest_migration(migrations)):
        sums[path.relative_to(migrations).as_posix()] = digest_of(path)
    text = "".join(f"{digest}  {path}\n" for path, digest in sorted(sums.items()))
    (migrations / SUMS).write_text(text, encoding="utf-8")


def main() -> None:
    """Freeze, or with --release seal, the newest migration of every engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", action="store_true", help="seal the newest migration")
    arguments = parser.parse_args()
    for migrations in sorted(path for path in (ROOT / "migrations").iterdir() if path.is_dir()):
        freeze(ROOT / "sql" / migrations.name, migrations)
        if arguments.release:
            release(migrations)


if __name__ == "__main__":
    main()
