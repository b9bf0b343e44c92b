"""Forbidden words in the SQL for PostgreSQL."""

import re

import pytest

from tests.static.each import for_each
from tests.static.sources import Unit, code_of, sql_units

CALLED_BY_USERS = [
    unit
    for unit in sql_units("postgres", "internal", "routines", "overloads")
    if unit.room != "internal" or unit.stem == "require_autocommit"
]
IN_THE_CALLERS_PATH = [
    unit for unit in CALLED_BY_USERS if "set search_path" not in code_of(unit.text)
]


def test_only_committing_routines_use_callers_path() -> None:
    names = {unit.stem for unit in IN_THE_CALLERS_PATH}
    assert names == {"dequeue_wait", "require_autocommit", "wait_for_result"}


@pytest.mark.promise("P16")
@for_each(IN_THE_CALLERS_PATH)
def test_routine_in_callers_path_uses_qualified_names_only(unit: Unit) -> None:
    text = code_of(unit.text)
    body = text.partition("as $$")[2].replace(":=", "").replace("errcode =", "")
    assert not re.findall(r"[-+*/<>=~!@#%^&|`?]|\b(?:like|between|in|any|similar)\b", body)
    called = re.findall(r"([\w.]+)\s*\(", body)
    assert [name for name in called if not name.startswith(("pg_catalog.", "rowq."))] == []


@for_each(CALLED_BY_USERS)
def test_no_row_is_built_by_column_position(unit: Unit) -> None:
    """An upgrade may add a column, which a running call does not know."""
    text = code_of(unit.text)
    assert not re.findall(r"::rowq\.\w+(?!\w|\[|\()", text)
    rows = re.findall(r"\b(\w+) +rowq\.\w+\[\]", text)
    named = re.findall(r"\bunnest\(([^()]*)\)(?: with ordinality)? \w+ \(", text)
    named += re.findall(r"\bunnest\(([^()]*)\),", text)
    assert not [name for name in rows if re.search(rf"\b{name}\b", " ".join(named))]
