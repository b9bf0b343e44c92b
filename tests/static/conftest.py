"""Fixtures of the static checks."""

import pytest

from tests.static.plsql import tools
from tests.static.required import need


@pytest.fixture(scope="session")
def grammar() -> None:
    """Skip a test if the PL/SQL grammar is missing; see required.py."""
    need(tools.missing(), "ROWQ_REQUIRE_PLSQL")
