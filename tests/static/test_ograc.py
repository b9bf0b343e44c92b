"""The list of what an oGRAC has executed speaks of the files of today."""

import re

from tests.engines.ograc import SOURCE, public, routines, units
from tests.engines.ograc_list import PAGE, digest, given, unused
from tests.engines.ograc_source import PRIVATE

_ROW = re.compile(r"^\| `(\S+\.sql)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| `(\w+)` \|$", re.MULTILINE)


def test_every_file_is_the_one_that_was_executed() -> None:
    listed = {found[1]: found[5] for found in _ROW.finditer(PAGE.read_text("utf-8"))}
    now = {
        path.relative_to(SOURCE).as_posix(): digest(path.relative_to(SOURCE).as_posix())
        for path in SOURCE.rglob("*.sql")
        if path.name != "install.sql"
    }
    assert listed == now, "run python -m tests.engines.ograc_list on an oGRAC"


def test_the_rules_of_the_list_are_those_of_today() -> None:
    page = PAGE.read_text("utf-8")
    listed = {found[1]: (found[2], found[3]) for found in _ROW.finditer(page)}
    began = {found[1] for found in _ROW.finditer(page) if found[4] == "yes"}
    now = {line.file: (line.way, line.rules) for line in given(set())}
    assert listed == now
    assert {f"routines/{name}.sql" for name in public()} <= began


def test_every_subprogram_that_was_not_stood_in_for_began() -> None:
    page = PAGE.read_text("utf-8")
    assert [found[1] for found in _ROW.finditer(page) if found[4] == "no"] == []


def test_every_rule_for_ograc_changes_something() -> None:
    assert unused() == []


def test_no_type_of_the_package_stands_between_two_units() -> None:
    private = {name for name, routine in routines().items() if routine.is_private}
    for text in units().values():
        assert PRIVATE.search(text.partition("\nis\n")[0]) is None
        assert set(re.findall(r"\b(internal_\w+)\s*\(", text)) & private == set()
