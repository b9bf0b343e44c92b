"""Compare types and directions in PL/SQL: arguments with parameters, values with targets.

Only variables, their elements and fields, literals and calls of rowq's functions are compared, by
the family of their type, such as number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.static.shapes import Fault, Parameter, Signature, end_of, inside, split

Fields = Mapping[str, Mapping[str, str]]
"""The types of columns by table, or of fields by record."""

_FAMILIES = {
    "binary_integer": "number", "integer": "number", "pls_integer": "number", "char": "varchar2",
}  # fmt: skip
_WIDENED = {("varchar2", "clob")}
"""Argument types that the server converts to the parameter's without loss."""

_DECLARED = re.compile(
    r"(?:^|[(,;]|\bis)\s*([vcp]_\w+)\s+(constant\s+|in out\s+|in\s+|out\s+|)(?:nocopy\s+)?"
    r"(?!in\b)([a-z][\w.%]*)",
    re.MULTILINE,
)
_COLUMN_TYPE = re.compile(r"(\w+)\.(\w+)%type")
_LITERALS = (
    (re.compile(r"'[^']*'"), "varchar2"),
    (re.compile(r"-?\d[\d.]*"), "number"),
    (re.compile(r"true|false"), "boolean"),
)
_VARIABLE = re.compile(r"([vcp]_\w+)\s*(\(.*\))?(?:\.(\w+))?", re.DOTALL)
_CALL = re.compile(r"(?<![\w.])(\w+)\s*(\(?)")
_NAME = re.compile(r"(?<![\w.])[vcp]_\w+\s*")
_ASSIGNS = re.compile(r"(?:\.\w+)?\s*:=")
_INTO = re.compile(r"(?<!insert )(?<!merge )\binto\b")


@dataclass(frozen=True)
class Variable:
    """A variable, constant or parameter."""

    family: str
    is_writable: bool


class Kinds:
    """The types of a file's variables and of the shared declarations."""

    def __init__(
        self,
        code: str,
        columns: Fields,
        fields: Fields,
        items: Mapping[str, str],
        signatures: Mapping[str, Signature],
    ) -> None:
        """Read the declarations in a file.

        columns: of tables. fields: of records and objects. items: element types of collections.
        """
        self._code = code
        self._columns, self._fields, self._items = columns, fields, items
        self._signatures = signatures
        self._variables: dict[str, Variable] = {}
        for name, how, kind in _DECLARED.findall(code):
            is_fixed = how.strip() in {"constant", "in"} or name.startswith("c_")
            self._variables.setdefault(name, Variable(self._family(kind), not is_fixed))

    def width(self, target: str) -> int:
        """Return the number of columns of a target: a record has as many as fields."""
        family = self._of(target) or ""
        family = self._items.get(family, family)
        return len(self._fields[family]) if family.startswith("t_") else 1

    def faults(self) -> Iterator[Fault]:
        """Yield arguments and assignments of a wrong type, and writes to constants."""
        for match in _CALL.finditer(self._code):
            entry = self._signatures.get(match[1])
            is_own = self._code[: match.start()].endswith(("procedure ", "function ", "end "))
            if entry is not None and match[2] and not is_own:
                given = split(inside(self._code, match.end() - 1))
                yield from ((match.start(), words) for words in self._arguments(entry, given))
        for target, place in _assignments(self._code):
            value = self._code[place : end_of(self._code, place)]
            yield from ((place, words) for words in self._assignment(target, value))
        for match in _INTO.finditer(self._code):
            end = end_of(self._code, match.end(), {"from", "limit", "using", "values", "where"})
            for target in split(self._code[match.end() : end]):
                if not self._is_writable(target):
                    yield match.start(), f"{target} cannot be written"

    def _arguments(self, entry: Signature, given: list[str]) -> Iterator[str]:
        by_name = {parameter.name: parameter for parameter in entry.parameters}
        for place, argument in enumerate(given):
            named = re.match(r"(p_\w+)\s*=>\s*", argument)
            parameter = (
                by_name.get(named[1]) if named else dict(enumerate(entry.parameters)).get(place)
            )
            if parameter is not None:
                value = argument[named.end() :] if named else argument
                yield from self._argument(entry.name, parameter, value)

    def _argument(self, name: str, parameter: Parameter, value: str) -> Iterator[str]:
        is_output = parameter.direction != "in"
        if is_output and not self._is_variable(value):
            yield f"{parameter.name} of {name} needs a variable that can be written, not {value}"
        wanted, family = self._family(parameter.kind), self._of(value)
        fits = family in {None, wanted} or ((family, wanted) in _WIDENED and not is_output)
        if not fits:
            yield f"{parameter.name} of {name} is a {wanted}, not a {family}"

    def _assignment(self, target: str, value: str) -> Iterator[str]:
        if not self._is_writable(target):
            yield f"{target} cannot be written"
        wanted, family = self._of(target), self._of(value)
        if None not in {wanted, family} and family != wanted and (family, wanted) not in _WIDENED:
            yield f"{target} is a {wanted}, not a {family}"

    def _is_variable(self, value: str) -> bool:
        return _VARIABLE.fullmatch(value) is not None and self._is_writable(value)

    def _is_writable(self, target: str) -> bool:
        match = _VARIABLE.fullmatch(target.strip())
        known = self._variables.get(match[1]) if match else None
        return known is None or known.is_writable

    def _of(self, expression: str) -> str | None:
        """Return the family of an expression, None if unknown."""
        expression = expression.strip()
        for literal, family in _LITERALS:
            if literal.fullmatch(expression):
                return family
        if match := _VARIABLE.fullmatch(expression):
            return self._of_variable(match[1], match[2], match[3])
        call = re.fullmatch(r"(\w+)\s*(\(.*\))?", expression, re.DOTALL)
        if call and (entry := self._signatures.get(call[1])) and entry.is_function:
            return self._family(entry.returns)
        if call and call[1] in self._items and call[2]:
            return call[1]
        return None

    def _of_variable(self, name: str, place: str | None, field: str | None) -> str | None:
        if name not in self._variables or (place and not _is_one_pair(place)):
            return None
        family = self._variables[name].family
        if place:
            family = self._family(self._items.get(family, ""))
        if field and family in self._items:
            return "number" if field == "count" else None
        return (
            self._family(self._fields.get(family, {}).get(field, "")) or None if field else family
        )

    def _family(self, kind: str) -> str:
        """Return the family of a type in source text."""
        if match := _COLUMN_TYPE.match(kind):
            kind = self._columns.get(match[1], {}).get(match[2], "")
        word = re.match(r"\w*", kind)
        assert word
        return _FAMILIES.get(word.group(), word.group())


def _assignments(code: str) -> Iterator[tuple[str, int]]:
    """Yield the target of each assignment, and the position of its value."""
    for match in _NAME.finditer(code):
        end = match.end()
        if code.startswith("(", end):
            end += len(inside(code, end)) + 2
        if assigns := _ASSIGNS.match(code, end):
            yield code[match.start() : assigns.end() - 2].strip(), assigns.end()


def _is_one_pair(text: str) -> bool:
    """Return whether a text is a single pair of parentheses."""
    return inside(text, 0) == text[1:-1]
