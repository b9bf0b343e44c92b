"""Checks files of PL/SQL: python -m tests.static.plsql [FILES].

Without files it is all of sql/oracle, the script of `rowq sql`, the statements of the tests and of
the seeds' experiments, and accepted.txt, what the grammar need not read again, is written anew.
"""

import argparse
import sys
from pathlib import Path

from tests.static import test_oracle_forms, test_oracle_script, test_oracle_tests, test_plsql
from tests.static.plsql import gate, tools


def main() -> int:
    """Return 0 when all is well, 1 with findings, 2 when the gate cannot run."""
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
    others = (
        *test_oracle_tests.statements(),
        *test_oracle_script.scripts(),
        *test_oracle_script.scripts_of_releases(),
        *test_plsql.sent_by_text(),
        *test_oracle_forms.scripts(),
    )
    asked = [gate.script(path) for path in options.files] or [*gate.product(), *others]
    problems = gate.check(asked)
    if not options.files:
        gate.remember(asked)
    for problem in problems:
        print(problem)
    print(f"{len(asked)} script(s), {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
