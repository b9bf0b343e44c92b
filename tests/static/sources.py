"""The SQL files and the contract, for static checks without a database."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rowq.engines.sqlserver.calls import procedure_name
from rowq.tools.migrate.frozen import SCRIPTS, migration_files, script_of
from rowq.tools.migrate.sources import TABLES, file_units, has_units
from tests.engines.base import TO_RUN

ROOT = Path(__file__).resolve().parent.parent.parent
SQL = ROOT / "sql"
MIGRATIONS = ROOT / "migrations"
CONTRACT: dict[str, Any] = tomllib.loads((SQL / "contract.toml").read_text(encoding="utf-8"))

ENGINES = sorted(path.parent.name for path in SQL.glob("*/install.sql"))
ROOMS = ("tables", "internal", "routines", "overloads")

HEADER_FIELDS = (
    "routine", "version", "purpose", "promise", "locks", "commits", "errors", "differs",
)  # fmt: skip
HEADER_DEFAULTS = {
    "version": "1",
    "promise": "none",
    "locks": "none",
    "commits": "never; the caller owns the transaction",
    "errors": "none",
    "differs": "nothing",
}
"""The defaults of a helper's header, which has no `routine` and no `promise`."""

EXAMPLES: dict[str, Any] = {
    "binary": b"\0",
    "boolean": True,
    "float": 1.5,
    "int32": 1,
    "int64": 1,
    "int64s": [1, 2],
    "json": {"a": 1},
    "text": "x",
    "timestamp": datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=1))),
}
"""A value for each contract type."""

_CALLED = re.compile(r"\browq\.(\w+)\(|(?<![\w.])(internal_\w+)|\bexec (?:@\w+ = )?rowq\.(\w+)")
_SENT = re.compile(r"'begin rowq\.(\w+)\(")
"""A dynamic call in Oracle's waiting routines."""
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_RAISED = re.compile(
    r"errcode = 'RQ(\d{3})'|signal sqlstate '45(\d{3})'|throw 52(\d{3}),"
    r"|raise_application_error\(\s*-20(\d{3})"
)
_FIELD = re.compile(rf"^-- ({'|'.join(HEADER_FIELDS)}) +(\S.*)$")


@cache
def files(*wanted: str) -> set[str]:
    """Return the files of the repository, or those that match git's pathspecs."""
    if not (shutil.which("git") and (ROOT / ".git").exists()):
        pytest.skip(f"no git, or no clone{TO_RUN}apt-get install git, and git clone")
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *wanted]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split("\0") if (ROOT / name).is_file()}


@dataclass(frozen=True, slots=True)
class Unit:
    """The SQL of one `create`: a routine, a helper or a table.

    room: its folder, such as internal. stem: its name in the contract, without `internal_`.
    """

    engine: str
    room: str
    stem: str
    text: str

    def __str__(self) -> str:
        return f"{self.room}/{self.stem}"


def sql_files(engine: str, *rooms: str) -> Iterator[Path]:
    """Yield an engine's files in these folders, all by default, in a fixed order."""
    for room in rooms or ROOMS:
        if room == "tables":
            yield SQL / engine / TABLES
        else:
            yield from sorted((SQL / engine / room).glob("*.sql"))


@cache
def sql_units(engine: str, *rooms: str) -> tuple[Unit, ...]:
    """Return an engine's units in these folders, all by default, in a fixed order."""
    return tuple(_read_units(engine, *rooms))


def _read_units(engine: str, *rooms: str) -> Iterator[Unit]:
    for path in sql_files(engine, *rooms):
        text = path.read_text(encoding="utf-8")
        relative = path.relative_to(SQL / engine).as_posix()
        if has_units(relative):
            for name, part in file_units(relative, text).items():
                room, stem = name.split("/")
                yield Unit(engine, room, stem, part)
        else:
            yield Unit(engine, path.parent.name, path.stem, text)


def unit_text(engine: str, name: str) -> str:
    """Return the text of a unit, such as internal/admit or routines/enqueue.sql."""
    room, stem = name.removesuffix(".sql").split("/")
    (text,) = (unit.text for unit in sql_units(engine, room) if unit.stem == stem)
    return text


