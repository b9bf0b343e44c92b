"""Released scripts, and the files of SQL that a migration brings.

A released migration has a script beside it, pg-0002-slug.sql beside pg-0002-slug.py, and never
changes again. The engine's own client runs that script as it is, and `frozen` reads it: before the
text of each part there is a line such as

    -- [file routines/enqueue.sql]

Every file may be run again, and is run as a whole; of tables.sql and of the families of helpers
each unit is as a file here (`rowq.tools.migrate.sources`). A migration holds the files that differ
from the newest released text; what is not in it stays as it was. A file outside of the folders of
tables and routines (grants.sql, comments.sql, Oracle's statistics.sql and compiled.sql) makes no
object: every migration runs it.

Before its release a migration has no script: its files are today's sources.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rowq.engines import TOOLS, engine_module
from rowq.tools.migrate.sources import read, sources, sources_of

GRANTS = "grants.sql"

_MARK = re.compile(r"^-- \[(\w+)(?: (\S+))?\]\n", re.MULTILINE)
_LEFT = "-- Nothing is dropped here: a statement of the migration does it, if anything does.\n"

_CREATED = re.compile(
    r"^create (?:or replace |or alter )?"
    r"(table|sequence|function|procedure|view|type|package body|package)"
    r" (?:if not exists )?(rowq(?:\.\w+|\w*))",
    re.MULTILINE,
)
# On PostgreSQL several routines may have one name, so the types of the parameters belong to it.
_ROUTINE = re.compile(r"create or replace (?:function|procedure) ")
_PARAMETERS = re.compile(r"\((.*?)\)\s+(?:returns|language)\b", re.DOTALL)
_DEFAULT = re.compile(r" default .*")
# Oracle has no schema of ours, and units that end with a line of their own.
_DROPS = {
    "package": "drop package {name}\n/",
    "package body": "drop package body {name}\n/",
    "sequence": "drop sequence {name}\n/",
    "table": "drop table {name} cascade constraints purge\n/",
    "type": "drop type {name} force\n/",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a script, which a line names.

    Attributes:
        kind: "file" for a source, "gone" for one that is no longer there, "statement" for one
            written by hand; any other word is for what stands around them.
        name: the file's path in sql/<engine>, or another name.
        text: what is to be run; it ends with a line end.
    """

    kind: str
    name: str
    text: str

    @property
    def mark(self) -> str:
        """The line that names the part in a script."""
        return f"-- [{f'{self.kind} {self.name}'.rstrip()}]\n"


def joined(head: str, parts: Iterable[Section]) -> str:
    """Return a script: its head, then each part after the line that names it.

    Raises:
        ValueError: a part could not be read back as it is.
    """
    texts = [head]
    for part in parts:
        if not part.text.endswith("\n") or _MARK.search(part.text):
            raise ValueError(f"{part.kind} {part.name} cannot be a part of a script")
        texts.append(f"{part.mark}{part.text}")
    return "\n".join(texts)


def split(script: str) -> tuple[str, list[Section]]:
    """Return the head and the parts of a script that `joined` has made."""
    head, *rest = _MARK.split(script)
    found = [
        Section(kind, name or "", text)
        for kind, name, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    ]
    # An empty line stands before the next line that names a part.
    between = [Section(part.kind, part.name, part.text[:-1]) for part in found[:-1]]
    return head[:-1], between + found[-1:]


def number_of(migration: Path) -> int:
    """Return the number in the name of a migration's file."""
    return int(migration.stem.split("-")[1])


def migration_files(folder: Path) -> list[Path]:
    """Return the files of an engine's migrations, lowest number first."""
    return sorted(folder.glob("*-[0-9][0-9][0-9][0-9]-*.py"), key=number_of)


def script_of(migration: Path) -> Path:
    """Return where a migration's script is as soon as it is released."""
    return migration.with_suffix(".sql")


def is_released(migration: Path) -> bool:
    """Return whether a migration never changes again."""
    return script_of(migration).exists()


def brought_by(migration: Path, earlier: dict[str, str]) -> list[Section]:
    """Return what a migration does to the files, in the order of installation.

    Args:
        migration: its file.
        earlier: path and text of the files as they are before it.
    """
    if not is_released(migration):
        return _changed(sources(sources_of(migration.parent)), earlier)
    source_form = engine_module(migration.parent.name, "script", TOOLS).SCRIPT.source_form
    return [
        Section(part.kind, part.name, source_form(part.text))
        for part in split(read(script_of(migration)))[1]
        if part.kind in ("file", "gone")
    ]


def files_after(folder: Path, newest: int) -> dict[str, str]:
    """Return path and text of every file as it is after the migration of this number.

    Args:
        folder: migrations/<engine>.
        newest: the number; 0 for none.
    """
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
    """Return what leads from the earlier files to those of today."""
    changed = [
        Section("file", path, text)
        for path, text in today.items()
        if "/" not in path or earlier.get(path) != text
    ]
    gone = [path for path in earlier if path not in today]
    return [*changed, *(Section("gone", path, _removal(path, earlier[path])) for path in gone)]


def _removal(path: str, text: str) -> str:
    """Return what removes a file's routines; a table is left to a statement written by hand."""
    statements = "" if path.startswith("tables/") else drops(text)
    return f"{statements}\n" if statements else _LEFT


def created(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and name of everything that the text of a file creates."""
    for match in _CREATED.finditer(text):
        yield match.group(1), match.group(2).removeprefix("rowq.")


def drops(text: str) -> str:
    """Return the statements that remove what the text of a file creates, last one first."""
    statements = [
        _drop(match.group(1), f"{match.group(2)}{_parameters(match)}")
        for match in _CREATED.finditer(text)
    ]
    return "\n".join(reversed(statements))


def _parameters(created: re.Match[str]) -> str:
    """Return the parameters of a routine that is created, where they belong to its name."""
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
