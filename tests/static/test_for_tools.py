"""The plain scripts and the files for Flyway and Alembic have the client script's statements."""

import ast
import re
from pathlib import Path

import pytest

from rowq.engines import TOOLS, engine_module
from rowq.tools import migrate
from rowq.tools.engines.mysql.script import statements
from rowq.tools.engines.oracle.script import units
from rowq.tools.engines.sqlserver.script import batches
from rowq.tools.migrate.frozen import Section, split
from tests.helpers.releases import change_everything, copied_without_history, use_released
from tests.static.plsql.gate import is_client
from tests.static.sources import ENGINES

SEPARATOR = "-- [end of statement]\n"
SEPARATED = [engine for engine in ENGINES if engine != "postgres"]
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)
_PLSQL = ("begin", "declare", "create or replace package", "create or replace type")


def plain_statements(engine: str) -> list[str]:
    """Return the statements of a plain script, without comments."""
    return [whole(text) for text in migrate.plain_script(engine).split(SEPARATOR)]


def whole(text: str) -> str:
    """Return a statement without the comments before it."""
    lines = text.strip().splitlines()
    first = next(at for at, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[first:])


def client_statements(engine: str) -> list[str]:
    """Return the statements that the engine's own client sends for its script."""
    _, parts = split(migrate.script(engine))
    cut = {"mysql": statements, "sqlserver": batches, "oracle": units}[engine]
    found = [whole(statement) for part in parts for statement in cut(part.text)]
    return [statement for statement in found if statement != "set noexec off;"]


def flyway_text(engine: str) -> str:
    """Return the one file for Flyway."""
    (text,) = migrate.flyway_files(engine).values()
    return text


@pytest.mark.parametrize("engine", SEPARATED)
def test_plain_script_has_the_clients_statements(engine: str) -> None:
    plain = plain_statements(engine)
    settings = 0 if engine == "oracle" else 1
    closing = 2 if engine == "mysql" else 0
    assert plain[settings : len(plain) - closing] == client_statements(engine)


def test_postgres_plain_script_has_the_clients_sections() -> None:
    _, parts = split(migrate.plain_script("postgres"))
    _, given = split(migrate.script("postgres"))
    bare = [Section(part.kind, part.name, part.text.strip()) for part in parts]
    assert bare[1:-1] == [Section(part.kind, part.name, part.text.strip()) for part in given[:-1]]
    assert (given[-1].name, parts[0].name, parts[-1].name) == ("committed", "settings", "settings")


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_script_has_no_client_command(engine: str) -> None:
    text = migrate.plain_script(engine)
    commands = re.compile(r"\\|:\w|delimiter\b|source\b|go\b|@|/$|begin;|commit;", re.IGNORECASE)
    assert [line for line in text.splitlines() if commands.match(line)] == []
    if engine == "oracle":
        assert [line for line in text.splitlines() if is_client(line)] == []


@pytest.mark.parametrize("engine", SEPARATED)
def test_no_source_line_looks_like_a_separator(engine: str) -> None:
    assert SEPARATOR not in migrate.script(engine)
    assert f"{SEPARATOR}{SEPARATOR}" not in migrate.plain_script(engine)
    assert "[end of statement]" in migrate.plain_script(engine).split("-- [before", 1)[0]


def test_postgres_script_restores_every_setting() -> None:
    text = migrate.plain_script("postgres")
    outside = re.sub(
        r"^create or replace .*?^as \$\$.*?^\$\$;", "", text, flags=re.MULTILINE | re.DOTALL
    )
    changed = set(re.findall(r"^ *set local (\w+) ", outside, re.MULTILINE))
    changed |= set(re.findall(r"set_config\(\s*'([a-z_]+)'", outside))
    saved = re.search(r"unnest\(array\[(.*?)\]\)", outside, re.DOTALL)
    assert saved is not None
    assert changed == {*re.findall(r"'(\w+)'", saved[1]), "search_path"}


