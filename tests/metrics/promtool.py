"""promtool and prometheus, which are Debian's package prometheus."""

import shutil
import subprocess

import pytest


def program(name: str) -> str:
    """Return the path of a program of Prometheus's; skips the test where it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}; to run it: apt-get install prometheus")
    return found


def promtool(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool to its end; `given` is its standard input."""
    return subprocess.run(
        [program("promtool"), *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
