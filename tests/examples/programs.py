"""The programs of the examples; each language has a file in the folder languages.

Such a file has ENGINES, the engines that its programs run on, and a function that gets them ready:

    def programs(server: Server, url: str, target: Path) -> Programs
"""

import importlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import pytest

from tests.engines.base import TO_RUN, Server
from tests.static.sources import ROOT

EXAMPLES = ROOT / "docs" / "examples"


@dataclass(frozen=True, slots=True)
class Programs:
    """Commands of a language's programs.

    worker: the command; a queue name is appended. enqueue: the command; a queue name and an order
    number are appended. environment: additional variables, such as the URL. directory: the working
    directory.
    close: called after their end.
    """

    worker: Sequence[str]
    enqueue: Sequence[str]
    environment: Mapping[str, str]
    directory: Path = field(default=EXAMPLES)
    close: Callable[[], None] = field(default=lambda: None)


class Language(Protocol):
    """A file of `languages`."""

    ENGINES: Sequence[str]

    def programs(self, server: Server, url: str, target: Path) -> Programs:
        """Compile or copy the programs to `target`, and return their commands.

        Skips the test if a requirement is missing.
        """


def language(name: str) -> Language:
    """Return the module of a language."""
    return cast(Language, importlib.import_module(f"tests.examples.languages.{name}"))


def languages() -> list[str]:
    """Return the names of all languages."""
    return sorted(path.stem for path in Path(__file__).with_name("languages").glob("*.py"))


def need(program: str, packages: str) -> str:
    """Return the path of a program; skip the test if it is missing.

    packages: for apt-get install.
    """
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}{TO_RUN}apt-get install {packages}")
    return found
