"""Counts what a call runs by the text of the SQL, where the engine is not at hand.

The way through the text is that of path.toml, which says of every condition on it whether it is
true; one that it does not know is an error. A loop goes round once, as nothing is to be done again
and one lane is open. What an exception handler does is not on the way.
"""

from __future__ import annotations

import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.studies.statements.count import Count, counted

_SQL = Path(__file__).resolve().parents[3] / "sql"
_NOTE = re.compile(r"--[^\n]*")
_TEXT = re.compile(r"N?'(?:[^']|'')*'")
_SPACE = re.compile(r"\s+")
# Between these words the text of a statement of T-SQL goes on; one of them begins a line.
_TSQL_BEGINS = re.compile(
    r"^[ \t]*(?=(?:begin|break|commit|continue|declare|delete|exec|if|insert|return|rollback|select"
    r"|set|throw|update|while|with)\b)",
    re.MULTILINE,
)


class _Returned(Exception):  # noqa: N818
    """The routine ends here."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is so on the way: conditions by their texts, and routines that a call does not reach."""

    conditions: Mapping[str, bool]
    not_reached: frozenset[str]
    seen: set[str]

    def is_true(self, condition: str, routine: str) -> bool:
        """Return whether a condition holds; raises ValueError for one that nobody has judged."""
        text = _SPACE.sub(" ", condition).strip()
        for key in (f"{routine}: {text}", text):
            if key in self.conditions:
                self.seen.add(key)
                return self.conditions[key]
        raise ValueError(f"{routine}: path.toml does not say whether this holds: {text}")


class Walk(ABC):
    """A way through the routines of an engine; what ran is in `ran`, with its place as its kind."""

    ends: re.Pattern[str]
    call: re.Pattern[str]
    inner: re.Pattern[str]

    def __init__(self, engine: str, assumed: Assumed) -> None:
        self._engine, self._assumed = engine, assumed
        self.ran: list[tuple[tuple[str, int], str]] = []
        self.calls = 0
        self._name, self._text, self._at = "", "", 0

    @cached_property
    def _files(self) -> dict[str, Path]:
        folders = (_SQL / self._engine / folder for folder in ("routines", "internal"))
        return {
            name.lower(): path
            for folder in folders
            for path in folder.glob("*.sql")
            for name in self.inner.findall(path.read_text("utf-8"))[:1]
        }

    def routine(self, name: str) -> None:
        """Walk through a routine, and come back."""
        outer = self._name, self._text, self._at
        self._name = name
        self._text = _NOTE.sub("", self._files[name.lower()].read_text("utf-8"))
        try:
            self._body()
        except _Returned:
            pass
        finally:
            self._name, self._text, self._at = outer

    @abstractmethod
    def _body(self) -> None:
        """Walk through the body of the routine that is entered."""

    def _has(self, pattern: str) -> re.Match[str] | None:
        """Step over what comes next, if it is this."""
        found = re.compile(rf"\s*{pattern}", re.IGNORECASE).match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _to(self, pattern: str) -> str:
        """Step over what comes next, up to and with this; return what stands before it."""
        found = re.compile(pattern).search(self._blind, self._at)
        if found is None:
            raise ValueError(f"{self._name}: no {pattern} after {self._text[self._at :][:60]!r}")
        text = self._text[self._at : found.start()]
        self._at = found.end()
        return text

    @property
    def _blind(self) -> str:
        """The text with its quoted texts, at the same places, made of nothing that could matter."""
        return _TEXT.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", self._text)

    def _run(self, text: str, *, is_live: bool) -> None:
        """Take a statement, or the routines and queries inside an expression."""
        if not is_live:
            return
        place = self._name, self._at
        names = [name for name in self.call.findall(text) if name not in self._assumed.not_reached]
        for name in names:
            self.calls += 1
            self.routine(name)
        self.ran.append((place, text.strip()))

    def _holds(self, condition: str, *, is_live: bool) -> bool:
        if not is_live:
            return False
        self._run(condition, is_live=True)
        return self._assumed.is_true(condition, self._name)


