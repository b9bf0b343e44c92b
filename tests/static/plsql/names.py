"""Looks up names of PL/SQL, which a parser does not: variables, calls, columns, fields of records.

No compiler is at hand, so what one would say first is looked for here. A name says what it is:
p_ parameter, v_ variable, c_ constant, e_ exception, t_ type, each_ row of a loop.
"""

import re
from collections.abc import Iterator

from tests.static.plsql.lint import Finding
from tests.static.plsql.source import Signature, Source, inside, signatures, split

_TABLE = re.compile(r"create table (\w+) \((.*?)\n\)", re.DOTALL)
_OBJECT = re.compile(r"create or replace type (\w+) force as object \((.*?)\n\)", re.DOTALL)
_LIST_OF = re.compile(r"create or replace type (\w+) force as table of (\w+)")
_RECORD = re.compile(r"\btype (t_\w+) is record \((.*?)\n\s*\);", re.DOTALL)
_TABLE_OF = re.compile(r"\btype (t_\w+) is table of (\w+)")
_DECLARED = re.compile(
    r"(?:^|[(,;]|\bis)\s*((?:[vcpe]_)\w+)\s+(?:constant\s+|in out\s+|in\s+|out\s+)?(?:nocopy\s+)?"
    r"(\w+)",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w.%])([vcpe]_\w+)")
_TYPE = re.compile(r"(?<![\w.%])(t_\w+)")
_FIELD = re.compile(r"(?<![\w.])([vp]_\w+)((?:\([^()]*(?:\([^()]*\)[^()]*)*\))?)\.(\w+)")
_FROM = re.compile(r"\b(?:from|join|update|into|using)\s+(rowq_\w+)\s+(?!set\b|values\b)(\w+)\b")
_INSERT = re.compile(r"\binsert into (rowq_\w+)\s*\(")
_METHODS = {"count", "delete", "exists", "extend", "first", "last", "next"}


class Names:
    """Everything that is declared for all files: signatures, columns of tables, fields of types."""

    def __init__(self, sources: list[Source]) -> None:
        """Read the declarations of all files of sql/oracle."""
        self.signatures = signatures(sources)
        self.columns: dict[str, set[str]] = {}
        self.fields: dict[str, set[str]] = {}
        self.items: dict[str, str] = {}
        for source in sources:
            for name, body in _TABLE.findall(source.code):
                listed = (part.split()[0] for part in split(body))
                self.columns[name] = {word for word in listed if word != "constraint"}
            for name, body in _OBJECT.findall(source.code):
                self.fields[name] = {part.split()[0] for part in split(body)}
            self.items.update(_LIST_OF.findall(source.code))
            if source.stem == "types" and source.room == "internal":
                self._read_types(source.code, self.fields, self.items)

    @staticmethod
    def _read_types(code: str, fields: dict[str, set[str]], items: dict[str, str]) -> None:
        for name, body in _RECORD.findall(code):
            fields[name] = {part.split()[0] for part in split(body)}
        items.update(_TABLE_OF.findall(code))

    def problems(self, source: Source) -> Iterator[Finding]:
        """Yield line and words of every name in a file that stands for nothing, or too little."""
        yield from self._columns(source)
        if re.match(r"(?:procedure|function)\b", source.code):
            fields, items = dict(self.fields), dict(self.items)
            self._read_types(source.code, fields, items)
            declared = {name: kind for name, kind in _DECLARED.findall(source.code) if kind != "in"}
            yield from self._variables(source, declared, fields, items)
            yield from self._calls(source)
            yield from _record_fields(source, declared, fields, items)

    def _variables(
        self,
        source: Source,
        declared: dict[str, str],
        fields: dict[str, set[str]],
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
                yield from ((line, words) for words in _misfits(entry, given))
                if _is_statement(source.code, match) == entry.is_function:
                    yield line, f"{name} is a {'function' if entry.is_function else 'procedure'}"

    def _columns(self, source: Source) -> Iterator[Finding]:
        for place, statement in source.statements():
            aliases: dict[str, list[str]] = {}
            for table, alias in _FROM.findall(statement):
                aliases.setdefault(alias, []).append(table)
                if table not in self.columns:
                    yield source.line_of(place), f"there is no table {table}"
            for match in re.finditer(r"(?<![\w.])(\w+)\.(\w+)\b(?!\()", statement):
                tables = aliases.get(match[1], [])
                columns = {name for table in tables for name in self.columns.get(table, ())}
                if columns and match[2] not in columns | {"rowid"}:
                    line = source.line_of(place + match.start())
                    yield line, f"{' and '.join(tables)} has no column {match[2]}"
            yield from ((source.line_of(place), words) for words in self._inserts(statement))

    def _inserts(self, statement: str) -> Iterator[str]:
        for match in _INSERT.finditer(statement):
            listed = inside(statement, match.end() - 1)
            named = split(listed)
            for name in named:
                if name not in self.columns.get(match[1], set()):
                    yield f"{match[1]} has no column {name}"
            rest = statement[match.end() + len(listed) :]
            values = re.search(r"\bvalues\s*\(", rest)
            if values and len(split(inside(rest, values.end() - 1))) != len(named):
                yield f"{match[1]}: columns and values differ in number"


def _is_statement(code: str, call: re.Match[str]) -> bool:
    """Return whether a call stands for itself, and is not part of an expression."""
    before = code[: call.start()].rstrip()
    end = call.end() + (len(inside(code, call.end() - 1)) + 1 if call[2] else 0)
    is_first = re.search(r"(?:;|\bthen|\bbegin|\bloop|\belse)$", before) is not None
    return is_first and code[end:].lstrip().startswith(";")


def _names(entry: Signature) -> list[str]:
    return [parameter.name for parameter in entry.parameters]


def _misfits(entry: Signature, given: list[str]) -> Iterator[str]:
    """Yield what is wrong with the arguments of a call."""
    names = _names(entry)
    named = [match[1] for argument in given if (match := re.match(r"(p_\w+)\s*=>", argument))]
    reached = set(names[: len(given) - len(named)]) | set(named)
    if len(given) > len(names) or not set(named) <= set(names):
        yield f"{entry.name} has no such parameters"
    for parameter in entry.parameters:
        if not parameter.is_optional and parameter.name not in reached:
            yield f"{entry.name} needs {parameter.name}"


def _record_fields(
    source: Source, declared: dict[str, str], fields: dict[str, set[str]], items: dict[str, str]
) -> Iterator[Finding]:
    for match in _FIELD.finditer(source.code):
        kind = declared.get(match[1], "")
        if match[2]:
            kind = items.get(kind, "")
        if kind in items and match[3] in _METHODS:
            continue
        if kind in fields and match[3] not in fields[kind]:
            yield source.line_of(match.start()), f"{kind} has no field {match[3]}"
