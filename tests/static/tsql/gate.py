"""Check T-SQL files with Microsoft's parser and model, in another process.

The parser has the grammar of SQL Server 2017 and 2019; the model resolves names over all files of
sql/sqlserver. rules.py adds checks of column counts, arguments and unknown functions.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rowq.tools.engines.sqlserver.script import SCRIPT
from tests.static.tsql import tools

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SOURCES = ROOT / "sql" / "sqlserver"

_DIRECTIVE = re.compile(r"^(?::|!!).*$", re.MULTILINE)


@dataclass(frozen=True)
class Problem:
    """A finding: its position, code (syntax 46010, SQL71502 ...) and text."""

    name: str
    line: int
    column: int
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}: {self.code}: {self.text}"


@dataclass(frozen=True)
class Script:
    """A named text to check, whose batches end with `go`."""

    name: str
    text: str


def product() -> list[Script]:
    """Return the files of sql/sqlserver, and the files made of them."""
    paths = [
        path
        for room in ("tables", "internal", "routines", "")
        for path in sorted((SOURCES / room).glob("*.sql"))
        if path.name != "install.sql"
    ]
    made = SCRIPT.assembled(SOURCES).items()
    return [*map(script, paths), *(Script(f"sql/sqlserver/{name}", text) for name, text in made)]


def script(path: Path) -> Script:
    """Return a file as a script, named by its path from the repository's root."""
    full = path.resolve()
    name = full.relative_to(ROOT).as_posix() if full.is_relative_to(ROOT) else str(path)
    return Script(name, path.read_text(encoding="utf-8"))


def check(asked: Sequence[Script], context: Iterable[Script] = ()) -> list[Problem]:
    """Return the findings in scripts; `context` has more scripts that define names.

    Raises:
        RuntimeError: the checker failed.
    """
    names = {script.name for script in asked}
    return check_each(
        [[*(script for script in context if script.name not in names), *asked]], names
    )[0]


def check_each(databases: Sequence[Sequence[Script]], names: Iterable[str]) -> list[list[Problem]]:
    """Return the findings in the scripts of these names, for each database."""
    work = {
        "asked": sorted(names),
        "databases": [list(map(_document, database)) for database in databases],
    }
    return [[Problem(**problem) for problem in found] for found in _run(work)]


def _document(script: Script) -> dict[str, str]:
    """Return a script without sqlcmd commands; blank lines keep line numbers."""
    return {"name": script.name, "text": _DIRECTIVE.sub("", script.text)}


def _run(work: dict[str, object]) -> list[list[dict[str, Any]]]:
    program = [sys.executable, "-m", "tests.static.tsql.checker"]
    done = subprocess.run(
        program,
        input=json.dumps(work),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **tools.environment()},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the T-SQL checker failed:\n{done.stderr}")
    result: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return result
