"""Parse the SQL and PL/SQL of sql/oracle with a grammar, without a database.

A file of `routines`, `internal` or `helpers` is parsed inside a package body. Any other file is a
script of units that end with a line of `/`. Parsing all files takes minutes, so digests of accepted
units are stored beside the grammar. accepted.txt has the digests of all accepted units and refused
planted errors, so that a new clone parses only changed units.
"""

import hashlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rowq.tools.engines.oracle.script import SCRIPT
from rowq.tools.migrate.sources import file_units, has_units
from tests.run.workers import processors
from tests.static.plsql import tools
from tests.static.shapes import uncommented

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SOURCES = ROOT / "sql" / "oracle"

TYPES = "internal/types.sql"
"""The types of the package body, parsed as one text."""

_ACCEPTED = tools.FOLDER / "accepted.json"
_RECORD = Path(__file__).with_name("accepted.txt")
"""The digests of accepted units; below a blank line, those of refused ones."""
_HEAD = "# Generated from sql/oracle by python -m tests.static.plsql. Do not edit.\n"

_LOCK = threading.Lock()

_BODY = "create or replace package body rowq as "
_SUBPROGRAM = re.compile(r"(?:(?:--[^\n]*)?\n)*(?:procedure|function|type|subtype)\b")
_CLIENT = re.compile(r"(?:@@?|set|whenever|prompt|define|undefine|exit|show|column|spool)\b.*")
"""SQL*Plus commands between units."""


@dataclass(frozen=True, order=True)
class Problem:
    """A finding: its position and text."""

    name: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line}:{self.column}: {self.text}"


@dataclass(frozen=True, order=True)
class Script:
    """A named text to check."""

    name: str
    text: str


def product() -> list[Script]:
    """Return sql/oracle and its packages, in a fixed order.

    Leave out the body of package rowq: its files are checked, and parsing it takes gigabytes.
    """
    assembled = [
        Script(f"sql/oracle/{name}", text)
        for name, text in SCRIPT.assembled(SOURCES).items()
        if name != "packages/rowq_body.sql"
    ]
    return sorted([*_files(), *assembled])


def _files() -> Iterator[Script]:
    """Yield the files, split into units: as one text they would take too long."""
    for path in SOURCES.rglob("*.sql"):
        relative = path.relative_to(SOURCES).as_posix()
        whole = script(path)
        if has_units(relative) and relative != TYPES:
            for name, text in file_units(relative, whole.text).items():
                yield Script(f"sql/oracle/{name}", text)
        else:
            yield whole


def script(path: Path) -> Script:
    """Return a file as a script, named by its path from the repository's root."""
    full = path.resolve()
    name = full.relative_to(ROOT) if full.is_relative_to(ROOT) else full
    return Script(str(name), full.read_text(encoding="utf-8"))


def check(scripts: Iterable[Script]) -> list[Problem]:
    """Return the grammar's findings in order; raise RuntimeError if the parser fails."""
    accepted = _accepted()
    units = {
        _digest(text): {"name": script.name, "text": text}
        for script in scripts
        for text in units_of(script.text)
    }
    unknown = {digest: unit for digest, unit in units.items() if digest not in accepted}
    if not unknown:
        return []
    # A run of the parser gets faster with each unit: use one run per processor.
    todo, runs = list(unknown.items()), processors()
    shares = [todo[start::runs] for start in range(runs)]
    with ThreadPoolExecutor(runs) as pool:
        return sorted(problem for found in pool.map(_parsed, shares) for problem in found)


def _parsed(units: list[tuple[str, dict[str, str]]]) -> list[Problem]:
    """Return the grammar's findings in some units, and store the digests of the others."""
    run = subprocess.run(
        ["node", str(tools.PARSER), str(tools.FOLDER)],
        input=json.dumps([unit for _, unit in units]),
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"the parser failed: {run.stderr.strip()[-1000:]}")
    problems = [Problem(**found) for found in json.loads(run.stdout)]
    faulty = {problem.name for problem in problems}
    with _LOCK:
        _store(_accepted() | {key for key, unit in units if unit["name"] not in faulty})
    return problems


def not_refused(planted: Iterable[Script]) -> list[Problem]:
    """Return a finding for each planted error that the grammar accepts.

    Scripts that accepted.txt lists as refused are not parsed.
    """
    refused = _recorded()[1]
    scripts = [script for script in planted if not _digests([script]) <= refused]
    found = {problem.name for problem in check(scripts)}
    text = "the grammar does not find the planted error"
    return [Problem(script.name, 1, 1, text) for script in scripts if script.name not in found]


def _store(digests: set[str]) -> None:
    """Replace the digests beside the grammar atomically: another process may read them."""
    new = _ACCEPTED.with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(sorted(digests)), encoding="utf-8")
    new.replace(_ACCEPTED)


def _accepted() -> set[str]:
    """Return the digests of accepted units."""
    return set(json.loads(_ACCEPTED.read_text(encoding="utf-8"))) if _ACCEPTED.exists() else set()


def is_recorded(everything: Iterable[Script], planted: Iterable[Script]) -> bool:
    """Return whether accepted.txt has exactly the digests of these scripts."""
    return _recorded() == (_digests(everything), _digests(planted))


def learn() -> None:
    """Copy the accepted digests of accepted.txt beside the grammar."""
    _store(_accepted() | _recorded()[0])


def record(everything: Iterable[Script], planted: Iterable[Script]) -> None:
    """Write accepted.txt for accepted scripts and refused ones."""
    parts = (_lines_of(_digests(scripts)) for scripts in (everything, planted))
    _RECORD.write_text(_HEAD + "\n\n".join(parts) + "\n", encoding="utf-8")


def _recorded() -> tuple[set[str], set[str]]:
    text = _RECORD.read_text(encoding="utf-8").removeprefix(_HEAD)
    accepted, _, refused = text.partition("\n\n")
    return set(accepted.split()), set(refused.split())


def _lines_of(digests: set[str]) -> str:
    ordered = sorted(digests)
    return "\n".join(" ".join(ordered[at : at + 5]) for at in range(0, len(ordered), 5))


def _digests(scripts: Iterable[Script]) -> set[str]:
    return {_digest(text) for script in scripts for text in units_of(script.text)}


def _digest(text: str) -> str:
    """Return the digest of a unit without comments and spaces."""
    code = " ".join(uncommented(text).split())
    return hashlib.sha256(code.encode() + _parser()).hexdigest()[:16]


@cache
def _parser() -> bytes:
    return tools.PARSER.read_bytes() + tools.PACKAGES.read_bytes()


def is_client(line: str) -> bool:
    """Return whether a line between units is a SQL*Plus command."""
    return _CLIENT.fullmatch(line) is not None


def units_of(text: str) -> list[str]:
    """Return the units of a text, each with blank lines before it to keep line numbers."""
    if _SUBPROGRAM.match(text):
        return [f"{_BODY}{text}\nend rowq;\n"]
    units, lines, skipped = [], list[str](), 0
    for number, line in enumerate(text.splitlines(), start=1):
        is_between = not any(line.strip() and not line.startswith("--") for line in lines)
        if line == "/" or (is_between and is_client(line)):
            if not is_between:
                units.append("\n" * skipped + "\n".join(lines) + "\n")
            lines, skipped = [], number
        else:
            lines.append(line)
    if any(line.strip() and not line.startswith("--") for line in lines):
        units.append("\n" * skipped + "\n".join(lines) + "\n")
    return units
