"""Microsoft's ODBC driver for tests, from PyPI, in a folder of .venv.

    python -m tests.engines.sqlserver.odbc           prints the path of the driver
    python -m tests.engines.sqlserver.odbc --fetch   downloads it, 3 MB

Nothing is installed into the system: unixODBC can load a driver by its path.
"""

import argparse
import ctypes
import subprocess
import sys
from pathlib import Path

WHEEL = "mssql-python-odbc==18.6.2.2"
FOLDER = Path(sys.prefix) / "odbc"
FETCH = "python -m tests.engines.sqlserver.odbc --fetch"
"""The command that downloads it; `make install` runs it."""

# The wheel has a library for each Linux family; the tests use Debian's.
_LIBRARIES = "mssql_python_odbc/libs/linux/debian_ubuntu/*/lib/libmsodbcsql-*.so*"


def library() -> Path | None:
    """Return the downloaded driver's library, or None if it cannot be loaded."""
    found = next(FOLDER.glob(_LIBRARIES), None)
    if found:
        try:
            ctypes.CDLL(str(found))
        except OSError:  # such as a machine without Kerberos' libraries
            return None
    return found


def fetch() -> None:
    """Download and unpack the wheel; raise CalledProcessError."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade")
    command = [sys.executable, "-m", "pip", "install", *quiet, "--target", str(FOLDER), WHEEL]
    subprocess.run(command, check=True)


def main() -> int:
    """Return 0 if there is a driver, 2 if there is none."""
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
    driver = library()
    print(driver or f"no driver: {FETCH}")
    return 0 if driver else 2


if __name__ == "__main__":
    sys.exit(main())
