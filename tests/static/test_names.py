"""The SQL files keep the house style."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.static.each import for_each
from tests.static.sources import (
    CONTRACT,
    ENGINES,
    SQL,
    Unit,
    code_of,
    code_units,
    migration_scripts,
    object_name,
    sql_files,
    sql_units,
)

EVERY = [(engine, path) for engine in ENGINES for path in sorted((SQL / engine).rglob("*.sql"))]
EVERY += [(engine, path) for engine in ENGINES for path in migration_scripts(engine)]
POSTGRES = [unit for unit in code_units() if unit.engine == "postgres"]
SQLSERVER = [unit for unit in code_units() if unit.engine == "sqlserver"]
POSTGRES_ROUTINES = [unit for unit in POSTGRES if unit.room != "internal"]

CALLERS_RIGHTS = {"dequeue_wait", "wait_for_result"}
"""A committing procedure can neither be security definer nor set its search path."""

DYNAMIC = {"open_day", "purge_archive", "grants", "listen", "unlisten"}
"""The names of partitions, roles and channels are dynamic."""

PINNED = r"\nlanguage plpgsql\nsecurity definer\nset search_path = pg_catalog, pg_temp\n"
"""A caller's temporary objects come last; other objects of the caller are not found."""

KEYWORDS = (
    "select|insert|update|delete|from|where|and|or|not|in|is|null|join|left|on|group|order|by|limit|"
    "for|create|table|function|procedure|returns|language|begin|end|declare|if|then|else|elsif|loop|"
    "return|query|raise|exception|using|perform|values|set|into|as|with|case|when|exists|between|"
    "grant|revoke|alter|drop|default|constraint|primary|key|unique|check|call|commit"
)

_UPPER = re.compile(rf"\b(?<!\[)({KEYWORDS.upper()})\b")
"""A word in brackets is a name, such as the file group [PRIMARY]."""

DYNAMIC_ON_SQLSERVER = {"rebuild_indexes"}
"""The names of indexes are dynamic."""

SETTINGS = "set quoted_identifier on;\nset ansi_nulls on;\ngo\n"
"""Settings that are stored with an object, so every script sets them first."""


CONTRACT_TEXTS = {
    text.replace("'", "''")
    for text in (
        *(entry["purpose"] for entry in CONTRACT["routine"].values()),
        *(entry["meaning"] for entry in CONTRACT["columns"].values()),
        *CONTRACT["tables"].values(),
        *CONTRACT["table_columns"].values(),
    )
}
"""The contract's texts, escaped as in a literal."""


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def without_contract_texts(line: str) -> str:
    """Return a line without the literals that contain a text of the contract."""
    for text in CONTRACT_TEXTS:
        line = line.replace(f"'{text}'", "")
    return line


@for_each(EVERY)
def test_lines_are_short_and_clean(engine: str, path: Path) -> None:
    text = text_of(path)
    assert text.isascii(), engine
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert "\t" not in text
    assert "\r" not in text
    for number, line in enumerate(text.splitlines(), start=1):
        # The contract's texts are checked elsewhere.
        is_short = len(line) <= 100 or line.startswith("-- purpose ")
        assert is_short or len(without_contract_texts(line)) <= 100, f"line {number} is too long"
        assert line == line.rstrip(), f"line {number} ends with a blank"


@for_each(EVERY)
def test_keywords_are_lower_case(engine: str, path: Path) -> None:
    assert not _UPPER.findall(code_of(text_of(path))), engine


@for_each(EVERY)
def test_no_statement_selects_star(engine: str, path: Path) -> None:
    assert not re.search(r"\bselect\s+(\w+\.)?\*", code_of(text_of(path))), engine
    assert not re.search(r"\breturning\s+(\w+\.)?\*", code_of(text_of(path)))


@for_each(EVERY)
def test_file_name_is_lower_case(engine: str, path: Path) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", path.stem), engine


@for_each(POSTGRES_ROUTINES)
def test_postgres_routines_are_security_definer_with_fixed_path(unit: Unit) -> None:
    clauses = code_of(unit.text).partition("as $$")[0]
    if unit.stem in CALLERS_RIGHTS:
        assert "security definer" not in clauses
        assert "search_path" not in clauses
    else:
        assert re.search(PINNED, clauses)


@for_each(POSTGRES)
def test_postgres_code_builds_no_statement_from_text(unit: Unit) -> None:
    found = re.search(r"\bexecute\b", code_of(unit.text))
    assert not found or unit.stem in DYNAMIC