class Tsql(Walk):
    """T-SQL in the style of this house: each statement begins a line and ends with a semicolon."""

    call = re.compile(r"^\s*exec rowq\.(\w+)")
    inner = re.compile(r"create or alter procedure rowq\.(\w+)")

    def _body(self) -> None:
        self._at = self._text.index("\nas\nbegin\n") + len("\nas\n")
        self._statement(is_live=True)

    def _statement(self, *, is_live: bool) -> None:
        if self._has(r"begin try\b"):
            self._block(r"end try\b", is_live=is_live)
            self._has(r"begin catch\b")
            self._block(r"end catch;", is_live=False)
        elif self._has(r"begin\b(?!\s+transaction)"):
            self._block(r"end\b;?", is_live=is_live)
        elif self._has(r"if\b"):
            holds = self._holds(self._condition(), is_live=is_live)
            self._statement(is_live=holds)
            if self._has(r"else\b"):
                self._statement(is_live=is_live and not holds)
        elif self._has(r"while\b"):
            self._statement(is_live=self._holds(self._condition(), is_live=is_live))
        else:
            text = self._to(";").strip()
            self._run(text, is_live=is_live)
            if is_live and text.startswith("return"):
                raise _Returned

    def _block(self, end: str, *, is_live: bool) -> None:
        while not self._has(end):
            self._statement(is_live=is_live)

    def _condition(self) -> str:
        """Return the text up to the line that begins a statement, outside brackets."""
        start = self._at
        for found in _TSQL_BEGINS.finditer(self._blind, start):
            text = self._blind[start : found.start()]
            if text.count("(") == text.count(")") and text.strip():
                self._at = found.start()
                return self._text[start : found.start()]
        raise ValueError(f"{self._name}: a condition without an end")


class Plsql(Walk):
    """PL/SQL in the style of this house."""

    call = re.compile(r"\binternal_\w+(?=\()")
    inner = re.compile(r"^(?:procedure|function) (\w+)", re.MULTILINE)

    def _body(self) -> None:
        begin = re.compile(r"^begin\n", re.MULTILINE).search(self._text)
        assert begin is not None
        head = self._text[: begin.start()]
        for value in re.findall(r":=\s*([^;]*);", head):
            self._run(value, is_live=True)
        self._at = begin.end()
        self._block(is_live=True)

    def _block(self, *, is_live: bool) -> str:
        """Walk to the end of a block, or to the next branch; return the words that end it."""
        while True:
            if end := self._has(r"(?:elsif\b|else\b|when\b|exception\b|end(?: \w+)?;)"):
                if end[0].strip() != "exception":
                    return end[0].strip()
                while self._block(is_live=False) == "when":
                    self._to(r"\bthen\b")
                return "end;"
            self._statement(is_live=is_live)

    def _statement(self, *, is_live: bool) -> None:
        if self._has(r"if\b"):
            self._if(is_live=is_live)
        elif self._has(r"while\b"):
            self._block(is_live=self._holds(self._to(r"\bloop\b"), is_live=is_live))
        elif self._has(r"(?:for\b[^;]*?\bloop\b|loop\b|begin\b)"):
            self._block(is_live=is_live)
        elif self._has(r"forall\b"):
            holds = self._holds(self._to(r"(?=\b(?:insert|update|delete)\b)"), is_live=is_live)
            self._run(self._to(";"), is_live=holds)
        elif opened := self._has(r"open (\w+)"):
            text = self._to(";").strip()
            text = text.removeprefix("for").strip() if text.startswith("for") else ""
            self._run(text or self._cursor(opened[1]), is_live=is_live)
        else:
            text = self._to(";").strip()
            self._run(text, is_live=is_live)
            if is_live and text.startswith("return"):
                raise _Returned

    def _cursor(self, name: str) -> str:
        """Return the statement of a cursor of this routine."""
        found = re.search(rf"cursor {name}(?:\([^)]*\))? is\s+(select[^;]*);", self._text)
        if found is None:
            raise ValueError(f"{self._name}: there is no cursor {name}")
        return found[1]

    def _if(self, *, is_live: bool) -> None:
        is_open = is_live
        word = "elsif"
        while word in ("elsif", "else"):
            holds = is_open
            if word == "elsif":
                holds = self._holds(self._to(r"\bthen\b"), is_live=is_open)
            is_open = is_open and not holds
            word = self._block(is_live=holds)


def walked(engine: str) -> Iterator[tuple[str, Walk]]:
    """Yield each call of an engine that path.toml knows, and the way it took.

    Raises ValueError where path.toml does not fit the SQL, in either direction.
    """
    told = tomllib.loads(Path(__file__).with_name("path.toml").read_text("utf-8"))[engine]
    conditions = {text: is_true for is_true in (True, False) for text in told[str(is_true).lower()]}
    assumed = Assumed(conditions, frozenset(told["not_reached"]), set())
    for call, routine in told["calls"].items():
        walk = (Tsql if engine == "sqlserver" else Plsql)(engine, assumed)
        walk.routine(routine)
        yield call, walk
    if left := conditions.keys() - assumed.seen:
        raise ValueError(f"path.toml judges what no call comes to: {sorted(left)}")


def count_text(engine: str) -> dict[str, Count]:
    """Count what each call of an engine runs, by the text of its SQL."""
    return {call: counted(walk.ran, walk.calls) for call, walk in walked(engine)}
