"""Compare counts in SQL: columns and targets, columns and values, arguments and parameters.

The rules are the same for every dialect. They take code from `blanked`, so that its positions are
those of the file.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

Fault = tuple[int, str]
"""A position in the code and its error."""

_NO_CODE = re.compile(r"--[^\n]*|/\*.*?\*/|q'\[.*?\]'|'(?:[^']|'')*'", re.DOTALL)
_WORD = re.compile(r"[\w.$]+|\S")
_UNIONS = {"except", "intersect", "minus", "union"}
_LIST_ENDS = _UNIONS | {
    "bulk", "for", "from", "group", "having", "into", "limit", "loop", "order", "where",
}  # fmt: skip
_PARAMETER = re.compile(
    r"(?:(?P<before>inout|out|in)\s+)?(?P<name>\w+)\s+(?:(?P<after>in out|in|out)\b\s*)?"
    r"(?:nocopy\s+)?(?P<kind>.*?)(?P<default>\s+default\s.*)?",
    re.DOTALL,
)
_CURSOR = re.compile(r"(?:\bcursor (\w+)|\b(\w+) cursor)\b[^;]*?\b(?:is|for)\s+(?=select\b)")
_FETCH = re.compile(r"\bfetch (?:from )?(\w+)\s+(?:bulk collect )?into\b")
_INSERT = re.compile(
    r"\binsert\s+(?:ignore\s+)?(?:into\s+([\w.]+)\s*(?:(?:as )?(?!values|select)\w+\s*)?)?\("
)
_ROW = re.compile(r"\s*,?\s*\(")
_SUBQUERY = re.compile(r"\((?=\s*(?:select|with)\b)")
_AGGREGATE = re.compile(
    r"\b(?:array_agg|avg|bool_and|bool_or|count|group_concat|json_arrayagg|json_objectagg"
    r"|jsonb_agg|jsonb_object_agg|listagg|max|min|string_agg|sum)\s*\("
)
_OF_AGGREGATE = re.compile(r"\s*(?:keep|filter|within group)\s*\(")
_COLUMN = re.compile(r"(?<![\w.@])(?!(?:[pvco]|each)_)[a-z]\w*\.\w+\b(?!\s*\()")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a routine."""

    name: str
    kind: str = ""
    direction: str = "in"
    is_optional: bool = False


@dataclass(frozen=True)
class Signature:
    """The signature of a routine; `returns` is a function's type."""

    name: str
    parameters: tuple[Parameter, ...]
    is_function: bool = False
    returns: str = ""


def blanked(text: str) -> str:
    """Return a text with comments and literals replaced by blanks."""
    return _NO_CODE.sub(_blank, text)


def uncommented(text: str) -> str:
    """Return a text with a blank in place of each comment."""
    return _NO_CODE.sub(lambda found: " " if found[0].startswith(("--", "/*")) else found[0], text)


def _blank(found: re.Match[str]) -> str:
    hidden = re.sub(r"[^\n]", " ", found.group())
    return hidden if found.group().startswith(("--", "/*")) else f"'{hidden[1:-1]}'"


