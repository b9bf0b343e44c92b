"""Writes BABELFISH.md, the list of what a Babelfish is given; a test keeps it fresh.

Run it with python -m tests.engines.babelfish_list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.engines.babelfish_faults import FAULTS
from tests.engines.babelfish_rules import RULES, rules_for

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "sql" / "sqlserver"
PAGE = Path(__file__).with_name("BABELFISH.md")

_INCLUDE = re.compile(r"^:r (\S+)$", re.MULTILINE)
# Created there, and called by no test there.
_NEVER_CALLED = {
    "routines/care_for_indexes.sql": "created, never called: ALTER INDEX, the pages of an index",
    "tables/sequential_keys.sql": "finds an old version and does nothing",
}
_HEAD = """# What Babelfish is given

Written by `python -m tests.engines.babelfish_list` from `sql/sqlserver` and the rules of
`babelfish_rules.py`.

Babelfish is a PostgreSQL that speaks T-SQL. It is not SQL Server: it ignores lock hints, index
hints, `option (...)`, page locks, compression and lock escalation, and has plans of its own. The
tests that run on it show what a routine answers to one session after the other. They show nothing
about locks, waits, deadlocks, plans or page reads.

Each file goes to it in one of three ways. That a procedure is here says that it is created; the
server counts calls (`track_functions`), and `pg_stat_user_functions` tells after a run which were
executed to their end. In all of them `create or alter procedure` becomes `drop
procedure if exists` and `create procedure`, which Babelfish does not have in one.
"""

_FAILING = """They run all the same, and are reported as "xfailed" with these words; one that passes
is a failure. Tests that need locks, plans or waits are marked `requires("genuine")` or
`requires("waits")`, and skipped there.

"""


def page() -> str:
    """Return the text of the page."""
    as_written: list[str] = []
    rewritten: list[str] = []
    left_out: list[str] = []
    for name in _INCLUDE.findall((SOURCE / "install.sql").read_text("utf-8")):
        rules = rules_for((SOURCE / name).read_text("utf-8"))
        reasons = "; ".join(dict.fromkeys(rule.what for rule in rules))
        if name in _NEVER_CALLED:
            left_out.append(f"| `{name}` | {_NEVER_CALLED[name]} |")
        elif not rules:
            as_written.append(f"`{name}`")
        elif any(rule.is_left_out for rule in rules):
            left_out.append(f"| `{name}` | {reasons} |")
        else:
            rewritten.append(f"| `{name}` | {reasons} |")
    table = "| file | what |\n|---|---|\n"
    return (
        f"{_HEAD}\n## As written: {len(as_written)} files\n\n{', '.join(as_written)}\n"
        f"\n## Rewritten: {len(rewritten)} files\n\n{table}" + "\n".join(rewritten) + "\n"
        f"\n## Not at all, or not all: {len(left_out)} files\n\n"
        "What has no counterpart is left out of these; the rest of the procedure runs.\n\n"
        f"{table}" + "\n".join(left_out) + "\n"
        f"\n## Tests that fail there by its own fault\n\n{_FAILING}"
        "| why | tests |\n|---|---|\n" + "\n".join(_faults()) + "\n"
    )


def _faults() -> Iterator[str]:
    for fault in FAULTS:
        yield f"| {fault.what} | {', '.join(f'`{name}`' for name in fault.tests)} |"


def unused() -> list[str]:
    """Return the rules that change nothing any more."""
    paths = [*SOURCE.rglob("*.sql"), *(ROOT / "migrations" / "sqlserver").glob("*.sql")]
    used = {rule for path in paths for rule in rules_for(path.read_text("utf-8"))}
    return [f"{rule.what}: {rule.pattern.pattern}" for rule in RULES if rule not in used]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
