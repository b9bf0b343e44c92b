"""Skips a check whose programs are missing, or fails it where they must be there."""

import os

import pytest


def need(missing: str | None, variable: str) -> None:
    """Go on where nothing is missing; otherwise skip, or fail where the variable is set.

    missing: why the check cannot run here and what to do about it, None when it can. variable: the
    name of the environment's variable that makes its absence a failure.
    """
    if missing is None:
        return
    if os.environ.get(variable):
        pytest.fail(f"{variable} is set, but {missing}")
    pytest.skip(
        f"{missing}; to run it: make install, see tests/README.md; {variable}=1 makes it a failure"
    )
