"""Released scripts, and the SQL files of a migration.

A released migration pg-0002-slug.py has a script scripts/pg-0002-slug.sql and never changes again.
The engine's own client runs that script, and `frozen` reads it: each section starts with a line
such as

    -- [file routines/enqueue.sql]

Every file can be run again as a whole. In tables.sql and the families of helpers, each unit counts
as a file (`rowq.tools.migrate.sources`). A migration has the files that differ from the newest
released text. A file outside the folders of tables and routines (grants.sql, comments.sql, Oracle's
statistics.sql and compiled.sql) creates no object: every migration runs it.

An unreleased migration has no script: its files are the present sources.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.sources import read, sources, sources_of

GRANTS = "grants.sql"
SCRIPTS = "scripts"
"""The folder beside the migrations; yoyo takes every .py and .sql beside them for a migration."""

_MARK = re.compile(r"^-- \[(\w+)(?: (\S+))?\]\n", re.MULTILINE)
_LEFT = "-- Nothing is dropped here; a statement of the migration may drop it.\n"

_CREATED = re.compile(
    r"^create (?:or replace |or alter )?"
    r"(table|sequence|function|procedure|view|type|package body|package)"
    r" (?:if not exists )?(rowq(?:\.\w+|\w*))",
    re.MULTILINE,
)
# On PostgreSQL routines can be overloaded, so the types of the parameters belong to the name.
_ROUTINE = re.compile(r"create or replace (?:function|procedure) ")
_PARAMETERS = re.compile(r"\((.*?)\)\s+(?:returns|language)\b", re.DOTALL)
_DEFAULT = re.compile(r" default .*")
# Oracle has no schema rowq, and its units end with a line of their own.
_DROPS = {
    "package": "drop package {name}\n/",
    "package body": "drop package body {name}\n/",
    "sequence": "drop sequence {name}\n/",
    "table": "drop table {name} cascade constraints purge\n/",
    "type": "drop type {name} force\n/",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a script, named by a line.

    Attributes:
        kind: "file" for a source, "gone" for a removed one, "statement" for a handwritten one;
            another word for the sections around them.
        name: the file's path in sql/<engine>, or another name.
        text: the SQL; it ends with a line end.
    """

    kind: str
    name: str
    text: str

    @property
    def mark(self) -> str:
        """The line that names the section in a script."""
        return f"-- [{f'{self.kind} {self.name}'.rstrip()}]\n"


def joined(head: str, parts: Iterable[Section]) -> str:
    """Return a script of a head and sections; raise ValueError if `split` could not read it."""
    texts = [head]
    for part in parts:
        if not part.text.endswith("\n") or _MARK.search(part.text):
            raise ValueError(f"{part.kind} {part.name} cannot be a section of a script")
        texts.append(f"{part.mark}{part.text}")
    return "\n".join(texts)


def split(script: str) -> tuple[str, list[Section]]:
    """Return the head and the sections of a script made by `joined`."""
    head, *rest = _MARK.split(script)
    found = [
        Section(kind, name or "", text)
        for kind, name, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]
    # An empty line precedes the name of the next section.
    between = [Section(part.kind, part.name, part.text[:-1]) for part in found[:-1]]
    return head[:-1], between + found[-1:]


def number_of(migration: Path) -> int:
    """Return the number of a migration's file."""
    return int(migration.stem.split("-")[1])


def migration_files(folder: Path) -> list[Path]:
    """Return the files of an engine's migrations, lowest number first."""
    return sorted(folder.glob("*-[0-9][0-9][0-9][0-9]-*.py"), key=number_of)


def script_of(migration: Path) -> Path:
    """Return the path of a released migration's script."""
    return migration.parent / SCRIPTS / f"{migration.stem}.sql"


def is_released(migration: Path) -> bool:
    """Return whether a migration is released, and so never changes again."""
    return script_of(migration).exists()


def brought_by(migration: Path, earlier: dict[str, str]) -> list[Section]:
    """Return a migration's changes to `earlier` files, in the order of installation."""
    if not is_released(migration):
        return _changed(sources(sources_of(migration.parent)), earlier)
    source_form = engine_module(migration.parent.name, "script", TOOLS).SCRIPT.source_form
    return [
        Section(part.kind, part.name, source_form(part.text))
        for part in split(read(script_of(migration)))[1]
        if part.kind in ("file", "gone")
    ]


def files_after(folder: Path, newest: int) -> dict[str, str]:
    """Return path and text of every file after a migration of migrations/<engine>; 0 is none."""
    files: dict[str, str] = {}
    for migration in migration_files(folder):
        if number_of(migration) <= newest:
            for part in brought_by(migration, files):
                if part.kind == "gone":
                    del files[part.name]
                else:
                    files[part.name] = part.text
    return files


def _changed(today: dict[str, str], earlier: dict[str, str]) -> list[Section]:
    """Return the changes from earlier files to today's files."""
    changed = [
        Section("file", path, text)
        for path, text in today.items()
        if "/" not in path or earlier.get(path) != text
    ]
    gone = [path for path in earlier if path not in today]
    return [*changed, *(Section("gone", path, _removal(path, earlier[path])) for path in gone)]


def _removal(path: str, text: str) -> str:
    """Return the removal of a file's routines; tables need a handwritten statement."""
    statements = "" if path.startswith("tables/") else drops(text)
    return f"{statements}\n" if statements else _LEFT


def created(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of everything that a file's text creates."""
    for match in _CREATED.finditer(text):
        yield match.group(1), match.group(2).removeprefix("rowq.")


def drops(text: str) -> str:
    """Return statements that drop what a file's text creates, in reverse order."""
    statements = [
        _drop(match.group(1), f"{match.group(2)}{_parameters(match)}")
        for match in _CREATED.finditer(text)
    ]
    return "\n".join(reversed(statements))


def _parameters(created: re.Match[str]) -> str:
    """Return the parameters of a created routine, if they belong to its name."""
    if not _ROUTINE.match(created[0]):
        return ""
    found = _PARAMETERS.match(created.string, created.end())
    if found is None:
        raise ValueError(f"the parameters of {created[2]} are not in the house style")
    names = (_DEFAULT.sub("", " ".join(part.split())) for part in found[1].split(","))
    return f"({', '.join(names)})"


def _drop(kind: str, name: str) -> str:
    if name.startswith("rowq."):
        return f"drop {kind} if exists {name};"
    return _DROPS[kind].format(name=name)
