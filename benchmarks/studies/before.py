"""Installs rowq of another commit, to be measured in turn with the checkout's."""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.harness.report import spread_text
from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario

NAME = "rowq_before"
_MIGRATE = "import sys; from rowq.tools.migrate import migrate; migrate(sys.argv[1])"
_FIGURES = {
    "messages_per_second": "rate",
    "wal_bytes_per_message": "log",
    "server_cpu_us_per_message": "server's CPU",
}


def rowq_before(rowq: Any, root: Path, commit: str, to: Path) -> Any:
    """Return a system that is rowq at a commit.

    Args:
        rowq: the system that is rowq as it is now; the calls and their client stay the same.
        root: the checkout.
        commit: whatever git knows as one.
        to: a directory for the files of that commit, which is emptied first.
    """
    return replace(
        rowq, name=NAME, version="", origin=f"commit {commit}", install=_installer(root, commit, to)
    )


def beside(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Return the scenarios with both systems and no other one."""
    return [replace(scenario, systems=["rowq", NAME]) for scenario in scenarios]


def ratios(data: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each scenario and figure: what rowq has for one of rowq_before."""
    results = Results(data)
    for scenario in results.scenarios:
        known = results.rounds(scenario, NAME)[0]
        for figure, word in _FIGURES.items():
            if figure in known:
                found = results.between(scenario, figure, "rowq", NAME)
                yield f"{scenario}: {word}, rowq / {NAME}: {spread_text(found)}"


def _installer(root: Path, commit: str, to: Path) -> Callable[[str], object]:
    command = ["git", "-C", str(root), "archive", commit, "python_client", "sql", "migrations"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    # Remove what another run has left, so that files of two commits are never mixed.
    shutil.rmtree(to, ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        files.extractall(to, filter="data")
    environment = os.environ | {"PYTHONPATH": str(to / "python_client")}

    def install(url: str) -> None:
        subprocess.run([sys.executable, "-c", _MIGRATE, url], check=True, env=environment, cwd=to)

    return install
