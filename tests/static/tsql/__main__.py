"""Check T-SQL files, sql/sqlserver by default: python -m tests.static.tsql [FILES]."""

import argparse
import subprocess
import sys
from pathlib import Path

from tests.static.tsql import gate, tools


def main() -> int:
    """Return 0 without findings, 1 with findings, 2 if the gate cannot run."""
    parser = argparse.ArgumentParser(prog="python -m tests.static.tsql", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--fetch", action="store_true", help="set the gate up and stop")
    options = parser.parse_args()
    if options.fetch:
        return _set_up()
    if reason := tools.missing():
        print(reason, file=sys.stderr)
        return 2
    product = gate.product()
    asked = [gate.script(path) for path in options.files] or product
    problems = gate.check(asked, product)
    for problem in problems:
        print(problem)
    print(f"{len(asked)} file(s), {len(problems)} problem(s)")
    return 1 if problems else 0


def _set_up() -> int:
    """Set up the gate; return 0 on success."""
    try:
        tools.fetch()
    except subprocess.CalledProcessError as error:
        print(f"T-SQL will not be checked: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
