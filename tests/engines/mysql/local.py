"""A private MariaDB or MySQL in a temporary directory, for a test run.

It has its own data, socket, loopback port and account, and reads no configuration file. It ends
with the process that started it, even a killed one: see watchdog.py.
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
from tests.engines.mysql import debian, watchdog

_FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
_SECONDS = 60.0
_LONGEST_SOCKET = 100
_MYSQL = "create database mysql;\nuse mysql;\nset @auth_root_socket = 'root';"
_SCRIPTS = ("system_tables", "performance_tables", "system_tables_data", "sys_schema")


@dataclass(frozen=True, slots=True)
class Programs:
    """A MariaDB or MySQL that can be started here.

    share: the folder of its messages, and of MariaDB's scripts for its system tables.
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
        """The options that name the server's own folders."""
        return {
            "basedir": str(self.share.parent.parent),
            "lc-messages-dir": str(self.share),
            "character-sets-dir": str(self.share / "charsets"),
        }

    def scripts(self) -> list[Path]:
        """Return the scripts of MariaDB's system tables, under their old or new names."""
        return [next(self.share.glob(f"m*_{name}.sql")) for name in _SCRIPTS]


def all_programs() -> list[Programs]:
    """Return every MariaDB that can be started here: the system's first, then Debian 13's."""
    found: dict[str, Programs] = {}
    for command in (_system_command, debian.MARIADB.command):
        with contextlib.suppress(Unavailable):
            programs = _programs(command())
            found.setdefault(programs.series, programs)
    return list(found.values())


def find_programs(series: str | None = None) -> Programs:
    """Return the MariaDB of a series, such as "11.8", or the first one; raise Unavailable."""
    found = all_programs()
    for programs in found:
        if series in (None, programs.series):
            return programs
    if found:
        raise Unavailable(f"found {', '.join(programs.version for programs in found)}")
    return _programs(_system_command())


def _system_command() -> tuple[str, ...]:
    server = shutil.which("mariadbd", path=_FOLDERS)
    if server is None:
        raise Unavailable("no mariadbd; apt-get install mariadb-server-core")
    return (server,)


def find_mysql(series: str | None = None) -> Programs:
    """Return the MySQL of a series, such as "9.7" or "9", or any; raise Unavailable."""
    command = debian.MYSQL.command()
    version = _version(command)
    if series is not None and not f"{version}.".startswith(f"{series}."):
        raise Unavailable(f"found {version}")
    return Programs(command, _root(command) / "share" / "mysql", version)


def _version(command: tuple[str, ...]) -> str:
    """Return the version of a server; raise Unavailable if it does not run."""
    answer = subprocess.run(
        [*command, "--no-defaults", "--version"], capture_output=True, text=True, check=False
    )
    version = re.search(r"Ver (\d+\.\d+\.\d+)", answer.stdout)
    if version is None:
        raise Unavailable(f"{command[-1]} does not run: {answer.stderr.strip()[:200]}")
    return version[1]


def _root(command: tuple[str, ...]) -> Path:
    """Return the root folder of a server."""
    return Path(command[-1]).resolve().parent.parent


def _programs(command: tuple[str, ...]) -> Programs:
    """Return the programs of a MariaDB; raise Unavailable if it does not run."""
    version, root = _version(command), _root(command)
    for share in (root / "share" / "mysql", root / "share" / "mariadb"):
        if any(share.glob(f"m*_{_SCRIPTS[0]}.sql")):
            return Programs(command, share, version)
    raise Unavailable(f"{command[-1]} has no scripts for its system tables below {root}")


class LocalServer(ABC):
    """A server that starts when it is created; `settings` are its options by name."""

    scheme: str

    def __init__(self, programs: Programs, settings: Mapping[str, str]) -> None:
        """Create the data directory and start; raise Unavailable if that fails."""
        self.home = Path(tempfile.mkdtemp(prefix="rowq-test-"))
        if len(str(self.home)) > _LONGEST_SOCKET:
            self.home.rmdir()
            self.home = Path(tempfile.mkdtemp(prefix="rowq-test-", dir="/tmp"))
        self.user, self.password = "rowq_test_admin", secrets.token_hex(16)
        self.port = free_port()
        self._programs = programs
        self._watchdog: subprocess.Popen[str] | None = None
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
        """The URL of the administrator."""
        # No TLS: PyMySQL would read all system certificates at each connection, which takes 20 ms.
        return (
            f"{self.scheme}://{self.user}:{self.password}@127.0.0.1:{self.port}/?ssl_mode=disabled"
        )

    @property
    def log(self) -> Path:
        """The server's log, kept through restarts."""
        return self.home / "server.log"

    @property
    def socket(self) -> str:
        """The path of the unix socket."""
        return str(self.home / "socket")

    def start(self) -> None:
        """Start the server and wait until it answers; raise Unavailable with the end of its log."""
        command = [sys.executable, "-I", watchdog.__file__, str(self.home)]
        self._watchdog = subprocess.Popen(
            [*command, *self._programs.command, *self._options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._watchdog.stdout is not None
        self.pid = int(self._watchdog.stdout.readline())
        wait_until(lambda: self._answers() or self._ended(), "the server answers or ends", _SECONDS)
        if self._ended():
            raise Unavailable(f"{self.scheme} did not start: {self._log_end()}")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        """Send the server a signal, SIGKILL by default, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, how)
        wait_until(self._ended, "the server ends", _SECONDS)

    def restart(self) -> None:
        self.kill(signal.SIGTERM)
        if self._watchdog is not None:
            self._watchdog.kill()
            self._watchdog.communicate()
        self.start()

    def stop(self) -> None:
        """Stop the server and remove its directory; raise TimeoutExpired."""
        if self._watchdog is not None:
            self._watchdog.communicate(timeout=_SECONDS)
        shutil.rmtree(self.home, ignore_errors=True)

    @abstractmethod
    def _make_tables(self) -> subprocess.CompletedProcess[str]:
        """Create the system tables in the empty data directory."""

    def _install(self) -> None:
        """Create the system tables and the init file."""
        (self.home / "data").mkdir()
        if self._make_tables().returncode:
            raise Unavailable(f"cannot create the system tables: {self._log_end()}")
        account = f"'{self.user}'@'%'"
        (self.home / "init.sql").write_text(
            f"create user if not exists {account} identified by '{self.password}';\n"
            f"grant all on *.* to {account} with grant option;\n"
        )

    def _run(self, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        """Run the server once with more options, without its init file, on a text."""
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

    def _log_end(self) -> str:
        if not self.log.exists():
            return "no log"
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
