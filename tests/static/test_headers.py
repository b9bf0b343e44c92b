"""Every routine has a header inside its body, so that a server shows it.

A routine's header has all fields. A helper's has its purpose and the fields that are not defaults.
"""

from tests.static.each import for_each
from tests.static.sources import (
    CONTRACT,
    HEADER_DEFAULTS,
    HEADER_FIELDS,
    Unit,
    code_units,
    entry_name,
    errors_of,
    header,
    object_name,
    raised,
    words,
)

UNITS = code_units()
BODY_BEGINS = {
    "mysql": "\nbegin",
    "oracle": "\nis",
    "postgres": "\nas $$",
    "sqlserver": "\nas\nbegin",
}
CALLED = {"routines", "overloads"}
ROUTINES = [unit for unit in UNITS if unit.room in CALLED]
HELPERS = [unit for unit in UNITS if unit.room == "internal"]
OF_CALLERS = {"routine", "promise"}
"""Fields that a helper's header leaves out."""


def fields_of(unit: Unit) -> dict[str, str]:
    return HEADER_DEFAULTS | header(unit.text)


@for_each(ROUTINES)
def test_routine_header_has_all_fields_in_order(unit: Unit) -> None:
    assert tuple(header(unit.text)) == HEADER_FIELDS


@for_each(HELPERS)
def test_helper_header_has_no_defaults(unit: Unit) -> None:
    fields = header(unit.text)
    assert 0 < len(fields["purpose"]) <= 100
    assert list(fields) == [name for name in HEADER_FIELDS if name in fields.keys() - OF_CALLERS]
    assert not fields.items() & HEADER_DEFAULTS.items(), "leave out a default"


@for_each(UNITS)
def test_header_begins_the_body(unit: Unit) -> None:
    first = "purpose" if unit.room == "internal" else "routine"
    before, _, _ = unit.text.partition(f"\n-- {first} ")
    assert before.endswith(BODY_BEGINS[unit.engine])


@for_each(UNITS)
def test_header_names_its_routine_and_version(unit: Unit) -> None:
    fields = fields_of(unit)
    assert fields.get("routine", object_name(unit)) == object_name(unit)
    suffix = entry_name(unit).rpartition("_v")[2]
    assert fields["version"] == (suffix if suffix.isdigit() else "1")


@for_each(UNITS)
def test_header_lists_the_raised_errors(unit: Unit) -> None:
    listed = set(words(fields_of(unit)["errors"]))
    assert raised(unit.text) <= listed <= errors_of(unit.engine, object_name(unit))


@for_each(ROUTINES)
def test_header_cites_existing_promises(unit: Unit) -> None:
    assert set(words(fields_of(unit)["promise"])) <= CONTRACT["promises"].keys()
