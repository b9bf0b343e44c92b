"""A private MariaDB or MySQL in a temporary directory, from programs of a package, for a test run.

It has its own data, socket, port on the loopback address and account, and reads no configuration
file; the system's server and its data are never touched. It ends with the process that started it,
even a killed one: see keeper.py.
"""

import contextlib
import getpass
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pymysql

from tests.engines.base import Unavailable, free_port, wait_until
from tests.engines.mysql import debian, keeper

_FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
_SECONDS = 60.0
_LONGEST_SOCKET = 100
_MYSQL = "create database mysql;\nuse mysql;\nset @auth_root_socket = 'root';"
_SCRIPTS = ("system_tables", "performance_tables", "system_tables_data", "sys_schema")


@dataclass(frozen=True, slots=True)
class Programs:
    """A MariaDB or MySQL that can be started here.

    Attributes:
        command: the words that start the server.
        share: the folder of its messages, and of MariaDB's scripts that make its system tables.
        version: such as "10.11.19".
    """

    command: tuple[str, ...]
    share: Path
    version: str

    @property
    def series(self) -> str:
        """Such as "10.11"."""
        return ".".join(self.version.split(".")[:2])

    @property
    def places(self) -> dict[str, str]:
        """The options by which the server finds its own files."""
        return {
            "basedir": str(self.share.parent.parent),
            "lc-messages-dir": str(self.share),
            "character-sets-dir": str(self.share / "charsets"),
        }

    def scripts(self) -> list[Path]:
        """Return the scripts of MariaDB's system tables, whose names begin with either brand."""
        return [next(self.share.glob(f"m*_{name}.sql")) for name in _SCRIPTS]


def all_programs() -> list[Programs]:
    """Return every MariaDB that can be started here: the system's own first, then Debian 13's."""
    found: dict[str, Programs] = {}
    for command in (_system_command, debian.MARIADB.command):
        with contextlib.suppress(Unavailable):
            programs = _programs(command())
            found.setdefault(programs.series, programs)
    return list(found.values())


def find_programs(series: str | None = None) -> Programs:
    """Return the MariaDB of a series, such as "11.8", or the first one that is here.

    Raises:
        Unavailable: there is none.
    """
    there = all_programs()
    for programs in there:
        if series in (None, programs.series):
            return programs
    if there:
        raise Unavailable(f"here is {', '.join(programs.version for programs in there)}")
    return _programs(_system_command())


def _system_command() -> tuple[str, ...]:
    server = shutil.which("mariadbd", path=_FOLDERS)
    if server is None:
        raise Unavailable("no mariadbd; apt-get install mariadb-server-core")
    return (server,)


def find_mysql(series: str | None = None) -> Programs:
    """Return the MySQL that is here; series, such as "9.7" or "9", is what it must be.

    Raises:
        Unavailable: there is none, or another one.
    """
    command = debian.MYSQL.command()
    version = _version(command)
    if series is not None and not f"{version}.".startswith(f"{series}."):
        raise Unavailable(f"here is {version}")
    return Programs(command, _root(command) / "share" / "mysql", version)


def _version(command: tuple[str, ...]) -> str:
    """Return the version of a server; raises Unavailable when it does not run."""
    answer = subprocess.run(
        [*command, "--no-defaults", "--version"], capture_output=True, text=True, check=False
    )
    version = re.search(r"Ver (\d+\.\d+\.\d+)", answer.stdout)
    if version is None:
        raise Unavailable(f"{command[-1]} does not run: {answer.stderr.strip()[:200]}")
    return version[1]


def _root(command: tuple[str, ...]) -> Path:
    """Return the folder below which all files of a server are."""
    return Path(command[-1]).resolve().parent.parent


def _programs(command: tuple[str, ...]) -> Programs:
    """Return what belongs to a MariaDB; raises Unavailable when it does not run."""
    version, root = _version(command), _root(command)
    for share in (root / "share" / "mysql", root / "share" / "mariadb"):
        if any(share.glob(f"m*_{_SCRIPTS[0]}.sql")):
            return Programs(command, share, version)
    raise Unavailable(f"{command[-1]} has no scripts for its system tables below {root}")


