"""npm packages for tests: make install puts those of tests/npm into .venv/npm."""

import shutil
import sys
from pathlib import Path

import pytest

_FOLDER = Path(sys.prefix) / "npm" / "node_modules"


def package(name: str) -> Path:
    """Return the folder of a package; skip the test if it is missing."""
    folder = _FOLDER / name
    if shutil.which("node") is None or not folder.is_dir():
        pytest.skip(f"no {name} of npm; to run it: apt-get install nodejs npm, make install")
    return folder
