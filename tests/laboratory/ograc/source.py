"""Reads a subprogram of rowq's Oracle package into its parts; the product's layout is relied on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HEADER = re.compile(
    r"^(?P<indent> *)(?P<kind>procedure|function) (?P<name>\w+)"
    r"(?:\((?P<parameters>[^;]*?)\))?(?:\n *return (?P<returns>[\w%.]+))?\n *is\n",
    re.MULTILINE,
)
_PARAMETER = re.compile(
    r"(\w+)\s+(in out nocopy|out nocopy|in out|out|in)\s+([\w%.]+)(?:\s+default\s+(.+))?$"
)
_NESTED = re.compile(
    r"^    procedure (?P<name>\w+)\((?P<parameters>[^;]*?)\)\n?\s+is\n.*?^    end (?P=name);\n",
    re.MULTILINE | re.DOTALL,
)
PRIVATE = re.compile(r"\bt_\w+")


@dataclass(frozen=True)
class Parameter:
    """A parameter; mode is in, out or in out, default its expression or empty."""

    name: str
    mode: str
    type: str
    default: str


@dataclass
class Routine:
    """A subprogram: its header's parts, its declarations, its statements and its handlers."""

    kind: str
    name: str
    parameters: list[Parameter]
    returns: str
    declarations: str
    statements: str
    handlers: str
    nested: dict[str, Routine] = field(default_factory=dict)

    @property
    def is_private(self) -> bool:
        """Whether a type of the package is among its parameters, or what it returns."""
        types = [one.type for one in self.parameters] + [self.returns]
        return any(PRIVATE.match(one) for one in types)


def split(text: str) -> list[str]:
    """Return the parts of a text between its outermost commas."""
    parts, depth, start, in_text = [], 0, 0, False
    for at, letter in enumerate(text):
        if letter == "'":
            in_text = not in_text
        elif not in_text:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth == 0:
                parts.append(text[start:at].strip())
                start = at + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def closing(text: str, at: int) -> int:
    """Return the place of the parenthesis that closes the one at a place."""
    depth, in_text = 0, False
    for place in range(at, len(text)):
        if text[place] == "'":
            in_text = not in_text
        elif not in_text:
            depth += (text[place] == "(") - (text[place] == ")")
            if depth == 0:
                return place
    raise ValueError(f"no end: {text[at : at + 80]}")


def parse(text: str) -> Routine:
    """Return what a file of a subprogram holds."""
    header = _HEADER.search(text)
    if header is None:
        raise ValueError(text[:200])
    parameters = []
    for one in split(header["parameters"] or ""):
        found = _PARAMETER.match(" ".join(one.split()))
        if found is None:
            raise ValueError(one)
        name, mode, its_type, default = found.groups()
        parameters.append(Parameter(name, mode.replace(" nocopy", ""), its_type, default or ""))
    rest = text[header.end() :]
    indent = header["indent"]
    begin = re.search(rf"^{indent}begin\n", rest, re.MULTILINE)
    end = list(re.finditer(rf"^{indent}end {header['name']};", rest, re.MULTILINE))
    if begin is None or not end:
        raise ValueError(header["name"])
    declarations = re.sub(r" *--[^\n]*\n", "\n", rest[: begin.start()])
    statements = re.sub(
        r"^ *--[^\n]*\n", "", rest[begin.end() : end[-1].start()], flags=re.MULTILINE
    )
    nested = {}
    for found in _NESTED.finditer(declarations):
        nested[found["name"]] = parse(found[0])
    declarations = _NESTED.sub("", declarations)
    body, _, handlers = statements.partition(f"\n{indent}exception\n")
    return Routine(
        header["kind"], header["name"], parameters, header["returns"] or "", declarations,
        body.rstrip() + "\n", handlers, nested,
    )  # fmt: skip
