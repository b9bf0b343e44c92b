"""MariaDB of Debian 13 and MySQL of Debian unstable, unpacked into folders of .venv.

    python -m tests.engines.mysql.debian mysql           prints the version, or why it is missing
    python -m tests.engines.mysql.debian mysql --fetch   downloads and unpacks it

Nothing is installed: apt resolves the packages for an empty system with its own lists, and checks
their signatures. The server runs with its own C library.
"""

import argparse
import getpass
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.engines.base import Unavailable


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A server from packages of a Debian suite, such as MySQL from unstable."""

    name: str
    suite: str
    packages: tuple[str, ...]
    server: str

    @property
    def folder(self) -> Path:
        """The folder with the unpacked packages."""
        return Path(sys.prefix) / f"{self.name.lower()}-{self.suite}"

    def command(self) -> tuple[str, ...]:
        """Return the server's command; raise Unavailable if it is not unpacked."""
        server = self.folder / "usr" / "sbin" / self.server
        starters = sorted(self.folder.glob("usr/lib/*/ld-linux*.so.*"))
        if not (server.exists() and starters):
            how = f"python -m tests.engines.mysql.debian {self.name.lower()} --fetch"
            raise Unavailable(f"no {self.name} from Debian {self.suite}: {_obstacle() or how}")
        folders = [starters[0].parent, *self.folder.glob("usr/lib/mysql/private")]
        libraries = ":".join(str(folder) for folder in folders)
        return str(starters[0]), "--library-path", libraries, str(server)

    def fetch(self) -> None:
        """Download and unpack the packages; raise Unavailable or CalledProcessError."""
        if obstacle := _obstacle():
            raise Unavailable(obstacle)
        shutil.rmtree(self.folder, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="rowq-test-") as made:
            home = Path(made)
            apt = ["apt-get", *_apt_options(home, self.suite)]
            subprocess.run([*apt, "update"], check=True)
            subprocess.run([*apt, "--download-only", "install", *self.packages], check=True)
            unpacked = home / "unpacked"
            for package in sorted((home / "archives").glob("*.deb")):
                subprocess.run(["dpkg-deb", "--extract", package, unpacked], check=True)
            shutil.move(unpacked, self.folder)


MARIADB = Unpacked("MariaDB", "trixie", ("mariadb-server-core", "mariadb-client-core"), "mariadbd")
MYSQL = Unpacked("MySQL", "unstable", ("mysql-server-core", "mysql-client-core"), "mysqld")
ALL = {unpacked.name.lower(): unpacked for unpacked in (MARIADB, MYSQL)}

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SOURCE = """\
Types: deb
URIs: {mirror}
Suites: {suite}
Components: main
Signed-By: {keyring}
"""


def _apt_options(home: Path, suite: str) -> list[str]:
    """Return options that confine apt to an empty folder."""
    (home / "lists" / "partial").mkdir(parents=True)
    (home / "archives" / "partial").mkdir(parents=True)
    (home / "status").touch()
    source = home / "debian.sources"
    source.write_text(_SOURCE.format(mirror=_mirror(), suite=suite, keyring=_KEYRING))
    settings = {
        "Dir::State": home,
        "Dir::State::status": home / "status",
        "Dir::Cache": home,
        "Dir::Etc::SourceList": source,
        "Dir::Etc::SourceParts": "/dev/null",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": getpass.getuser(),
        "Acquire::Languages": "none",
    }
    return ["-qq", "-y", *(f"--option={name}={value}" for name, value in settings.items())]


def _mirror() -> str:
    """Return the address of this machine's Debian mirror."""
    wanted = [f"Release: {_release()['VERSION_CODENAME']}", "Component: main"]
    answer = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", *wanted],
        capture_output=True,
        text=True,
        check=True,
    )
    found = answer.stdout.split()
    if not found:
        raise Unavailable(f"apt has no source with {', '.join(wanted)}")
    return found[0]


def _release() -> dict[str, str]:
    """Return the fields of os-release, empty if there is none."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _obstacle() -> str | None:
    """Return why the packages cannot be fetched on this machine, or None."""
    if _release().get("ID") != "debian" or not shutil.which("apt-get") or not _KEYRING.exists():
        return "requires Debian with apt-get and debian-archive-keyring"
    return None


def main() -> int:
    """Return 0 if the server is there or cannot be fetched, 2 if it is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.mysql.debian")
    parser.add_argument("server", choices=sorted(ALL))
    parser.add_argument("--fetch", action="store_true", help="download and unpack it")
    options = parser.parse_args()
    unpacked = ALL[options.server]
    try:
        if options.fetch:
            unpacked.fetch()
        subprocess.run([*unpacked.command(), "--no-defaults", "--version"], check=True)
    except (Unavailable, subprocess.CalledProcessError) as reason:
        named = f"{unpacked.name} from Debian {unpacked.suite}"
        print(f"{named} will not be tested: {reason}", file=sys.stderr)
        return 0 if options.fetch and _obstacle() else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