@pytest.mark.parametrize("engine", ENGINES)
def test_flyway_file_has_the_plain_scripts_statements(engine: str) -> None:
    """Split as Flyway's documentation describes; Flyway itself is not run."""
    text = flyway_text(engine)
    assert list(migrate.flyway_files(engine)) == ["V0001__rowq_0_1_0.sql"]
    assert "${" not in text
    if engine == "postgres":
        _, parts = split(text)
        assert parts == split(migrate.plain_script(engine))[1]
        return
    if engine == "mysql":
        found = list(statements(text))
    elif engine == "sqlserver":
        found = list(batches(text))
    else:
        found = flyway_units(text)
    assert [whole(statement) for statement in found] == plain_statements(engine)


def flyway_units(text: str) -> list[str]:
    """Split a script for Oracle: PL/SQL ends with a line of /, other SQL with a semicolon."""
    found: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        if not lines and (not line or line.startswith("--")):
            continue
        is_plsql = lines[0].startswith(_PLSQL) if lines else line.startswith(_PLSQL)
        if is_plsql and line == "/":
            found.append("\n".join(lines))
            lines = []
            continue
        lines.append(line)
        if not is_plsql and line.endswith(";"):
            found.append("\n".join(lines).removesuffix(";"))
            lines = []
    assert not lines
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_flyway_file_fits_into_a_transaction(engine: str) -> None:
    never = r"\b(create|drop|alter) (database|tablespace|subscription|system|fulltext)\b"
    alone = r"^(vacuum|reindex|discard|backup|restore|reconfigure)\b|index concurrently"
    text = _COMMENT.sub("", flyway_text(engine))
    code = re.sub(r"\$\$.*?\$\$|'[^']*'", "''", text, flags=re.DOTALL)
    if engine != "mysql":
        assert not re.findall(f"{never}|{alone}", code, re.MULTILINE)


@pytest.mark.parametrize("engine", ENGINES)
def test_alembic_files_form_a_branch_of_revisions(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    releases = use_released(copied_without_history(tmp_path, engine), monkeypatch)
    first = migrate.alembic_files(engine)
    change_everything(releases)
    both = migrate.alembic_files(engine)
    assert {name: both[name] for name in first} == first
    assert sorted(both) == [
        f"rowq_{number:04d}.{suffix}"
        for number in (1, 2)
        for suffix in ("down.sql", "py", "up.sql")
    ]
    facts = [assigned(both[f"rowq_{number:04d}.py"]) for number in (1, 2)]
    assert [fact["revision"] for fact in facts] == ["rowq_0001", "rowq_0002"]
    assert [fact["down_revision"] for fact in facts] == [None, "rowq_0001"]
    assert [fact["branch_labels"] for fact in facts] == [("rowq",), None]
    separator = engine_module(engine, "script", TOOLS).SCRIPT.SEPARATOR
    assert {fact["SEPARATOR"] for fact in facts} == {separator}
    assert migrate.alembic_files(engine, 1).keys() == both.keys() - first.keys()
    assert ("RQ805" in both["rowq_0001.down.sql"], "RQ805" in both["rowq_0002.down.sql"]) == (
        True,
        False,
    )


def assigned(source: str) -> dict[str, object]:
    """Return the constants of a module."""
    return {
        str(ast.unparse(node.targets[0])): ast.literal_eval(node.value)
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign)
    }


def test_write_files_never_changes_an_existing_file(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert migrate.write_files(folder, {"a": "1\n"}) == [folder / "a"]
    assert migrate.write_files(folder, {"a": "1\n", "b": "2\n"}) == [folder / "b"]
    with pytest.raises(migrate.FileInTheWayError, match="a exists with other content"):
        migrate.write_files(folder, {"a": "other\n", "c": "3\n"})
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]
    assert (folder / "a").read_text(encoding="utf-8") == "1\n"
