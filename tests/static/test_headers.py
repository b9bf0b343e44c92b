"""Every routine carries a header inside its body, so that a server shows it too.

That of a routine that is called has eight lines. A helper's has its name, its purpose, and whatever
is not the default.
"""

from pathlib import Path

from tests.static.each import for_each
from tests.static.sources import (
    CONTRACT,
    HEADER_DEFAULTS,
    HEADER_FIELDS,
    code_files,
    entry_name,
    errors_of,
    header,
    object_name,
    raised,
    routines_of,
    words,
)

FILES = code_files()
BODY_BEGINS = {
    "mysql": "\nbegin",
    "oracle": "\nis",
    "postgres": "\nas $$",
    "sqlserver": "\nas\nbegin",
}
CALLED = {"routines", "overloads"}
ROUTINES = [(engine, path) for engine, path in FILES if path.parent.name in CALLED]
HELPERS = [(engine, path) for engine, path in FILES if path.parent.name == "internal"]


def fields_of(path: Path) -> dict[str, str]:
    return HEADER_DEFAULTS | header(path.read_text(encoding="utf-8"))


@for_each(ROUTINES)
def test_a_routine_s_header_has_the_eight_fields_in_their_order(engine: str, path: Path) -> None:
    assert tuple(header(path.read_text(encoding="utf-8"))) == HEADER_FIELDS, engine


@for_each(HELPERS)
def test_a_helper_s_header_says_what_is_not_the_default_in_its_order(
    engine: str, path: Path
) -> None:
    fields = header(path.read_text(encoding="utf-8"))
    assert fields.keys() >= {"routine", "purpose"}, engine
    assert list(fields) == [name for name in HEADER_FIELDS if name in fields]
    assert not fields.items() & HEADER_DEFAULTS.items(), "a default is left out"


@for_each(FILES)
def test_a_header_stands_first_in_the_body(engine: str, path: Path) -> None:
    before, _, _ = path.read_text(encoding="utf-8").partition("\n-- routine ")
    assert before.endswith(BODY_BEGINS[engine])


@for_each(FILES)
def test_a_header_names_its_own_file_and_version(engine: str, path: Path) -> None:
    fields = fields_of(path)
    assert fields["routine"] == object_name(path), engine
    suffix = entry_name(path).rpartition("_v")[2]
    assert fields["version"] == (suffix if suffix.isdigit() else "1")


@for_each(ROUTINES)
def test_a_header_agrees_with_the_contract(engine: str, path: Path) -> None:
    fields, entry = fields_of(path), routines_of(engine)[entry_name(path)]
    assert words(fields["errors"]) == entry["errors"], engine
    assert words(fields["promise"]) == entry["promises"]
    assert fields["purpose"] == entry["purpose"]


@for_each(FILES)
def test_a_header_lists_the_errors_that_are_raised(engine: str, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    listed = set(words(fields_of(path)["errors"]))
    assert raised(text) <= listed <= errors_of(engine, object_name(path))


@for_each(FILES)
def test_a_header_cites_promises_that_exist(engine: str, path: Path) -> None:
    assert set(words(fields_of(path)["promise"])) <= CONTRACT["promises"].keys(), engine
