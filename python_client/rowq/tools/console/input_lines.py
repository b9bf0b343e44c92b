"""Bodies from CSV and JSON lines, and the line of every error."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

_LONGEST_FIELD = 64 * 1024 * 1024
# Spreadsheets use these if the decimal separator is a comma.
_OTHER_DELIMITERS = {";": "';'", "\t": "tab"}
_BYTE_ORDER_MARK = "\ufeff"


class BadLine(Exception):  # noqa: N818 - named by what was found
    """An invalid line; `line` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, slots=True)
class Body:
    """A message's body, and its first and last line in the file."""

    text: str
    first_line: int
    last_line: int


class Lines:
    """The lines of a binary file as text; raises BadLine if a line is not UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 0
        self.bytes_read = 0

    def __iter__(self) -> "Lines":
        return self

    def __next__(self) -> str:
        try:
            text = self._next_bytes().decode()
        except UnicodeDecodeError as error:
            raise BadLine(self.number, f"not UTF-8: {error.reason}") from None
        if "\0" in text:
            raise BadLine(self.number, "contains a NUL character")
        return text.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else text

    def skip_to(self, line: int) -> None:
        """Skip everything before `line`, valid or not."""
        try:
            while self.number < line - 1:
                self._next_bytes()
        except StopIteration:
            return

    def _next_bytes(self) -> bytes:
        raw = next(self._file)
        self.number += 1
        self.bytes_read += len(raw)
        return raw


def csv_bodies(lines: Lines, from_line: int, delimiter: str | None = None) -> Iterator[Body]:
    """Yield every row as a JSON object of strings, keyed by the header; raise BadLine.

    The header is line 1 even if `from_line` is later. Empty lines are skipped. The default
    delimiter is a comma; then a header that seems to use another delimiter is refused.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(lines, strict=True, delimiter=delimiter or ",")
    header = _next_row(rows, lines)
    if header is None:
        raise BadLine(1, "a header is required")
    if delimiter is None and len(header) == 1:
        _refuse_other_delimiter(header[0])
    if len(set(header)) < len(header) or "" in header:
        raise BadLine(1, "CSV header names must be unique and not empty")
    lines.skip_to(from_line)
    while True:
        first_line = lines.number + 1
        row = _next_row(rows, lines)
        if row is None:
            return
        if not row:
            continue
        if len(row) != len(header):
            raise BadLine(first_line, f"{len(row)} columns, but the header has {len(header)}")
        text = json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False)
        yield Body(text, first_line, lines.number)


def jsonl_bodies(lines: Lines, from_line: int) -> Iterator[Body]:
    """Yield every line, which must be a JSON value, unchanged; raise BadLine. Skip empty lines."""
    lines.skip_to(from_line)
    for line in lines:
        text = line.strip()
        if text:
            if error := json_error(text):
                raise BadLine(lines.number, error)
            yield Body(text, lines.number, lines.number)


def _refuse_other_delimiter(name: str) -> None:
    for mark, shown in _OTHER_DELIMITERS.items():
        if mark in name:
            raise BadLine(
                1,
                f"the header has one column that contains {shown}; use --delimiter {shown}, or"
                " --delimiter , for a single column",
            )


def _next_row(rows: Iterator[list[str]], lines: Lines) -> list[str] | None:
    first_line = lines.number + 1
    try:
        return next(rows, None)
    except csv.Error as error:
        raise BadLine(first_line, f"not CSV: {error}") from None


def json_error(text: str) -> str | None:
    """Return why a text is not JSON; None if it is."""
    try:
        # Do not convert numbers: JSON allows any length, Python does not.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
