"""A private MariaDB in a temporary directory, from the programs of a package, for one test run.

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
    """A MariaDB that can be started here.

    Attributes:
        command: the words that start the server.
        share: the folder of its messages and of the scripts that make its system tables.
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
        """Return the scripts that make the system tables, whose names begin with either brand."""
        return [next(self.share.glob(f"m*_{name}.sql")) for name in _SCRIPTS]


def all_programs() -> list[Programs]:
    """Return every MariaDB that can be started here: the system's own first, then Debian 13's."""
    found: dict[str, Programs] = {}
    for command in (_system_command, debian.command):
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


def _programs(command: tuple[str, ...]) -> Programs:
    """Return what belongs to a server; raises Unavailable when it does not run."""
    answer = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    version = re.search(r"Ver (\d+\.\d+\.\d+)", answer.stdout)
    if version is None:
        raise Unavailable(f"{command[-1]} does not run: {answer.stderr.strip()[:200]}")
    root = Path(command[-1]).resolve().parent.parent
    for share in (root / "share" / "mysql", root / "share" / "mariadb"):
        if any(share.glob(f"m*_{_SCRIPTS[0]}.sql")):
            return Programs(command, share, version[1])
    raise Unavailable(f"{command[-1]} has no scripts for its system tables below {root}")


class LocalMariaDB:
    """One server, up from the start; `settings` are options of mariadbd by name."""

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
        return f"mariadb://{self.user}:{self.password}@127.0.0.1:{self.port}/?ssl_mode=disabled"

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
        wait_until(lambda: self._answers() or self._ended(), "MariaDB answers or ends", _SECONDS)
        if self._ended():
            raise Unavailable(f"mariadbd did not start: {self._last_words()}")

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

    def _install(self) -> None:
        """Make the system tables, and the statements that every start begins with."""
        (self.home / "data").mkdir()
        scripts = [path.read_text(encoding="utf-8") for path in self._programs.scripts()]
        words = [word for word in self._options if not word.startswith("--init-file=")]
        done = subprocess.run(
            [*self._programs.command, *words, "--skip-log-bin", "--bootstrap"],
            input="\n".join([_MYSQL, *scripts]),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"the system tables cannot be made: {self._last_words()}")
        account = f"'{self.user}'@'%'"
        (self.home / "init.sql").write_text(
            f"create user if not exists {account} identified by '{self.password}';\n"
            f"grant all on *.* to {account} with grant option;\n"
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
