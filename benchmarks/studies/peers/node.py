"""The peers in Node.js.

`python -m benchmarks.studies.peers.node` installs them and Node.js in the virtual environment
(150 MB), from benchmarks/peers_node/package.json; `make bench` runs it if npm is installed.
"""

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.studies.peers.peer import AbsentError, Peer

FOLDER = Path(sys.prefix) / "peers_node"
"""The folder with the packages."""

_PROGRAMS = Path("benchmarks/peers_node")
_PACKAGES = Path(__file__).resolve().parents[2] / "peers_node" / "package.json"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
_NODE = FOLDER / "node_modules" / f"node-linux-{_MACHINES.get(platform.machine())}" / "bin/node"
FETCH = "apt-get install npm, then python -m benchmarks.studies.peers.node"


def _program(name: str) -> tuple[str, ...]:
    return (str(_NODE), str(_PROGRAMS / f"{name}.mjs"))


def _find(package: str) -> Callable[[], str]:
    """Return the `find` of a Peer for a package."""

    def find() -> str:
        if sys.platform != "linux" or platform.machine() not in _MACHINES:
            raise AbsentError("it runs on Linux on x86-64 or ARM only")
        try:
            text = (FOLDER / "node_modules" / package / "package.json").read_text("utf-8")
        except FileNotFoundError:
            raise AbsentError(f"its npm package is not installed: {FETCH}") from None
        if not _NODE.exists():
            raise AbsentError(f"Node.js is not installed: {FETCH}")
        return str(json.loads(text)["version"])

    return find


NODE_PEERS = [
    Peer(
        name="graphile-worker",
        origin="graphile-worker, npm",
        find=_find("graphile-worker"),
        program=_program("graphile_worker"),
        settings="localQueue of the batch's size (none for batches of 1); completeJobBatchDelay 0;"
        " addJob, or addJobs in bulk; pollInterval 2 s beside its notifications; for"
        " groups a queueName for each job",
    ),
    Peer(
        name="pg-boss",
        origin="pg-boss, npm",
        find=_find("pg-boss"),
        program=_program("pg_boss"),
        settings="queue with a partition of its own and notify; send, or insert in bulk; work with"
        " burstWhenBatchFull, notifyWorker after each batch of 1, useListenNotify; completed jobs"
        " are kept, as by default for 7 days",
        cannot={"group": "its policy key_strict_fifo is not set up here"},
    ),
]


def fetch() -> None:
    """Install the packages, a download of about 50 MB.

    Raises CalledProcessError if npm fails, FileNotFoundError if it is missing.
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    shutil.copy(_PACKAGES, FOLDER)
    quiet = ("--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
    subprocess.run(["npm", "install", *quiet, "--prefix", str(FOLDER)], check=True)


if __name__ == "__main__":
    fetch()
