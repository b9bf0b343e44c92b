"""Find incompatible changes of the next version in its SQL text.

Sessions keep working during an upgrade: a running call continues with the old text of its routine
and calls the new helpers. MariaDB and MySQL replace one unit at a time. A database may be upgraded
from any release at once. So routines and helpers keep their parameters and results, and a helper
that a release has called stays.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from rowq.tools.migrate.frozen import created, files_after, is_released, migration_files, number_of
from rowq.tools.migrate.release import read_release, recorded

Files = Mapping[str, str]

_SIGNATURES = {
    "postgres": r"^create or replace (?:function|procedure) rowq\.(\w+)(\(.*?)\nlanguage\b",
    "mysql": r"^create (?:procedure|function) rowq\.(\w+)(\(.*?)\n(?:sql security|deterministic)",
    "sqlserver": r"^create or alter (?:procedure|function) rowq\.(\w+)(.*?)\n(?:as|with)\b",
    # The declarations of a package: private subprograms have no other callers.
    "oracle": r"^    (?:procedure|function) (\w+)([^;]*);$",
}
"""By engine, the name of a routine and the parts that callers depend on."""

_COMMENT = re.compile(r"--[^\n]*")
_WHOLE_LINE = re.compile(r"^--[^\n]*\n", re.MULTILINE)
_AGAIN = "create or replace type "
"""A type created so needs no statement to change."""


def faults_of_next(migrations: Path) -> list[str]:
    """Return the incompatible changes since the newest released migration, as texts.

    migrations: migrations/<engine>, with sql/<engine> beside its parent.
    """
    *_, newest = paths = migration_files(migrations)
    released = [path for path in paths if is_released(path)]
    if not released or is_released(newest):
        return []
    then = files_after(migrations, number_of(released[-1]))
    today = files_after(migrations, number_of(newest))
    statements = "".join(
        part.text
        for part in recorded(read_release(migrations).get(number_of(newest)).migration)
        if part.kind == "statement"
    )
    engine, since = migrations.name, released[-1].stem
    every: dict[str, Files] = {
        path.stem: files_after(migrations, number_of(path)) for path in released
    }
    return [
        *_changed_signatures(engine, since, then, today),
        *_gone(every, today),
        *_tables(newest.name, statements, then, today),
    ]


def signatures(engine: str, text: str) -> dict[str, str]:
    """Return the callable routines in a file: name, and parameters and result."""
    if "create or replace package body " in text:
        return {}
    found = re.finditer(_SIGNATURES[engine], text, re.MULTILINE | re.DOTALL)
    return {match[1]: " ".join(_COMMENT.sub("", match[2]).split()) for match in found}


def _changed_signatures(engine: str, since: str, then: Files, today: Files) -> Iterator[str]:
    for path in sorted(then.keys() & today.keys()):
        if then[path] == today[path]:
            continue
        new = signatures(engine, today[path])
        for name, signature in signatures(engine, then[path]).items():
            if new.get(name) != signature:
                yield (
                    f"{path}: the signature of {name} differs from {since}, but callers and running"
                    f" calls use it; keep it and add {name}_v2"
                )


def _gone(every: dict[str, Files], today: Files) -> Iterator[str]:
    """Yield removed files that are still needed; `every` has each release's files, oldest first."""
    since, then = list(every.items())[-1]
    for path in sorted(then.keys() - today.keys()):
        room = path.partition("/")[0]
        if room in ("routines", "overloads"):
            yield f"{path} of {since} is missing; a routine must stay"
        elif room != "tables" and (caller := _newest_caller(path, then[path], every)):
            yield (
                f"{path} is missing, but {caller} calls it, and such a call may be running during"
                " an upgrade; keep it"
            )


def _newest_caller(path: str, text: str, every: dict[str, Files]) -> str | None:
    """Return the file that calls a file's objects, with its newest release, or None."""
    names = "|".join(name for _, name in created(text))
    called = re.compile(rf"\b(?:{names})\b")
    for release, files in reversed(every.items()):
        for user, calling in files.items():
            if names and user != path and called.search(calling):
                return f"{user} of {release}"
    return None


def _tables(migration: str, statements: str, then: Files, today: Files) -> Iterator[str]:
    for path in then:
        if not path.startswith("tables/") or _code(then[path]) == _code(today.get(path, "")):
            continue
        text = then[path].replace(_AGAIN, "") if path in today else then[path]
        names = [name for kind, name in created(text) if kind in ("table", "sequence", "type")]
        if names and not any(re.search(rf"\b{name}\b", statements) for name in names):
            yield (
                f"{path} has changed, but {migration} has no statement about"
                f" {', '.join(names)}: existing databases would not change"
            )


def _code(text: str) -> str:
    return _WHOLE_LINE.sub("", text)
