"""The rings of the Python package: each module is in one, and the client is small.

That a ring imports only what is below it is a contract of import-linter: make lint.
"""

import ast
from pathlib import Path

from sql.generate.layers import PACKAGE, layers
from sql.generate.markers import by_hand
from tests.static.test_generated import says_so

MOST_LINES = 6500
"""What a person has to read to know the client; what make generate writes is not read."""


def modules(folder: Path) -> set[str]:
    """Return the names of the modules and packages in a folder."""
    found = {path.name.removesuffix(".py") for path in folder.iterdir()}
    return {name for name in found if name.isidentifier() and name[0] != "_"}


def client() -> list[Path]:
    """Return the files of the client: rowq itself, and what a client needs of the engines."""
    return [*PACKAGE.glob("*.py"), *(PACKAGE / "engines").rglob("*.py")]


def test_every_module_is_in_a_layer() -> None:
    placed = [name for names in layers() for name in names]
    assert len(set(placed)) == len(placed)
    tools = {f"tools.{name}" for name in modules(PACKAGE / "tools")}
    data = {"sql", "migrations"}  # In an installed package these stand beside the modules.
    assert set(placed) == (modules(PACKAGE) - {"tools"} - data) | tools


def lines_by_hand(path: Path) -> list[str]:
    """Return the lines of a file that are not generated."""
    return [] if says_so(str(path)) else by_hand(path.read_text(encoding="utf-8")).splitlines()


def test_the_client_has_no_more_lines_than_a_person_reads() -> None:
    assert len(client()) > 40
    assert sum(len(lines_by_hand(path)) for path in client()) <= MOST_LINES


MAY_BE_MISSING = {
    "contrib/opentelemetry/__init__.py": {"rowq.contrib.opentelemetry.traces"},
    "tools/command/web.py": {"rowq.web", "rowq.web.passwords", "rowq.web.serving"},
    "tools/program.py": {"rowq.tools.command.main"},
    "web/pages.py": {"rowq.tools.doctor"},
    "web/serving.py": {"rowq.web.limits"},
}
"""Modules that need a driver or an extra, by the files that import them when they are used."""


def hidden_imports(path: Path) -> set[str]:
    """Return the modules of rowq that functions of a file import."""
    return {
        node.module or ""
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rowq.")
    }


def test_functions_import_only_what_needs_something_that_may_be_missing() -> None:
    found = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    hidden = {name: names for name, path in found.items() if (names := hidden_imports(path))}
    assert hidden == MAY_BE_MISSING
