"""JavaScript on Node.js."""

import shutil
from pathlib import Path

from tests.engines.base import Server
from tests.examples.programs import EXAMPLES, Programs
from tests.helpers.npm import package

_DRIVERS = {"mysql": "mysql2", "postgres": "pg"}
ENGINES = tuple(_DRIVERS)


def programs(server: Server, url: str, target: Path) -> Programs:
    """Copy the programs next to the tests' npm packages."""
    modules = package(_DRIVERS[server.engine]).parent
    folder = shutil.copytree(EXAMPLES / "node", target / "node")
    (folder / "node_modules").symlink_to(modules)
    return Programs(
        worker=("node", "worker.js"),
        enqueue=("node", "enqueue.js"),
        environment={"DATABASE_URL": url},
        directory=folder,
    )
