"""PHP: pdo_pgsql."""

import shutil
import subprocess
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.engines.base import TO_RUN, Server
from tests.examples.programs import EXAMPLES, Programs, need

ENGINES = ("postgres",)
_PACKAGES = "php-cli php-pgsql"
_EXTENSIONS = {"pcntl", "pdo_pgsql", "posix"}


def programs(server: Server, url: str, target: Path) -> Programs:  # noqa: ARG001
    """Copy the programs; nothing is compiled."""
    php = need("php", _PACKAGES)
    modules = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout
    if missing := sorted(_EXTENSIONS - set(modules.split())):
        pytest.skip(f"php has no {missing}{TO_RUN}apt-get install {_PACKAGES}")
    words = ";".join(f"{word}={value}" for word, value in conninfo_to_dict(url).items())
    return Programs(
        worker=(php, "worker.php"),
        enqueue=(php, "enqueue.php"),
        environment={"DATABASE_DSN": f"pgsql:{words}"},
        directory=shutil.copytree(EXAMPLES / "php", target / "php"),
    )
