"""Runs promtool and prometheus (Debian package prometheus)."""

import shutil
import subprocess

import pytest


def program(name: str) -> str:
    """Return the path of a Prometheus program; skip the test without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}; to run it: apt-get install prometheus")
    return found


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool; `given` is its standard input."""
    return subprocess.run(
        [program("promtool"), *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
