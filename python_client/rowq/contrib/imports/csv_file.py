"""CSV files with one message per row."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from rowq.contrib.imports.source import Batch, Item, Source, origin_of
from rowq.messages import NewMessage
from rowq.tools.console.errors import BadInput
from rowq.tools.console.input_lines import BadLine, Lines, csv_bodies

_TEXTS = ("message_type", "dedup_key", "group_key")
_USUAL_PRIORITY = 5


class CsvFile(Source):
    """A CSV file with a header line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file_name = str(getattr(file, "name", "the file"))
        self._origin = origin_of(Path(self._file_name).resolve())
        self._items = self._read(Lines(file))
        self._next: Item | None = None

    def choose(self, names: Sequence[str] | None) -> list[str]:
        """Return the file itself."""
        return list(names or ())

    def transaction(self) -> AbstractContextManager[Any]:
        """Return a context without effect: the call of a batch is a transaction."""
        return nullcontext()

    def reading(self, name: str) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Return a context without effect: a file is read once."""
        return nullcontext()

    def page(
        self,
        name: str,  # noqa: ARG002
        count: int,
        *,
        lock: bool,  # noqa: ARG002
    ) -> list[Item]:
        """Return the next rows."""
        batch = Batch(count)
        while batch.capacity:
            self._next = self._next or next(self._items, None)
            if self._next is None or not batch.add(self._next):
                break
            self._next = None
        return batch.items

    def remove(self, name: str, items: Sequence[Item]) -> int:  # noqa: ARG002
        """Raise BadInput."""
        raise BadInput("cannot remove messages from a file")

    def left(self, name: str) -> int:  # noqa: ARG002
        """Return 0."""
        return 0

    def _read(self, lines: Lines) -> Iterator[Item]:
        try:
            for row in csv_bodies(lines, 1):
                yield _item(json.loads(row.text), row.first_line, self._origin)
        except BadLine as bad:
            raise BadInput(f"{self._file_name}, line {bad.line}: {bad}") from None


def _item(cells: dict[str, str], line: int, origin: str) -> Item:
    """Return a row as a message; raises BadLine. An empty cell is None."""
    number = cells.pop("id", "")
    if not number:
        raise BadLine(line, "id is required")
    own_key = f"csv:{origin}:{number}"
    texts = {name: cells.pop(name, "") or None for name in _TEXTS}
    values = {name: _parsed(cells.pop(name, ""), name, line) for name in _PARSERS}
    priority, run_at = values["priority"], values["run_at"]
    message = NewMessage(
        text=_body(cells, line),
        message_type=texts["message_type"],
        headers=values["headers"],
        priority=_USUAL_PRIORITY if priority is None else priority,
        run_at=run_at,
        dedup_key=texts["dedup_key"] or own_key,
        max_attempts=values["max_attempts"],
        group_key=texts["group_key"],
    )
    later = run_at is not None and run_at > datetime.now(UTC)
    return Item(f"line {line}", number, own_key, message, later, 0)


def _body(cells: dict[str, str], line: int) -> str | None:
    """Return the column body, or else the remaining columns as a JSON object."""
    if "body" not in cells:
        return json.dumps(cells, ensure_ascii=False) if cells else None
    body = cells.pop("body")
    if cells:
        names = ", ".join(cells)
        raise BadLine(line, f"unknown columns beside body: {names}")
    return body or None


def _parsed(text: str, name: str, line: int) -> Any:
    parse, what = _PARSERS[name]
    if not text:
        return None
    try:
        return parse(text)
    except (ValueError, OverflowError, RecursionError):
        raise BadLine(line, f"{name} must be {what}, got {text[:100]!r}") from None


def _timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError  # noqa: TRY004 - caught above
    return value


_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "priority": (int, "an integer"),
    "max_attempts": (int, "an integer"),
    "run_at": (_timestamp, "an ISO 8601 timestamp such as 2030-01-31T18:00+01:00"),
    "headers": (_object, "a JSON object"),
}
