"""A directory for a private server."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.slow import mark_slow


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a directory of our own that any user can reach."""
    directory = Path(tempfile.mkdtemp(prefix="rowq-test-"))
    yield directory / "server"
    shutil.rmtree(directory)


@pytest.fixture(autouse=True)
def _passable_parent(home: Path) -> None:
    home.parent.chmod(0o711)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave these tests to make test-all and to .ci/run."""
    mark_slow(item, "runs the demo's orders")
