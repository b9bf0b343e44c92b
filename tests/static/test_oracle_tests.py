"""The SQL in the tests for Oracle, for the grammar: no server has run it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from rowq.tools.engines.oracle.doctor import CHECKS
from rowq.tools.engines.oracle.script import BOOKKEEPING
from rowq.tools.migrate.release import release_for
from rowq.worker.engines import oracle as work
from tests.engine_only.oracle.test_settings import STRANGE
from tests.engines.oracle import tables as oracle_tables
from tests.engines.oracle.session import spelled
from tests.static.plsql.gate import Script
from tests.static.sources import ROOT

MODULES = sorted(
    [
        *(ROOT / "tests" / "engine_only" / "oracle").glob("*.py"),
        *(ROOT / "tests" / "engines" / "oracle").glob("*.py"),
    ]
)
STATEMENT = re.compile(
    r"\s*(?:select|insert into|update|delete from|merge into|declare|begin|lock table"
    r"|alter index|create table|drop table)\s.*",
    re.DOTALL,
)
NO_SQL = re.compile(r"\s*(?:begin rowq\.\{|select \(\?!|insert into \.\*|select nonsense)")
"""Beginnings of fragments and patterns."""


def texts(module: Path) -> Iterator[str]:
    """Yield the statements in a module's texts, with names for values."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        text = ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values
            )
        if STATEMENT.fullmatch(text) and not NO_SQL.match(text) and "{" not in text:
            yield text


def script(name: str, text: str) -> Script:
    """Return a statement for the gate, with names for binds."""
    bound = re.sub(r"(?<![:\w]):(\w+)", r"x\1", spelled(text))
    return Script(name, f"{bound.strip()}\n/\n")


def statements() -> list[Script]:
    """Return the statements of the tests, the doctor, a worker's transaction and migrations."""
    found = [
        script(f"{module.name} {number}", text)
        for module in MODULES
        for number, text in enumerate(texts(module))
    ]
    moves = [
        oracle_tables._MOVE.format(table=table, part="queue_id = 1", which=which, how=how)
        for table, which, how in (*oracle_tables._SHIFTS, oracle_tables._CHECKS)
    ]
    looks = [CHECKS.now, CHECKS.version, *(setting.query for setting in CHECKS.settings)]
    sets = [f"alter session set {one}" for some in STRANGE.values() for one in some]
    works = [work._BEGIN, work._KEEP, work._UNDO]
    first = release_for("oracle").get(1)
    notes = [text for what in ("apply", "rollback") for text, _ in BOOKKEEPING.records(first, what)]
    asked = (*moves, *looks, *sets, *works, *notes)
    return [*found, *(script(text[:40], text) for text in asked)]


def test_oracle_tests_contain_sql() -> None:
    assert len(statements()) > 80