@for_each(POSTGRES)
def test_postgres_variables_have_prefixes(unit: Unit) -> None:
    code = code_of(unit.text)
    declared = re.search(r"\ndeclare\n(.*?)\nbegin\n", code, re.DOTALL)
    names = re.findall(r"^    (\w+)\s", declared.group(1), re.MULTILINE) if declared else []
    assert all(name.startswith(("v_", "c_")) for name in names), names


@for_each(POSTGRES)
def test_postgres_names_are_schema_qualified(unit: Unit) -> None:
    tables = "|".join(sorted(table.stem for table in sql_units("postgres", "tables")))
    assert not re.search(rf"\b(?:from|join|into|update|table)\s+(?:{tables})\b", code_of(unit.text))
    assert not re.search(r"(?<!rowq\.)\binternal_\w+\(", code_of(unit.text))


@for_each(POSTGRES)
def test_postgres_unit_creates_one_object_and_can_be_rerun(unit: Unit) -> None:
    created = re.findall(r"^create .*", unit.text, re.MULTILINE)
    assert len(created) == 1
    assert created[0].startswith("create or replace ")


@for_each(unit for unit in sql_units("postgres", "tables") if unit.stem != "schema")
def test_postgres_tables_can_be_rerun(unit: Unit) -> None:
    created = re.findall(r"^create .*", unit.text, re.MULTILINE)
    assert created
    assert all(" if not exists " in line for line in created)


@for_each(POSTGRES)
def test_postgres_times_are_current(unit: Unit) -> None:
    assert not re.search(r"\b(now\(\)|current_timestamp|localtimestamp)", code_of(unit.text))


@for_each(SQLSERVER)
def test_sqlserver_unit_creates_one_object_and_can_be_rerun(unit: Unit) -> None:
    text = unit.text
    created = re.findall(r"^create .*", text, re.MULTILINE)
    assert len(created) == 1
    assert re.match(
        rf"create or alter (procedure|function) rowq\.{object_name(unit)}\b", created[0]
    )
    assert text.endswith("\nend\ngo\n")


@for_each(sql_units("sqlserver"))
def test_sqlserver_files_set_stored_settings_first(unit: Unit) -> None:
    code = code_of(unit.text)
    created = re.search(r"^\s*create ", code, re.MULTILINE)
    assert not created or SETTINGS in code[: created.start()]


@for_each(SQLSERVER)
def test_sqlserver_code_builds_no_statement_from_text(unit: Unit) -> None:
    found = re.search(r"\bexec(ute)?\s*\(|\bsp_executesql\b", code_of(unit.text))
    assert not found or unit.stem in DYNAMIC_ON_SQLSERVER


@pytest.mark.pitfall("sqlserver 12", "sqlserver 13")
@for_each(SQLSERVER)
def test_sqlserver_code_avoids_unsafe_features(unit: Unit) -> None:
    code = code_of(unit.text)
    assert not re.search(r"\b(nolock|merge (?!range)|tablockx?|@@identity)\b", code)
    assert not re.search(r"\b(getdate|sysdatetime|current_timestamp|getutcdate)\b", code)


@pytest.mark.pitfall("sqlserver 9")
@for_each(SQLSERVER)
def test_sqlserver_table_variables_hold_no_bodies(unit: Unit) -> None:
    tables = re.findall(r"declare @\w+ table \((.*?)\n\s*\);", code_of(unit.text), re.DOTALL)
    assert not [table for table in tables if "(max)" in table]


@for_each(SQLSERVER)
def test_sqlserver_files_have_no_sqlcmd_or_odbc_syntax(unit: Unit) -> None:
    text = unit.text
    assert "$(" not in text
    assert not re.search(r"^(:|!!)", text, re.MULTILINE)
    assert not re.search(r"[{}]", code_of(text))


@cache
def sqlserver_names() -> set[str]:
    """Return the names that the files for SQL Server create in the schema."""
    created = r"^create (?:or alter )?(?:table|sequence|type|procedure|function) rowq\.(\w+)"
    texts = [text_of(path) for engine, path in EVERY if engine == "sqlserver"]
    return {name for text in texts for name in re.findall(created, text, re.MULTILINE)}


@for_each(sql_files("sqlserver"))
def test_sqlserver_names_are_spelled_consistently(path: Path) -> None:
    used = set(re.findall(r"\browq\.(\w+)", code_of(text_of(path))))
    assert used <= sqlserver_names()
