"""PL/SQL sources for the lint: code without comments and literals, signatures, statements."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.static.shapes import Signature, blanked, parameters

_SIGNATURE = re.compile(
    r"(procedure|function) (\w+)(?:\((.*?)\))?(?:\nreturn (\w+))?\nis\n", re.DOTALL
)
_SQL = re.compile(
    r"(?<!for )\b(?:select|insert into|update|delete from|merge into|lock table)\b"
    r".*?(?:;|\) loop\b)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Source:
    """A file's name, text and code, with the same positions in both."""

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
        """Return the line number of a position."""
        return self.text.count("\n", 0, place) + 1

    def statements(self) -> Iterator[tuple[int, str]]:
        """Yield position and code of every SQL statement."""
        for match in _SQL.finditer(self.code):
            yield match.start(), match.group()


def source(name: str, text: str) -> Source:
    """Return a text as a source."""
    return Source(name, text, blanked(text))


def signatures(sources: list[Source]) -> dict[str, Signature]:
    """Return the signatures of subprograms by name."""
    found = (_SIGNATURE.match(source.code) for source in sources)
    return {
        match[2]: Signature(
            match[2], parameters(match[3] or ""), match[1] == "function", match[4] or ""
        )
        for match in found
        if match
    }
