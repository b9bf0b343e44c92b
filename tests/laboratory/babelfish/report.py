"""Writes BABELFISH.md, the list of what a Babelfish was given and has executed.

`make generate` runs it; what it says of a run is what record.py has noted of it. It is a report and
no gate: a file that has changed since its run is named as changed.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.laboratory.babelfish.faults import FAULTS
from tests.laboratory.babelfish.record import (
    RECORD,
    ROOT,
    SOURCE,
    current,
    files,
    procedure,
    read,
    text_of,
)
from tests.laboratory.babelfish.rules import RULES, rules_for
from tests.laboratory.record import File, table, ways

PAGE = Path(__file__).parents[1] / "BABELFISH.md"

_ONLY_REFUSES = re.compile(r"^    throw 52\d{3}, @text, 1;\nend$", re.MULTILINE)
_HEAD = """\
<!-- Generated from babelfish/run.json and sql/sqlserver by make generate. Do not edit. -->

# What Babelfish has executed

Written from `sql/sqlserver`, the rules of [babelfish/rules.py](babelfish/rules.py) and what the
server counted in the runs below, on {engine}.

Babelfish is a PostgreSQL that speaks T-SQL. It is not SQL Server: it ignores lock hints, index
hints, `option (...)`, page locks, compression and lock escalation, and has plans of its own. The
tests that run on it show what a routine answers to one session after the other. They show nothing
about locks, waits, deadlocks, plans or page reads.

How a file reached it, {ways}:

- **as written**: no rule changes it. In all of them `create or alter procedure` becomes `drop
  procedure if exists` and `create procedure`, which Babelfish does not have in one.
- **rewritten**: by the rules named.
- **in part**: what has no counterpart, marked with *, is left out; the rest runs.
- **not at all**: created, never called.

With a procedure stands how often it has returned, by the server's own count
(`pg_stat_user_functions`), in those runs that had its file as it is today; "changed since" are the
files that none had. A call that ends in an error is not counted, so that a procedure which only
refuses has none: the tests have seen its errors.
"""
_NOT_AT_ALL = {"routines/care_for_indexes.sql": "ALTER INDEX, the pages of an index"}
_FINDS_NOTHING = {"tables/sequential_keys.sql": "finds an old version and does nothing"}
_TESTS = """Tests that ask for a server. Those that need locks, plans or waits are marked
`requires("genuine")` or `requires("waits")`. A failure here is one of the last run of its file: its
cause is named below, or mended since.

"""
_FAILING = """They run all the same, and are reported as "xfailed" with these words; one that passes
is a failure, but where it depends on the driver or on the time it takes.

"""


_UNUSED = """
## Rules that change nothing any more

"""


def page() -> str:
    """Return the text of the page."""
    record = current(read(RECORD))
    ran = {file: count for file, (_, count) in record["files"].items()}
    given = [_file(file, ran.get(file)) for file in files()]
    return (
        f"{_HEAD.format(engine=record['how'], ways=ways(given))}"
        f"\n## Files\n\n{table(given)}"
        f"\n## Tests\n\n{_TESTS}| folder | passed | xfailed | failed | skipped, and why |\n"
        f"|---|---|---|---|---|\n{''.join(_tests(record['tests']))}"
        f"\n## Tests that fail there by its own fault\n\n{_FAILING}"
        f"| why | tests |\n|---|---|\n{''.join(_faults())}"
        f"{_unused()}"
    )


def _file(file: str, count: int | None) -> File:
    """Return how a file reached the server, and how often its procedure has returned since."""
    text = text_of(file)
    return File(file, *_way(file, text), None if count is None else _calls(file, text, count))


def _way(file: str, text: str) -> tuple[str, str]:
    if file in _NOT_AT_ALL:
        return "not at all", _NOT_AT_ALL[file]
    if file in _FINDS_NOTHING:
        return "in part", _FINDS_NOTHING[file]
    rules = rules_for(text)
    marked = (rule.what + "*" * rule.is_left_out for rule in rules)
    way = "in part" if any(rule.is_left_out for rule in rules) else "rewritten"
    return (way, "; ".join(dict.fromkeys(marked))) if rules else ("as written", "")


def _calls(file: str, text: str, count: int) -> str:
    if procedure(file) is None:
        return ""
    refuses = "only refuses" if _ONLY_REFUSES.search(text) else "none"
    return f"{count:,}" if count else refuses


def _tests(files: dict[str, dict[str, int]]) -> Iterator[str]:
    folders: dict[str, Counter[str]] = {}
    for file, counts in files.items():
        folders.setdefault(Path(file).parent.as_posix(), Counter()).update(counts)
    for folder, found in sorted(folders.items()):
        why = "; ".join(
            f"{count} {word.removeprefix('skipped: ')}"
            for word, count in sorted(found.items())
            if word.startswith("skipped")
        )
        yield (
            f"| `{folder}` | {found['passed']} | {found['xfailed']} |"
            f" {found['failed'] + found['error']} | {why} |\n"
        )


def _faults() -> Iterator[str]:
    for fault in FAULTS:
        yield f"| {fault.what} | {', '.join(f'`{name}`' for name in fault.tests)} |\n"


def _unused() -> str:
    """Return the section of the rules that can go, empty where there is none."""
    paths = [*SOURCE.rglob("*.sql"), *(ROOT / "migrations" / "sqlserver").glob("*.sql")]
    used = {rule for path in paths for rule in rules_for(path.read_text("utf-8"))}
    lines = [f"- {rule.what}: `{rule.pattern.pattern}`\n" for rule in RULES if rule not in used]
    return "".join([_UNUSED, *lines]) if lines else ""
