"""A shell with psql and jq."""

import os
import shutil
from pathlib import Path

from tests.engines.base import Server
from tests.engines.postgres.psql import psql_program
from tests.examples.programs import EXAMPLES, Programs, need

ENGINES = ("postgres",)


def programs(server: Server, url: str, target: Path) -> Programs:
    """Copy the programs, so that they leave no files behind."""
    need("jq", "jq")
    tools = os.pathsep.join([str(Path(psql_program(server)).parent), os.environ["PATH"]])
    folder = shutil.copytree(EXAMPLES / "shell", target / "shell")
    return Programs(
        worker=("./worker.sh",),
        enqueue=("./enqueue.sh",),
        environment={"DATABASE_URL": url, "PATH": tools},
        directory=folder,
    )
