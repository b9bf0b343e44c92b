"""An installed rowq finds its SQL and migrations inside the package."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rowq.tools import migrate
from rowq.tools.migrate.frozen import migration_files
from tests.static.sources import ENGINES, ROOT

WHEEL = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"][
    "build"
]["targets"]["wheel"]
PRINT = """
import sys, rowq
from rowq.tools import migrate
from rowq.tools.migrate.frozen import migration_files
assert rowq.__file__.startswith(sys.argv[2])
sys.stdout.write(migrate.script(sys.argv[1]))
"""

LIST = """
import sys
from yoyo import read_migrations
print(*(each.id for each in read_migrations(f"package:rowq:migrations/{sys.argv[1]}")))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy all files as in the wheel, and return the directory of the package."""
    folder = tmp_path_factory.mktemp("site-packages")
    assert set(WHEEL["only-include"]) == set(WHEEL["sources"])
    for source in sorted(WHEEL["sources"]):
        target = folder / WHEEL["sources"][source]
        leave = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / source, target, ignore=leave, dirs_exist_ok=True)
    return folder


def run(program: str, engine: str, installed: Path) -> str:
    """Run a program with the installed package, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program, engine, str(installed)],
        env={**os.environ, "PYTHONPATH": str(installed), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("engine", ENGINES)
def test_installed_package_has_the_whole_script(engine: str, installed: Path) -> None:
    assert run(PRINT, engine, installed) == migrate.script(engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_yoyo_reads_the_installed_migrations(engine: str, installed: Path) -> None:
    ids = [path.stem for path in migration_files(ROOT / "migrations" / engine)]
    assert run(LIST, engine, installed).split() == ids
