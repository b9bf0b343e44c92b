"""Reads the SQL files and the contract for the static checks. No database is needed."""

import re
import tomllib
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path
from typing import Any

from rowq.engines.sqlserver.calls import procedure_name

ROOT = Path(__file__).resolve().parent.parent.parent
SQL = ROOT / "sql"
MIGRATIONS = ROOT / "migrations"
CONTRACT: dict[str, Any] = tomllib.loads((SQL / "contract.toml").read_text(encoding="utf-8"))

ENGINES = sorted(path.parent.name for path in SQL.glob("*/install.sql"))
ROOMS = ("tables", "internal", "routines", "overloads", "waiting")

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
"""What is true of a helper whose header does not say otherwise."""

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
"""A value of each type of the contract."""

_CALLED = re.compile(r"\browq\.(\w+)\(|(?<![\w.])(internal_\w+)|\bexec (?:@\w+ = )?rowq\.(\w+)")
_SENT = re.compile(r"'begin rowq\.(\w+)\(")
"""A call that Oracle's routines that wait send by text."""
_NO_CODE = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
_RAISED = re.compile(
    r"errcode = 'RQ(\d{3})'|signal sqlstate '45(\d{3})'|throw 52(\d{3}),"
    r"|raise_application_error\(\s*-20(\d{3})"
)
_FIELD = re.compile(rf"^-- ({'|'.join(HEADER_FIELDS)}) +(\S.*)$")


def sql_files(engine: str, *rooms: str) -> Iterator[Path]:
    """Yield an engine's files in these rooms, all rooms by default, in a fixed order."""
    for room in rooms or ROOMS:
        yield from sorted((SQL / engine / room).glob("*.sql"))


def migration_scripts(engine: str) -> list[Path]:
    """Return what stands beside an engine's migrations by hand: not their scripts, once released.

    These hold the sources of their day, and what is made for their clients.
    """
    found = sorted((MIGRATIONS / engine).glob("*.sql"))
    return [path for path in found if not path.with_suffix(".py").exists()]


def code_files() -> list[tuple[str, Path]]:
    """Return engine and path of every file with a routine or a private helper."""
    paths = [(engine, path) for engine in ENGINES for path in sql_files(engine, *ROOMS[1:])]
    return [(engine, path) for engine, path in paths if path.name != "types.sql"]


def label(value: object) -> str:
    """Return a short test id."""
    return f"{value.parent.name}/{value.stem}" if isinstance(value, Path) else str(value)


def routines_of(engine: str) -> dict[str, dict[str, Any]]:
    """Return the contract's entries of every routine that an engine has, as it has it, by name."""
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
    return engine in entry.get("engines", entry.get("engines_so_far", [engine]))


def object_name(path: Path) -> str:
    """Return the name that a file's routine or helper has in the database."""
    return name_on(path.parent.parent.name, entry_name(path))


def entry_name(path: Path) -> str:
    """Return the name that the contract has for a file's routine; a helper has a like one."""
    match path.parent.name:
        case "internal":
            return f"internal_{path.stem}"
        case "overloads":
            return path.stem.rpartition("_")[0]
        case _:
            return path.stem


def name_on(engine: str, name: str) -> str:
    """Return the name that a routine has on an engine."""
    return procedure_name(name) if engine == "sqlserver" else name


def header(text: str) -> dict[str, str]:
    """Return the fields of a routine's header, continuation lines joined, in their order."""
    fields: dict[str, str] = {}
    lines = iter(text.partition("\n-- routine ")[2].splitlines())
    fields["routine"] = next(lines, "").strip()
    for line in lines:
        match = _FIELD.match(line)
        if match:
            fields[match.group(1)] = match.group(2)
        elif line.startswith("--  "):
            fields[next(reversed(fields))] += " " + line[2:].strip()
        else:
            break
    return fields


def code_of(text: str) -> str:
    """Return a text without its comments and with its literals emptied."""
    return _NO_CODE.sub(lambda found: "" if found.group().startswith("--") else "''", text)


def code(path: Path) -> str:
    """Return a file without comments and literals, in one line."""
    return " ".join(code_of(path.read_text(encoding="utf-8")).split())


def raised(text: str) -> set[str]:
    """Return the errors that a text raises by itself."""
    return {"RQ" + "".join(numbers) for numbers in _RAISED.findall(text)}


def errors_of(engine: str, name: str) -> set[str]:
    """Return the errors that a routine or helper raises, through what it calls as well."""
    found = _errors_and_calls_of(engine)
    waiting, seen, errors = [name], set[str](), set[str]()
    while waiting:
        dialect = waiting.pop()
        if dialect not in seen:
            seen.add(dialect)
            by_itself, called = found.get(dialect, (set(), []))
            errors |= by_itself
            waiting += called
    return errors


@cache
def _errors_and_calls_of(engine: str) -> dict[str, tuple[set[str], list[str]]]:
    """Return what each routine and helper of an engine raises by itself, and whom it calls."""
    texts: dict[str, str] = {}
    for path in sql_files(engine):
        name = object_name(path)
        texts[name] = texts.get(name, "") + path.read_text(encoding="utf-8")
    return {
        name: (
            raised(text),
            ["".join(names) for names in _CALLED.findall(code_of(text))] + _SENT.findall(text),
        )
        for name, text in texts.items()
    }


def words(field: str) -> list[str]:
    """Return the words of a header field that holds a list, where "none" means empty."""
    return [] if field == "none" else field.split()
