"""The layers of the Python package: each module is in one, and the client is small.

import-linter checks that a layer imports only lower ones: make lint.
"""

import ast
from pathlib import Path

from sql.generate.layers import PACKAGE, layers
from sql.generate.markers import by_hand
from tests.static.test_generated import has_note

MOST_LINES = 6600
"""Maximum size of the client, without generated code."""


def modules(folder: Path) -> set[str]:
    """Return the names of the modules and packages in a folder."""
    found = {path.name.removesuffix(".py") for path in folder.iterdir()}
    return {name for name in found if name.isidentifier() and name[0] != "_"}


def client() -> list[Path]:
    """Return the files of the client: rowq itself, and what a client needs of the engines."""
    return [*PACKAGE.glob("*.py"), *(PACKAGE / "engines").rglob("*.py")]


def test_modules_are_in_layers() -> None:
    placed = [name for names in layers() for name in names]
    assert len(set(placed)) == len(placed)
    tools = {f"tools.{name}" for name in modules(PACKAGE / "tools")}
    data = {"sql", "migrations"}  # An installed package has these beside its modules.
    assert set(placed) == (modules(PACKAGE) - {"tools"} - data) | tools


def lines_by_hand(path: Path) -> list[str]:
    """Return the lines of a file that are not generated."""
    return [] if has_note(str(path)) else by_hand(path.read_text(encoding="utf-8")).splitlines()


def test_client_has_at_most_6600_lines() -> None:
    assert len(client()) > 40
    assert sum(len(lines_by_hand(path)) for path in client()) <= MOST_LINES


MAY_BE_MISSING = {
    "contrib/opentelemetry/__init__.py": {"rowq.contrib.opentelemetry.traces"},
    "tools/command/web.py": {"rowq.web", "rowq.web.passwords", "rowq.web.serving"},
    "tools/program.py": {"rowq.tools.command.main"},
    "web/pages.py": {"rowq.tools.doctor"},
    "web/serving.py": {"rowq.web.limits"},
}
"""Modules that need a driver or an extra, by the files that import them on first use."""


def hidden_imports(path: Path) -> set[str]:
    """Return the modules of rowq that functions of a file import."""
    return {
        node.module or ""
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rowq.")
    }


def test_functions_import_optional_modules_only() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    hidden = {name: names for name, path in found.items() if (names := hidden_imports(path))}
    assert hidden == MAY_BE_MISSING
