"""Every engine has each piece that docs/contributing.md names, and its packages for the tests."""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rowq.engines import TOOLS, engine_module, engines
from rowq.engines.base import Engine
from rowq.tools.doctor.check import EngineChecks
from rowq.tools.migrate.client_script import BaseScript, Bookkeeping
from rowq.tools.migrate.inspection import BaseInspection
from rowq.tools.migrate.installer import BaseInstaller
from tests.engines.provide import PROVIDERS
from tests.helpers.dialects import DIALECTS
from tests.static.sources import ROOT, SQL

PACKAGE = ROOT / "python_client" / "rowq"
HALVES = (PACKAGE / "engines", PACKAGE / "tools" / "engines")
"""The packages with the engines' modules for clients, and for tools."""
NAMES = [engine.name for engine in engines()]


def section() -> str:
    """Return the section of docs/contributing.md about adding an engine."""
    text = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    return text.partition("\n## Add an engine\n")[2].partition("\n## ")[0]


def pieces() -> list[str]:
    """Return the paths in the section, with the placeholder <engine>."""
    return [piece for piece in re.findall(r"`([^`]+)`", section()) if "<engine>" in piece]


def files() -> list[Path]:
    """Return the files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def imported(module: Path) -> Iterator[str]:
    """Yield the modules that a file imports, also by name in a text."""
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
def test_engine_has_every_piece_in_the_readme(engine: str) -> None:
    paths = [piece for piece in pieces() if "/" in piece]
    assert len(paths) > 20
    named = {path: path.replace("<engine>", engine) for path in paths}
    assert [path for path, place in named.items() if not list(ROOT.glob(place))] == []


def test_readme_names_every_module_of_all_engines() -> None:
    for half in HALVES:
        modules = [{path.stem for path in (half / name).glob("*.py")} for name in NAMES]
        place = f"{half.relative_to(ROOT).as_posix()}/<engine>/"
        named = {Path(piece).stem for piece in pieces() if piece.startswith(place)}
        assert set.intersection(*modules) - {"__init__"} == named


def test_sql_and_migrations_have_one_folder_per_engine() -> None:
    for folder, others in ((SQL, {"generate"}), (ROOT / "migrations", set())):
        found = {path.name for path in folder.iterdir() if path.is_dir()}
        assert found - others == set(NAMES)


def test_contract_has_a_type_for_every_engine() -> None:
    types = tomllib.loads((SQL / "contract.toml").read_text(encoding="utf-8"))["types"]
    assert types
    assert {kind: sorted(names) for kind, names in types.items()} == dict.fromkeys(types, NAMES)


def test_package_has_both_extras_of_every_engine() -> None:
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
        ("status", "Inspection", BaseInspection),
        ("script", "SCRIPT", BaseScript),
        ("script", "BOOKKEEPING", Bookkeeping),
        ("doctor", "CHECKS", EngineChecks),
    ],
)
def test_engine_modules_implement_their_interfaces(
    engine: str, part: str, name: str, kind: type[Any]
) -> None:
    assert f"`{name}`" in section()
    if part == "install" and engine == "sqlserver":
        missing = "pyodbc does not load; to run it: apt-get install unixodbc"
        pytest.importorskip("pyodbc", reason=missing, exc_type=ImportError)
    package = {} if part == "engine" else {"package": TOOLS}
    found = getattr(engine_module(engine, part, **package), name)
    if isinstance(found, type):
        assert issubclass(found, kind)
        assert not inspect.isabstract(found)
    else:
        assert isinstance(found, kind)


def engine_of(module: str) -> str | None:
    """Return the engine of a module, or None."""
    found = re.match(rf"rowq\.(?:\w+\.)*({'|'.join(NAMES)})(?=\.|$)", module)
    return found[1] if found else None


def module_of(path: Path) -> str:
    """Return the module name of a file of the package."""
    return ".".join(("rowq", *path.relative_to(PACKAGE).with_suffix("").parts))


def test_engine_modules_are_imported_by_their_engine_only() -> None:
    others = [
        f"{module_of(path)} imports {name}"
        for path in files()
        for name in imported(path)
        if engine_of(name) not in {None, engine_of(module_of(path))}
    ]
    assert others == []


def test_every_engine_has_modules_in_every_layer() -> None:
    found = {(module_of(path).split(".")[1], engine_of(module_of(path))) for path in files()}
    assert {ring for ring, engine in found if engine} == {"engines", "worker", "tools", "contrib"}
    assert {(ring, name) for ring in ("engines", "worker", "tools") for name in NAMES} <= found


@pytest.mark.parametrize("engine", NAMES)
def test_engine_has_its_packages_for_tests(engine: str) -> None:
    folder = ROOT / "tests" / "engines" / engine
    pieces = ("server", "providers", "dialect", "catalog", "tables")
    assert [piece for piece in pieces if not (folder / f"{piece}.py").is_file()] == []
    for name in ("engine_only", "security"):
        assert list((ROOT / "tests" / name / engine).glob("test_*.py"))
    providers = import_module(f"tests.engines.{engine}.providers").PROVIDERS
    assert {provider.engine for provider in providers} == {engine}
    assert set(providers) <= set(PROVIDERS)
    assert DIALECTS[engine] is import_module(f"tests.engines.{engine}.dialect").DIALECT


def test_tests_have_no_package_of_another_engine() -> None:
    folders = {path.name for path in (ROOT / "tests" / "engines").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(NAMES)
