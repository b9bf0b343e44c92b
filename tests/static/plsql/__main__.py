"""Check files of PL/SQL: python -m tests.static.plsql [FILES].

Without files, check all texts of the tests, and write accepted.txt if the grammar accepts them and
refuses each planted error.
"""

import argparse
import sys
from pathlib import Path

from tests.static.plsql import gate, tools
from tests.static.plsql.everything import everything, planted


def main() -> int:
    """Return 0 without findings, 1 with findings, 2 if the gate cannot run."""
    parser = argparse.ArgumentParser(prog="python -m tests.static.plsql", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--fetch", action="store_true", help="set the gate up and stop")
    options = parser.parse_args()
    if options.fetch:
        tools.fetch()
        return 0
    if reason := tools.missing():
        print(reason, file=sys.stderr)
        return 2
    gate.learn()
    asked = [gate.script(path) for path in options.files] or everything()
    problems = gate.check(asked)
    if not options.files and not problems:
        problems = gate.not_refused(planted())
        if not problems:
            gate.record(asked, planted())
    for problem in problems:
        print(problem)
    print(f"{len(asked)} script(s), {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
