"""Skip a check if its programs are missing, or fail if they are required."""

import os

import pytest


def need(missing: str | None, variable: str) -> None:
    """Skip the test if a program is missing, or fail it if the environment variable is set.

    missing: the reason and the remedy, None if nothing is missing.
    """
    if missing is None:
        return
    if os.environ.get(variable):
        pytest.fail(f"{variable} is set, but {missing}")
    pytest.skip(
        f"{missing}; to run it: make install, see tests/README.md; {variable}=1 makes it a failure"
    )
