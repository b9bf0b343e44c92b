"""Directory for a private server."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a temporary directory that all users can reach."""
    directory = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    yield directory / "server"
    shutil.rmtree(directory)


@pytest.fixture(autouse=True)
def _passable_parent(home: Path) -> None:
    home.parent.chmod(0o711)
