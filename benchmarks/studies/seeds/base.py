"""The classes that a seed's experiment is made of: the seed and its forms."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.harness.results import Results
from benchmarks.harness.scenarios import Scenario
from benchmarks.harness.targets import Target
from benchmarks.studies.seeds.client import RowqClient, SqlClient, rowq_file
from benchmarks.studies.seeds.dialects import DIALECTS, Dialect
from benchmarks.studies.seeds.sections import read_sections
from rowq.tools.migrate import migrate


@dataclass(frozen=True, slots=True)
class Form:
    """A form of queue that takes part.

    origin: what it is, in a few words. install: takes the URL of an empty database.
    open_client: takes the URL and the greatest length of a body in bytes; it is sent to other
    processes.
    """

    name: str
    origin: str
    install: Callable[[str], object]
    open_client: Callable[[str, int], SqlClient]
    version: str = ""


Kind = Callable[[Dialect, str, Form, Scenario], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Seed:
    """One document's experiment; see the head of this package.

    forms: the forms on an engine, rowq among them. kinds: how each kind of scenario is run.
    columns: figures and their headings by kind. targets: takes the engine's name and its results.
    words: paragraphs under the seed's heading.
    """

    name: str
    title: str
    words: str
    folder: Path
    forms: Callable[[str], list[Form]]
    kinds: Mapping[str, Kind]
    columns: Mapping[str, Mapping[str, str]]
    targets: Callable[[str, Results], Iterable[Target]]


def sql_form(
    name: str,
    origin: str,
    folder: Path,
    engine: str,
    open_client: type[SqlClient] = SqlClient,
) -> Form:
    """Return the form that stands in <folder>/<engine>/<name>.sql."""
    path = folder / engine / f"{name}.sql"
    return Form(
        name,
        origin,
        partial(_install, engine, path),
        partial(open_client, DIALECTS[engine], path),
    )


def sql_forms(origins: Mapping[str, str], folder: Path, engine: str) -> list[Form]:
    """Return the forms of these names, each with what it is."""
    return [sql_form(name, origin, folder, engine) for name, origin in origins.items()]


def rowq_form(engine: str) -> Form:
    """Return rowq as `rowq migrate` installs it."""
    open_client = partial(RowqClient, DIALECTS[engine], rowq_file(engine))
    return Form("rowq", "this checkout", _install_rowq, open_client, version("rowq"))


def _install(engine: str, path: Path, url: str) -> None:
    dialect = DIALECTS[engine]
    with dialect.open(url) as session:
        session.script(dialect.room)
        session.script(read_sections(path)["install"])


def _install_rowq(url: str) -> None:
    migrate(url)
