"""The seeds' forms for Oracle, and what observes them there, are accepted by the grammar."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.engines.oracle import lab, observe, session
from benchmarks.studies.seeds.sections import read_sections
from benchmarks.studies.seeds.seed_003 import scene
from tests.static.plsql import lint
from tests.static.plsql.gate import Script
from tests.static.plsql.source import source
from tests.static.sources import ROOT

SEEDS = ROOT / "benchmarks" / "studies" / "seeds"
FORMS = [*sorted(SEEDS.glob("seed_*/oracle/*.sql")), SEEDS / "rowq" / "oracle.sql"]
OWN = {
    "counters": observe._COUNTERS,
    "reads": observe._READS,
    "locked": observe._LOCKED,
    "served": observe.SERVED,
    "disconnect": observe.DISCONNECT,
    "faults": session._FAULTS,
    "sessions": scene._SESSIONS["oracle"],
    "parameters": lab._PARAMETERS,
    "log mode": lab._LOG_MODE,
}
BY_TEXT = [
    'select count(*) from "X"',
    'select 1 from "X" for update skip locked',
    f"grant {', '.join(observe.RIGHTS)} to x",
]
SYNTAX = [
    ("bulk collect into v_found", "bulk collect in v_found"),
    ("for update skip locked", "for update skip lock"),
    ("close free_rows;", "close free_rows"),
]
"""Pairs of what is right and what is wrong."""
UNBOUNDED = re.compile(r"rownum|fetch first")
SKIPPING = re.compile(
    r"\b(?:select|cursor)\b[^;]*?\bfor update(?: of [\w.]+)? skip locked", re.DOTALL
)


def statement(name: str, text: str) -> Script:
    """Return a statement of a session as the gate reads it, with a name in place of a value."""
    sent, _ = session.spelled(text, ())
    return Script(name, re.sub(r"(?<![:\w]):(\w+)", r"x\1", sent).strip() + "\n/\n")


def of_form(path: Path) -> Iterator[Script]:
    """Yield a form's script, and each statement of its other sections."""
    for section, text in read_sections(path).items():
        name = f"{path.parent.parent.name} {path.stem} {section}"
        if section == "install":
            yield Script(name, f"{text}\n")
        else:
            parts = [text] if text.startswith("begin") else text.split(";\n")
            yield from (statement(f"{name} {place}", part) for place, part in enumerate(parts))


def scripts() -> list[Script]:
    """Return everything that the seeds' experiments send to Oracle."""
    own = [statement(name, text) for name, text in OWN.items()]
    forms = [script for path in FORMS for script in of_form(path)]
    return [*forms, *own, *(statement(text, text) for text in BY_TEXT)]


def planted() -> list[Script]:
    """Return a form once for each error of grammar, with that error in it."""
    (install,) = (script for script in scripts() if script.name == "seed_000 one_statement install")
    assert all(right in install.text for right, _ in SYNTAX)
    return [Script(to, install.text.replace(what, to)) for what, to in SYNTAX]


def test_no_form_bounds_a_batch_before_locked_rows_are_passed_over() -> None:
    """A number of rows counts rows that are skipped then; only the fetch bounds the batch."""
    found = [
        (path.name, match.group())
        for path in FORMS
        for text in read_sections(path).values()
        for match in SKIPPING.finditer(text)
    ]
    assert len(found) == 6
    assert not [name for name, text in found if UNBOUNDED.search(text)]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: f"{path.parent.parent.name} {path.stem}")
def test_a_cursor_of_a_form_is_closed_and_a_bulk_fetch_is_bounded(path: Path) -> None:
    file = source(path.name, "\n".join(read_sections(path).values()))
    assert not list(lint._cursors(file))
    for fetch in re.findall(r"fetch \w+ bulk collect into [^;]*;", file.code):
        assert " limit " in fetch
