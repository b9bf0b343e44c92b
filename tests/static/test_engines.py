"""Every engine has each piece that sql/README.md names, and nobody else imports its package."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowq.doctor.check import EngineChecks
from rowq.engines import engines, part_of
from rowq.engines.base import Engine
from rowq.migrate.bookkeeping import Bookkeeping
from rowq.migrate.client_script import BaseScript
from rowq.migrate.installer import BaseInstaller
from rowq.migrate.look import BaseLook
from tests.static.sources import ROOT, SQL

PACKAGE = ROOT / "python_client" / "rowq"
NAMES = [engine.name for engine in engines()]


def section() -> str:
    """Return what sql/README.md says about adding an engine."""
    text = (SQL / "README.md").read_text(encoding="utf-8")
    return text.partition("\n## Adding an engine\n")[2].partition("\n## ")[0]


def pieces() -> list[str]:
    """Return the paths that the section names, with the engine's name left open."""
    return [piece for piece in re.findall(r"`([^`]+)`", section()) if "<engine>" in piece]


def imported(module: Path) -> Iterator[str]:
    """Yield the names of the modules that a file imports, or names in a text to import."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(name), names=names):
                yield name
                yield from (f"{name}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if re.fullmatch(r"rowq(\.\w+)+", text):
                yield text


@pytest.mark.parametrize("engine", NAMES)
def test_an_engine_has_every_piece_that_the_readme_names(engine: str) -> None:
    paths = [piece for piece in pieces() if "/" in piece]
    assert len(paths) > 20
    named = {path: path.replace("<engine>", engine) for path in paths}
    assert [path for path, place in named.items() if not list(ROOT.glob(place))] == []


def test_the_readme_names_every_module_that_all_engines_have() -> None:
    modules = [{path.stem for path in (PACKAGE / name).glob("*.py")} for name in NAMES]
    named = {Path(piece).stem for piece in pieces() if piece.startswith("python_client/")}
    assert set.intersection(*modules) - {"__init__"} == named


def test_the_folders_of_sql_and_migrations_are_those_of_the_engines() -> None:
    for folder, others in ((SQL, {"generate"}), (ROOT / "migrations", set())):
        found = {path.name for path in folder.iterdir() if path.is_dir()}
        assert found - others == set(NAMES)


def test_the_contract_has_a_type_for_every_engine() -> None:
    types = tomllib.loads((SQL / "contract.toml").read_text(encoding="utf-8"))["types"]
    assert types
    assert {kind: sorted(names) for kind, names in types.items()} == dict.fromkeys(types, NAMES)


def test_the_package_has_both_extras_of_every_engine() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {piece for piece in pieces() if "/" not in piece}
    assert wanted == {"<engine>", "<engine>-driver"}
    extras = {piece.replace("<engine>", name) for piece in wanted for name in NAMES}
    assert extras <= project["optional-dependencies"].keys()


@pytest.mark.parametrize("engine", NAMES)
@pytest.mark.parametrize(
    ("part", "name", "kind"),
    [
        ("engine", "ENGINE", Engine),
        ("install", "Installer", BaseInstaller),
        ("status", "Look", BaseLook),
        ("script", "SCRIPT", BaseScript),
        ("statements", "BOOKKEEPING", Bookkeeping),
        ("doctor", "CHECKS", EngineChecks),
    ],
)
def test_what_others_ask_an_engine_for_is_whole(
    engine: str, part: str, name: str, kind: type[Any]
) -> None:
    assert f"`{name}`" in section()
    if part == "install" and engine == "sqlserver":
        missing = "pyodbc does not load; to run it: apt-get install unixodbc"
        pytest.importorskip("pyodbc", reason=missing, exc_type=ImportError)
    found = getattr(part_of(engine, part), name)
    if isinstance(found, type):
        assert issubclass(found, kind)
        assert not inspect.isabstract(found)
    else:
        assert isinstance(found, kind)


def test_nobody_else_imports_the_package_of_an_engine() -> None:
    own = re.compile(rf"rowq\.({'|'.join(NAMES)})(\.|$)")
    strangers = [
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in NAMES
        for name in imported(path)
        if own.match(name)
    ]
    assert strangers == []


@pytest.mark.parametrize("engine", NAMES)
def test_an_engine_imports_no_other_one(engine: str) -> None:
    others = re.compile(rf"rowq\.({'|'.join(name for name in NAMES if name != engine)})(\.|$)")
    names = {name for path in (PACKAGE / engine).glob("*.py") for name in imported(path)}
    assert [name for name in sorted(names) if others.match(name)] == []