def migration_scripts(engine: str) -> list[Path]:
    """Return the scripts beside an engine's migrations that are not scripts of releases."""
    released = {script_of(path) for path in migration_files(MIGRATIONS / engine)}
    return sorted({*(MIGRATIONS / engine / SCRIPTS).glob("*.sql")} - released)


def code_units() -> list[Unit]:
    """Return every routine and private helper of every engine."""
    return [unit for engine in ENGINES for unit in sql_units(engine, *ROOMS[1:])]


def label(value: object) -> str:
    """Return a short test id."""
    return f"{value.parent.name}/{value.stem}" if isinstance(value, Path) else str(value)


def routines_of(engine: str) -> dict[str, dict[str, Any]]:
    """Return the contract's entries of an engine's routines, reduced to that engine."""
    return {
        name: entry
        | {
            "parameters": [
                given
                for given in entry["parameters"]
                if _is_on(engine, CONTRACT["parameters"][given["name"]])
            ],
            "columns": [
                column for column in entry["columns"] if _is_on(engine, CONTRACT["columns"][column])
            ],
            "errors": [
                number
                for number in entry["errors"]
                if engine in entry.get("error_engines", {}).get(number, [engine])
            ],
            "promises": [
                number
                for number in entry["promises"]
                if engine in CONTRACT["promise_engines"].get(number, [engine])
            ],
        }
        for name, entry in CONTRACT["routine"].items()
        if _is_on(engine, entry)
    }


def _is_on(engine: str, entry: dict[str, Any]) -> bool:
    return engine in entry.get("engines", [engine])


def object_name(unit: Unit) -> str:
    """Return the name of a unit in the database."""
    return name_on(unit.engine, entry_name(unit))


def entry_name(unit: Unit) -> str:
    """Return the contract's name of a routine, or a helper's name with its prefix."""
    match unit.room:
        case "internal":
            # On Oracle, a helper that another package calls has no prefix.
            name = f"internal_{unit.stem}"
            return name if name_on(unit.engine, name) in unit.text else unit.stem
        case "overloads":
            return unit.stem.rpartition("_")[0]
        case _:
            return unit.stem


def name_on(engine: str, name: str) -> str:
    """Return the name of a routine on an engine."""
    return procedure_name(name) if engine == "sqlserver" else name


def header(text: str) -> dict[str, str]:
    """Return the fields of a routine's header in order, continuation lines joined."""
    fields: dict[str, str] = {}
    _, _, rest = re.split(r"\n(?=-- (routine|purpose) )", text, maxsplit=1)
    for line in rest.splitlines():
        match = _FIELD.match(line)
        if match:
            fields[match.group(1)] = match.group(2)
        elif line.startswith("--  "):
            fields[next(reversed(fields))] += " " + line[2:].strip()
        else:
            break
    return fields


def code_of(text: str) -> str:
    """Return a text without comments and with empty literals."""
    return _NO_CODE.sub(lambda found: "" if found.group().startswith("--") else "''", text)


def code(unit: Unit) -> str:
    """Return a unit without comments and literals, in one line."""
    return " ".join(code_of(unit.text).split())


def raised(text: str) -> set[str]:
    """Return the errors that a text raises directly."""
    return {"RQ" + "".join(numbers) for numbers in _RAISED.findall(text)}


def errors_of(engine: str, name: str) -> set[str]:
    """Return the errors that a routine or helper raises, directly or through calls."""
    found = _errors_and_calls_of(engine)
    waiting, seen, errors = [name], set[str](), set[str]()
    while waiting:
        dialect = waiting.pop()
        if dialect not in seen:
            seen.add(dialect)
            own, called = found.get(dialect, (set(), []))
            errors |= own
            waiting += called
    return errors


@cache
def _errors_and_calls_of(engine: str) -> dict[str, tuple[set[str], list[str]]]:
    """Return the direct errors and the calls of each routine and helper of an engine."""
    texts: dict[str, str] = {}
    for unit in sql_units(engine):
        name = object_name(unit)
        texts[name] = texts.get(name, "") + unit.text
    return {
        name: (
            raised(text),
            ["".join(names) for names in _CALLED.findall(code_of(text))] + _SENT.findall(text),
        )
        for name, text in texts.items()
    }


def words(field: str) -> list[str]:
    """Return the words of a header field; "none" means empty."""
    return [] if field == "none" else field.split()
