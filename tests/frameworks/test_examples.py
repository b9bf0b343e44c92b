"""The applications in examples/ do what their READMEs show, their own tests among that."""

import shutil
from pathlib import Path

import pytest

from tests.docs.test_examples import run_page
from tests.engines.base import Server
from tests.static.sources import ROOT


@pytest.mark.requires("psql")
@pytest.mark.parametrize("application", ["django", "fastapi"])
def test_an_application_does_what_its_readme_shows(
    server: Server, empty_database: str, tmp_path: Path, application: str
) -> None:
    folder = tmp_path / application
    ignored = shutil.ignore_patterns("__pycache__", ".pytest_cache", "rowq")
    shutil.copytree(ROOT / "examples" / application, folder, ignore=ignored)
    run_page(f"examples/{application}/README.md", server, empty_database, folder)