class LocalServer(ABC):
    """One server, up from the start; `settings` are its options by name."""

    scheme: str

    def __init__(self, programs: Programs, settings: Mapping[str, str]) -> None:
        """Make the data directory and start; raises Unavailable when that fails."""
        self.home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
        if len(str(self.home)) > _LONGEST_SOCKET:
            self.home.rmdir()
            self.home = Path(tempfile.mkdtemp(prefix="rowq-test-", dir="/tmp"))
        self.user, self.password = "rowq_test_admin", secrets.token_hex(16)
        self.port = free_port()
        self._programs = programs
        self._keeper: subprocess.Popen[str] | None = None
        words = {
            **programs.places,
            "user": getpass.getuser(),
            "datadir": str(self.home / "data"),
            "socket": str(self.home / "socket"),
            "pid-file": str(self.home / "pid"),
            "log-error": str(self.log),
            "tmpdir": str(self.home),
            "port": str(self.port),
            "bind-address": "127.0.0.1",
            "init-file": str(self.home / "init.sql"),
            **settings,
        }
        self._options = ["--no-defaults", *(f"--{name}={value}" for name, value in words.items())]
        try:
            self._install()
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def url(self) -> str:
        """The URL of an account that may do everything."""
        # There is no TLS, because PyMySQL would read all the system's certificates at each
        # connection, 20 ms of work.
        return (
            f"{self.scheme}://{self.user}:{self.password}@127.0.0.1:{self.port}/?ssl_mode=disabled"
        )

    @property
    def log(self) -> Path:
        """The file that the server writes to, through all its restarts."""
        return self.home / "server.log"

    @property
    def socket(self) -> str:
        """The path of the unix socket."""
        return str(self.home / "socket")

    def start(self) -> None:
        """Start the server and wait until it answers; raises Unavailable with its last words."""
        command = [sys.executable, "-I", keeper.__file__, str(self.home)]
        self._keeper = subprocess.Popen(
            [*command, *self._programs.command, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        self.pid = int(self._keeper.stdout.readline())
        wait_until(lambda: self._answers() or self._ended(), "the server answers or ends", _SECONDS)
        if self._ended():
            raise Unavailable(f"{self.scheme} did not start: {self._last_words()}")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """End the server, as a crash would unless told otherwise, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
        wait_until(self._ended, "the server ends", _SECONDS)

    def restart(self) -> None:
        """Stop the server if it runs, and start it again under the same URL."""
        self.kill(signal.SIGTERM)
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.communicate()
        self.start()

    def stop(self) -> None:
        """Stop the server and remove everything; fails when that takes too long."""
        if self._keeper is not None:
            self._keeper.communicate(timeout=_SECONDS)
        shutil.rmtree(self.home, ignore_errors=True)

    @abstractmethod
    def _make_tables(self) -> subprocess.CompletedProcess[str]:
        """Make the system tables in the empty data directory."""

    def _install(self) -> None:
        """Make the system tables, and the statements that every start begins with."""
        (self.home / "data").mkdir()
        if self._make_tables().returncode:
            raise Unavailable(f"the system tables cannot be made: {self._last_words()}")
        account = f"'{self.user}'@'%'"
        (self.home / "init.sql").write_text(
            f"create user if not exists {account} identified by '{self.password}';\n"
            f"grant all on *.* to {account} with grant option;\n"
        )

    def _run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run the server once, without its init file, on a text; words are more options."""
        options = [word for word in self._options if not word.startswith("--init-file=")]
        return subprocess.run(
            [*self._programs.command, *options, *words],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def _answers(self) -> bool:
        try:
            pymysql.connect(
                host="127.0.0.1", port=self.port, user=self.user, password=self.password
            ).close()
        except pymysql.Error:
            return False
        return True

    def _ended(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def _last_words(self) -> str:
        if not self.log.exists():
            return "it said nothing"
        return self.log.read_text(errors="replace")[-1000:]


class LocalMariaDB(LocalServer):
    """A MariaDB."""

    scheme = "mariadb"

    def _make_tables(self) -> subprocess.CompletedProcess[str]:
        scripts = [path.read_text(encoding="utf-8") for path in self._programs.scripts()]
        return self._run("--skip-log-bin", "--bootstrap", text="\n".join([_MYSQL, *scripts]))


class LocalMySQL(LocalServer):
    """A MySQL."""

    scheme = "mysql"

    def _make_tables(self) -> subprocess.CompletedProcess[str]:
        return self._run("--skip-log-bin", "--initialize-insecure")
