"""Reads PL/SQL for the lint: text without comments and literals, signatures, statements."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NO_CODE = re.compile(r"--[^\n]*|q'\[.*?\]'|'(?:[^']|'')*'", re.DOTALL)
_SIGNATURE = re.compile(
    r"(procedure|function) (\w+)(?:\((.*?)\))?(?:\nreturn \w+)?\nis\n", re.DOTALL
)
_SQL = re.compile(
    r"(?<!for )\b(?:select|insert into|update|delete from|merge into|lock table)\b"
    r".*?(?:;|\) loop\b)",
    re.DOTALL,
)
_PARAMETER = re.compile(r"(p_\w+)\s+(?:in out|in|out)\b(.*)", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """One parameter: its name, and whether a call may leave it out."""

    name: str
    is_optional: bool


@dataclass(frozen=True)
class Signature:
    """A subprogram's signature, which a call must fit."""

    name: str
    is_function: bool
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Source:
    """A file's name, text and code; the code has the text's lines and columns."""

    name: str
    text: str
    code: str

    @property
    def stem(self) -> str:
        """The file's name without folder and ending."""
        return Path(self.name).stem

    @property
    def room(self) -> str:
        """The name of the file's folder."""
        return Path(self.name).parent.name

    def line_of(self, place: int) -> int:
        """Return the number of the line that has this character."""
        return self.text.count("\n", 0, place) + 1

    def statements(self) -> Iterator[tuple[int, str]]:
        """Yield place and code of every statement of SQL."""
        for match in _SQL.finditer(self.code):
            yield match.start(), match.group()


def source(name: str, text: str) -> Source:
    """Return a text as the lint reads it: comments blank, literals empty of all but blanks."""
    return Source(name, text, _NO_CODE.sub(_blank, text))


def _blank(found: re.Match[str]) -> str:
    text = found.group()
    hidden = re.sub(r"[^\n]", " ", text)
    return hidden if text.startswith("--") else f"'{hidden[1:-1]}'"


def signatures(sources: list[Source]) -> dict[str, Signature]:
    """Return the signatures of all files that hold a subprogram, by its name."""
    found = (_SIGNATURE.match(source.code) for source in sources)
    return {
        match[2]: Signature(match[2], match[1] == "function", tuple(_parameters(match[3] or "")))
        for match in found
        if match
    }


def _parameters(text: str) -> Iterator[Parameter]:
    for part in split(text):
        match = _PARAMETER.match(part)
        if match:
            yield Parameter(match[1], " default " in match[2])


def split(text: str) -> list[str]:
    """Return the parts between the commas of a list, parentheses respected."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def inside(code: str, opening: int) -> str:
    """Return what stands between the parenthesis at `opening` and its partner."""
    depth = 0
    for place in range(opening, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return code[opening + 1 : place]
    return code[opening + 1 :]
