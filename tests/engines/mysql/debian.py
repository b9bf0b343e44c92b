"""MariaDB of Debian 13 on another Debian: its packages, unpacked into a folder of .venv.

    python -m tests.engines.mysql.debian           says which version is there, or why none is
    python -m tests.engines.mysql.debian --fetch   downloads and unpacks it, about 20 MB

Nothing is installed: apt resolves the packages for an empty system, with lists of its own, and the
server is started by the C library that comes with it. apt checks the signatures as it always does.
"""

import argparse
import getpass
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.engines.base import Unavailable

SUITE = "trixie"
FOLDER = Path(sys.prefix) / f"mariadb-{SUITE}"
FETCH = "python -m tests.engines.mysql.debian --fetch"
"""What unpacks it; `make install` and so `make test` do it too."""

_PACKAGES = ("mariadb-server-core", "mariadb-client-core")
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SOURCE = """\
Types: deb
URIs: {mirror}
Suites: {suite}
Components: main
Signed-By: {keyring}
"""


def command() -> tuple[str, ...]:
    """Return the words that start mariadbd from the folder; raises Unavailable without it."""
    server = FOLDER / "usr" / "sbin" / "mariadbd"
    starters = sorted(FOLDER.glob("usr/lib/*/ld-linux*.so.*"))
    if not (server.exists() and starters):
        raise Unavailable(f"no MariaDB of Debian's {SUITE}: {_obstacle() or FETCH}")
    starter = starters[0]
    return str(starter), "--library-path", str(starter.parent), str(server)


def fetch() -> None:
    """Download the packages and unpack them into the folder.

    Raises:
        Unavailable: this machine has no apt of Debian's.
        subprocess.CalledProcessError: apt could not get or resolve them.
    """
    if obstacle := _obstacle():
        raise Unavailable(obstacle)
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="rowq-test-") as made:
        home = Path(made)
        options = _apt_options(home)
        subprocess.run(["apt-get", *options, "update"], check=True)
        subprocess.run(["apt-get", *options, "--download-only", "install", *_PACKAGES], check=True)
        unpacked = home / "unpacked"
        for package in sorted((home / "archives").glob("*.deb")):
            subprocess.run(["dpkg-deb", "--extract", package, unpacked], check=True)
        shutil.move(unpacked, FOLDER)


def _apt_options(home: Path) -> list[str]:
    """Return options that keep apt to a folder, where nothing is installed yet."""
    (home / "lists" / "partial").mkdir(parents=True)
    (home / "archives" / "partial").mkdir(parents=True)
    (home / "status").touch()
    source = home / "debian.sources"
    source.write_text(_SOURCE.format(mirror=_mirror(), suite=SUITE, keyring=_KEYRING))
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
    """Return the address from which this machine has its own Debian."""
    wanted = [f"Release: {_release()['VERSION_CODENAME']}", "Component: main"]
    answer = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", *wanted],
        capture_output=True,
        text=True,
        check=True,
    )
    found = answer.stdout.split()
    if not found:
        raise Unavailable(f"apt has no source of its own with {', '.join(wanted)}")
    return found[0]


def _release() -> dict[str, str]:
    """Return what the system says of itself; nothing where it is no Linux."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def _obstacle() -> str | None:
    """Return why the packages cannot be had on a machine like this one, or None."""
    if _release().get("ID") != "debian" or not shutil.which("apt-get") or not _KEYRING.exists():
        return "it needs Debian, with apt-get and debian-archive-keyring"
    return None


def main() -> int:
    """Return 0 when it is there, or can never be there; 2 when it is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines.mysql.debian")
    parser.add_argument("--fetch", action="store_true", help="download and unpack it")
    options = parser.parse_args()
    try:
        if options.fetch:
            fetch()
        subprocess.run([*command(), "--no-defaults", "--version"], check=True)
    except (Unavailable, subprocess.CalledProcessError) as reason:
        print(f"MariaDB of Debian's {SUITE} will not be tested: {reason}", file=sys.stderr)
        return 0 if options.fetch and _obstacle() else 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
