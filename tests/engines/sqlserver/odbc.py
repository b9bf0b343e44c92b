"""Microsoft's ODBC driver for the tests, from a wheel of PyPI, in a folder of .venv.

    python -m tests.engines.sqlserver.odbc           says where the driver is, or that none is
    python -m tests.engines.sqlserver.odbc --fetch   downloads it, 3 MB

Nothing is installed into the system: unixODBC loads a driver by the path of its library, too.
"""

import argparse
import ctypes
import subprocess
import sys
from pathlib import Path

WHEEL = "mssql-python-odbc==18.6.2.2"
FOLDER = Path(sys.prefix) / "odbc"
FETCH = "python -m tests.engines.sqlserver.odbc --fetch"
"""What downloads it; `make install` and so `make test` do it too."""

# The wheel carries a library for each family of Linux; that of Debian's is the one tried here.
_LIBRARIES = "mssql_python_odbc/libs/linux/debian_ubuntu/*/lib/libmsodbcsql-*.so*"


def library() -> Path | None:
    """Return the library of the driver that was downloaded, or None where it cannot be used."""
    found = next(FOLDER.glob(_LIBRARIES), None)
    if found:
        try:
            ctypes.CDLL(str(found))
        except OSError:  # such as a machine without Kerberos' libraries
            return None
    return found


def fetch() -> None:
    """Download the wheel and unpack it into the folder.

    Raises:
        subprocess.CalledProcessError: pip could not get it, or there is none for this machine.
    """
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade")
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", str(FOLDER), WHEEL]
    subprocess.run(command, check=True)


def main() -> int:
    """Return 0 when there is a driver, 2 when there is none."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.engines.sqlserver.odbc",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fetch", action="store_true", help="download the driver")
    if parser.parse_args().fetch:
        try:
            fetch()
        except subprocess.CalledProcessError as error:
            print(f"Microsoft's ODBC driver will not be tested: {error}", file=sys.stderr)
            return 2
    there = library()
    print(there or f"no driver: {FETCH}")
    return 0 if there else 2


if __name__ == "__main__":
    sys.exit(main())
