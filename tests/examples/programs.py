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
    """How the programs of a language are started.

    worker: the command, to which the name of a queue is added. enqueue: the same, to which the
    name of a queue and the number of an order are added. environment: what is added to that of the
    tests, the way to the database above all. directory: where they are started.
    close: called when they have ended.
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
        """Compile or copy the programs to the directory target, and say how they are started.

        Skips the test where what they need is missing.
        """


def language(name: str) -> Language:
    """Return what is said of a language."""
    return cast(Language, importlib.import_module(f"tests.examples.languages.{name}"))


def languages() -> list[str]:
    """Return the names of all languages."""
    return sorted(path.stem for path in Path(__file__).with_name("languages").glob("*.py"))


def need(program: str, packages: str) -> str:
    """Return the path of a program; skip the test where there is none.

    packages: what to tell apt-get to install.
    """
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"no {program}{TO_RUN}apt-get install {packages}")
    return found