def split(text: str) -> list[str]:
    """Split a list at its commas, except inside parentheses and brackets."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def inside(code: str, opening: int) -> str:
    """Return the text between the parenthesis at `opening` and its partner."""
    depth = 0
    for place in range(opening, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return code[opening + 1 : place]
    return code[opening + 1 :]


def end_of(code: str, start: int, ends: Collection[str] = ()) -> int:
    """Return the position of the first of these words outside parentheses, or of the end.

    The end is that of the statement, or of the parentheses around `start`.
    """
    depth, before = 0, ""
    for word in _WORD.finditer(code, start):
        text = word.group()
        # "is distinct from" is a comparison.
        if depth == 0 and (text in {";", ")"} or (text in ends and before != "distinct")):
            return word.start()
        depth += (text == "(") - (text == ")")
        before = text
    return len(code)


def columns_at(code: str, start: int) -> tuple[list[str], int]:
    """Return the columns of the `select` before `start`, and the end of their list."""
    if match := re.compile(r"\s*(?:distinct|all)\b(?:\s+on\s*(\())?").match(code, start):
        start = match.end()
        if match[1]:
            start += len(inside(code, match.start(1))) + 1
    end = end_of(code, start, _LIST_ENDS)
    return split(code[start:end]), end


def parameters(text: str) -> tuple[Parameter, ...]:
    """Return the parameters of a parameter list, in any dialect."""
    found = (_PARAMETER.fullmatch(part) for part in split(text))
    return tuple(
        Parameter(
            match["name"],
            match["kind"].strip(),
            match["before"] or match["after"] or "in",
            match["default"] is not None,
        )
        for match in found
        if match
    )


def misread(code: str, width: Callable[[str], int | None]) -> Iterator[Fault]:
    """Yield each query, `returning` and fetch whose columns and targets differ in number.

    width: returns the number of columns of a target, None for any number.
    """
    for match in re.finditer(r"\b(?:select|returning)\b", code):
        listed, end = columns_at(code, match.end())
        into = end_of(code, end, {"into", "loop", "returning", "union"})
        if code.startswith("into", into):
            yield from _compared(code, match.start(), listed, into + len("into"), width)
    cursors = {
        match[1] or match[2]: columns_at(code, match.end() + len("select"))[0]
        for match in _CURSOR.finditer(code)
    }
    for match in _FETCH.finditer(code):
        if match[1] in cursors:
            yield from _compared(code, match.start(), cursors[match[1]], match.end(), width)
        elif not match[1].startswith(("v_", "p_")):
            yield match.start(), f"unknown cursor {match[1]}"


def _compared(
    code: str, place: int, listed: list[str], start: int, width: Callable[[str], int | None]
) -> Iterator[Fault]:
    """Compare columns with the list of targets at `start`."""
    targets = split(code[start : end_of(code, start, _LIST_ENDS | {"using", "values"})])
    widths = [width(re.sub(r"^strict\s+", "", target)) for target in targets]
    taken = sum(count for count in widths if count is not None)
    is_known = None not in widths and not any(column.endswith("*") for column in listed)
    if is_known and taken != len(listed):
        yield place, f"{len(listed)} columns go into targets for {taken}"


def misunited(code: str) -> Iterator[Fault]:
    """Yield each union of queries with different numbers of columns."""
    for match in re.finditer(r"\bselect\b", code):
        listed, end = columns_at(code, match.end())
        union = end_of(code, end, _UNIONS)
        other = re.compile(r"\w+\s+(?:all\s+)?select\b").match(code, union)
        if other and not any(column.endswith("*") for column in listed):
            count = len(columns_at(code, other.end())[0])
            if count != len(listed):
                yield union, f"{len(listed)} columns are united with {count}"


def misfilled(code: str, tables: Mapping[str, Collection[str]]) -> Iterator[Fault]:
    """Yield each insert with more or fewer values than columns, or with an unknown column."""
    for match in _INSERT.finditer(code):
        listed = inside(code, match.end() - 1)
        named = split(listed)
        for name in named:
            if match[1] and name not in tables.get(match[1], ()):
                yield match.start(), f"{match[1]} has no column {name}"
        for count in _widths(code, match.end() + len(listed) + 1):
            if count != len(named):
                yield match.start(), f"{len(named)} columns have {count} values"


def _widths(code: str, place: int) -> Iterator[int]:
    """Yield the number of values of each row of an insert, whose values begin at `place`."""
    word = _WORD.search(code, place)
    if word is not None and word.group() == "select":
        yield len(columns_at(code, word.end())[0])
    elif word is not None and word.group() == "values":
        place = word.end()
        while row := _ROW.match(code, place):
            given = inside(code, row.end() - 1)
            yield len(split(given))
            place = row.end() + len(given) + 1


def misfits(entry: Signature, given: list[str]) -> Iterator[str]:
    """Yield errors in the number and the names of a call's arguments."""
    names = [parameter.name for parameter in entry.parameters]
    named = [match[1] for argument in given if (match := re.match(r"(\w+)\s*=>", argument))]
    reached = set(names[: len(given) - len(named)]) | set(named)
    if len(given) > len(names) or not set(named) <= set(names):
        yield f"{entry.name} has no such parameters"
    for parameter in entry.parameters:
        if not parameter.is_optional and parameter.name not in reached:
            yield f"{entry.name} needs {parameter.name}"


def ungrouped(code: str, *, allows_subqueries: bool) -> Iterator[Fault]:
    """Yield each query without `group by` that mixes an aggregate with a column or subquery."""
    for match in re.finditer(r"\bselect\b", code):
        listed, end = columns_at(code, match.end())
        is_grouped = code.startswith("group", end_of(code, end, {"group", "union"}))
        if is_grouped:
            continue
        cut = [_without(column, _SUBQUERY) for column in listed]
        plain = [_without(column, _AGGREGATE) for column in cut]
        others = [column for column in plain if _COLUMN.search(column)]
        if not allows_subqueries:
            others += [column for column, short in zip(listed, cut, strict=True) if column != short]
        if plain != cut and others:
            yield match.start(), f"an aggregate beside {' '.join(others[0].split())[:60]}"


def _without(text: str, opening: re.Pattern[str]) -> str:
    """Return a text without the calls that begin with `opening`, including a filter after them.

    A window function stays.
    """
    start = 0
    while match := opening.search(text, start):
        end = match.end() + len(inside(text, match.end() - 1)) + 1
        while after := _OF_AGGREGATE.match(text, end):
            end = after.end() + len(inside(text, after.end() - 1)) + 1
        if text[end:].lstrip().startswith("over "):
            start = end
        else:
            text, start = f"{text[: match.start()]} {text[end:]}", match.start()
    return text
