"""A shim calls the contract's routines and nothing else of rowq's, by statements that are there."""

import re
from pathlib import Path

import pytest

from tests.static.sources import HEADER_DEFAULTS, HEADER_FIELDS, SQL, code_of, header, routines_of

SHIMS = sorted(SQL.glob("*/shim/*.sql"))
FUNCTION = re.compile(r"^create or replace function .*?^\$\$;$", re.MULTILINE | re.DOTALL)


def functions(text: str) -> list[str]:
    return FUNCTION.findall(text)


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_a_shim_calls_the_contract_s_routines_only(path: Path) -> None:
    engine = path.parent.parent.name
    called = set(re.findall(r"\browq\.(\w+)", code_of(path.read_text(encoding="utf-8"))))
    assert called <= routines_of(engine).keys()


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_no_function_of_a_shim_makes_up_its_statements(path: Path) -> None:
    found = functions(path.read_text(encoding="utf-8"))
    assert len(found) > 60
    for text in found:
        assert not re.search(r"\bexecute\b", code_of(text)), text
        assert "set search_path = pg_catalog, pg_temp" in text


@pytest.mark.parametrize("path", SHIMS, ids=lambda path: path.stem)
def test_a_function_that_runs_as_its_owner_has_the_eight_lines(path: Path) -> None:
    for text in functions(path.read_text(encoding="utf-8")):
        fields = header(text)
        assert fields["routine"] in text.partition("(")[0]
        if "\nsecurity definer\n" in text:
            assert tuple(fields) == HEADER_FIELDS
        else:
            assert list(fields) == [name for name in HEADER_FIELDS if name in fields]
            assert not fields.items() & HEADER_DEFAULTS.items()
