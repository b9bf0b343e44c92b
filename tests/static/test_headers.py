"""Every routine carries a header inside its body, so that a server shows it too.

That of a routine that is called has eight lines. A helper's has its purpose, and whatever is not
the default; its promises are its callers'.
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
    routines_of,
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
"""What a helper's header leaves out."""


def fields_of(unit: Unit) -> dict[str, str]:
    return HEADER_DEFAULTS | header(unit.text)


@for_each(ROUTINES)
def test_a_routine_s_header_has_the_eight_fields_in_their_order(unit: Unit) -> None:
    assert tuple(header(unit.text)) == HEADER_FIELDS


@for_each(HELPERS)
def test_a_helper_s_header_says_what_is_not_the_default_in_its_order(unit: Unit) -> None:
    fields = header(unit.text)
    assert "purpose" in fields
    assert list(fields) == [name for name in HEADER_FIELDS if name in fields.keys() - OF_CALLERS]
    assert not fields.items() & HEADER_DEFAULTS.items(), "a default is left out"


@for_each(UNITS)
def test_a_header_stands_first_in_the_body(unit: Unit) -> None:
    first = "purpose" if unit.room == "internal" else "routine"
    before, _, _ = unit.text.partition(f"\n-- {first} ")
    assert before.endswith(BODY_BEGINS[unit.engine])


@for_each(UNITS)
def test_a_header_names_its_own_routine_and_version(unit: Unit) -> None:
    fields = fields_of(unit)
    assert fields.get("routine", object_name(unit)) == object_name(unit)
    suffix = entry_name(unit).rpartition("_v")[2]
    assert fields["version"] == (suffix if suffix.isdigit() else "1")


@for_each(ROUTINES)
def test_a_header_agrees_with_the_contract(unit: Unit) -> None:
    fields, entry = fields_of(unit), routines_of(unit.engine)[entry_name(unit)]
    assert words(fields["errors"]) == entry["errors"]
    assert words(fields["promise"]) == entry["promises"]
    assert fields["purpose"] == entry["purpose"]


@for_each(UNITS)
def test_a_header_lists_the_errors_that_are_raised(unit: Unit) -> None:
    listed = set(words(fields_of(unit)["errors"]))
    assert raised(unit.text) <= listed <= errors_of(unit.engine, object_name(unit))


@for_each(ROUTINES)
def test_a_header_cites_promises_that_exist(unit: Unit) -> None:
    assert set(words(fields_of(unit)["promise"])) <= CONTRACT["promises"].keys()
