"""Check names of PL/SQL like a compiler: variables, calls, columns and fields of records.

Prefixes: p_ parameter, v_ variable, c_ constant, e_ exception, t_ type, each_ row of a loop.
"""

import re
from collections.abc import Iterator

from tests.static.plsql.kinds import Kinds
from tests.static.plsql.lint import Finding
from tests.static.plsql.source import Source, signatures
from tests.static.shapes import (
    Fault,
    Signature,
    inside,
    misfilled,
    misfits,
    misread,
    misunited,
    split,
    ungrouped,
)

_TABLE = re.compile(r"create table (\w+) \((.*?)\n\)", re.DOTALL)
_OBJECT = re.compile(r"create or replace type (\w+) force as object \((.*?)\n\)", re.DOTALL)
_LIST_OF = re.compile(r"create or replace type (\w+) force as table of (\w+)")
_RECORD = re.compile(r"\btype (t_\w+) is record \((.*?)\n\s*\);", re.DOTALL)
_TABLE_OF = re.compile(r"\btype (t_\w+) is table of ([\w.%]+)")
_DECLARED = re.compile(
    r"(?:^|[(,;]|\bis)\s*((?:[vcpe]_)\w+)\s+(?:constant\s+|in out\s+|in\s+|out\s+)?(?:nocopy\s+)?"
    r"(\w+)",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w.%])([vcpe]_\w+)")
_TYPE = re.compile(r"(?<![\w.%])(t_\w+)")
_FIELD = re.compile(r"(?<![\w.])([vp]_\w+)((?:\([^()]*(?:\([^()]*\)[^()]*)*\))?)\.(\w+)")
_FROM = re.compile(r"\b(?:from|join|update|into|using)\s+(rowq_\w+)\s+(?!set\b|values\b)(\w+)\b")
_METHODS = {"count", "delete", "exists", "extend", "first", "last", "next"}


class Names:
    """The shared declarations: signatures, columns of tables, fields of types."""

    def __init__(self, sources: list[Source]) -> None:
        """Read the declarations of all files of sql/oracle."""
        self.signatures = signatures(sources)
        self.columns: dict[str, dict[str, str]] = {}
        self.fields: dict[str, dict[str, str]] = {}
        self.items: dict[str, str] = {}
        for source in sources:
            for name, body in _TABLE.findall(source.code):
                self.columns[name] = _typed(body)
            for name, body in _OBJECT.findall(source.code):
                self.fields[name] = _typed(body)
            self.items.update(_LIST_OF.findall(source.code))
            if source.stem == "types" and source.room == "internal":
                self._read_types(source.code, self.fields, self.items)

    @staticmethod
    def _read_types(code: str, fields: dict[str, dict[str, str]], items: dict[str, str]) -> None:
        for name, body in _RECORD.findall(code):
            fields[name] = _typed(body)
        items.update(_TABLE_OF.findall(code))

    def problems(self, source: Source) -> Iterator[Finding]:
        """Yield line and text of every wrong name in a file."""
        yield from self._columns(source)
        yield from ((source.line_of(place), words) for place, words in self._faults(source.code))
        if re.match(r"(?:procedure|function)\b", source.code):
            fields, items = dict(self.fields), dict(self.items)
            self._read_types(source.code, fields, items)
            declared = {name: kind for name, kind in _DECLARED.findall(source.code) if kind != "in"}
            yield from self._variables(source, declared, fields, items)
            yield from self._calls(source)
            yield from _record_fields(source, declared, fields, items)

    def _faults(self, code: str) -> Iterator[Fault]:
        """Yield mismatches of number or type."""
        fields, items = dict(self.fields), dict(self.items)
        self._read_types(code, fields, items)
        kinds = Kinds(code, self.columns, fields, items, self.signatures)
        yield from kinds.faults()
        yield from misread(code, kinds.width)
        yield from misfilled(code, self.columns)
        yield from misunited(code)
        # ORA-00937: a subquery beside an aggregate counts as a column.
        yield from ungrouped(code, allows_subqueries=False)

    def _variables(
        self,
        source: Source,
        declared: dict[str, str],
        fields: dict[str, dict[str, str]],
        items: dict[str, str],
    ) -> Iterator[Finding]:
        known = {name for entry in self.signatures.values() for name in _names(entry)}
        used: dict[str, int] = {}
        for match in _NAME.finditer(source.code):
            name = match[1]
            used[name] = used.get(name, 0) + 1
            is_argument = re.match(r"\s*=>", source.code[match.end() :])
            if name not in declared and not (is_argument and name in known):
                yield source.line_of(match.start()), f"{name} is not declared"
        for name in declared:
            if used.get(name) == 1:
                yield 1, f"{name} is declared and never used"
        for match in _TYPE.finditer(source.code):
            if match[1] not in fields and match[1] not in items:
                yield source.line_of(match.start()), f"{match[1]} is not declared"

    def _calls(self, source: Source) -> Iterator[Finding]:
        own = re.match(r"(?:procedure|function) (\w+)", source.code)
        for match in re.finditer(r"(?<![\w.])(internal_\w+)\b(\(?)", source.code):
            name, line = match[1], source.line_of(match.start())
            entry = self.signatures.get(name)
            if entry is None:
                yield line, f"{name} does not exist"
            elif own is None or own[1] != name:
                given = split(inside(source.code, match.end() - 1)) if match[2] else []
                yield from ((line, words) for words in misfits(entry, given))
                if _is_statement(source.code, match) == entry.is_function:
                    yield line, f"{name} is a {'function' if entry.is_function else 'procedure'}"

    def _columns(self, source: Source) -> Iterator[Finding]:
        for place, statement in source.statements():
            aliases: dict[str, list[str]] = {}
            for table, alias in _FROM.findall(statement):
                aliases.setdefault(alias, []).append(table)
                if table not in self.columns:
                    yield source.line_of(place), f"unknown table {table}"
            for match in re.finditer(r"(?<![\w.])(\w+)\.(\w+)\b(?!\()", statement):
                tables = aliases.get(match[1], [])
                columns = {name for table in tables for name in self.columns.get(table, ())}
                if columns and match[2] not in columns | {"rowid"}:
                    line = source.line_of(place + match.start())
                    yield line, f"{' and '.join(tables)} has no column {match[2]}"


def _is_statement(code: str, call: re.Match[str]) -> bool:
    """Return whether a call is a statement, not part of an expression."""
    before = code[: call.start()].rstrip()
    end = call.end() + (len(inside(code, call.end() - 1)) + 1 if call[2] else 0)
    is_first = re.search(r"(?:;|\bthen|\bbegin|\bloop|\belse)$", before) is not None
    return is_first and code[end:].lstrip().startswith(";")


def _typed(body: str) -> dict[str, str]:
    """Return the names and types in a list of columns or fields."""
    named = (part.split(maxsplit=1) for part in split(body))
    return {name: kind for name, kind in named if name != "constraint"}


def _names(entry: Signature) -> list[str]:
    return [parameter.name for parameter in entry.parameters]


def _record_fields(
    source: Source,
    declared: dict[str, str],
    fields: dict[str, dict[str, str]],
    items: dict[str, str],
) -> Iterator[Finding]:
    for match in _FIELD.finditer(source.code):
        kind = declared.get(match[1], "")
        if match[2]:
            kind = items.get(kind, "")
        if kind in items and match[3] in _METHODS:
            continue
        if kind in fields and match[3] not in fields[kind]:
            yield source.line_of(match.start()), f"{kind} has no field {match[3]}"
