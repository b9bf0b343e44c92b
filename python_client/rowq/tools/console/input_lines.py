"""Reads bodies from CSV and JSON lines, one at a time, and knows the line of every fault."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

_LONGEST_FIELD = 64 * 1024 * 1024
# Spreadsheets write these where a comma stands in numbers.
_OTHER_DELIMITERS = {";": "';'", "\t": "tab"}
_BYTE_ORDER_MARK = "\ufeff"


class BadLine(Exception):  # noqa: N818 - named by what was found
    """A line that cannot be a message; `line` counts from 1."""

    def __init__(self, line: int, why: str) -> None:
        """Keep the line's number; `why` says what is wrong with it."""
        super().__init__(why)
        self.line = line


@dataclass(frozen=True, slots=True)
class Body:
    """One message's body, and the lines of the file from `first_line` to `last_line` it is from."""

    text: str
    first_line: int
    last_line: int


class Lines:
    """The lines of a binary file as text; raises BadLine for one that is not UTF-8."""

    def __init__(self, file: BinaryIO) -> None:
        """Start before line 1."""
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
            raise BadLine(self.number, "it holds a NUL character")
        return text.removeprefix(_BYTE_ORDER_MARK) if self.number == 1 else text

    def skip_to(self, line: int) -> None:
        """Pass over what is before `line`, whatever it holds."""
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
    """Yield every row as a JSON object keyed by the header, its values strings; raises BadLine.

    The header is line 1 even if `from_line` is later. Empty lines are passed over. Without a
    `delimiter` it is a comma, and a header that looks like one with another is refused.
    """
    csv.field_size_limit(_LONGEST_FIELD)
    rows = csv.reader(lines, strict=True, delimiter=delimiter or ",")
    header = _next_row(rows, lines)
    if header is None:
        raise BadLine(1, "there is no header")
    if delimiter is None and len(header) == 1:
        _refuse_other_delimiter(header[0])
    if len(set(header)) < len(header) or "" in header:
        raise BadLine(1, "the header's names must be there and differ from each other")
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
    """Yield every line, which must be a JSON value, as it is; raises BadLine.

    Empty lines are passed over.
    """
    lines.skip_to(from_line)
    for line in lines:
        text = line.strip()
        if text:
            if fault := json_error(text):
                raise BadLine(lines.number, fault)
            yield Body(text, lines.number, lines.number)


def _refuse_other_delimiter(name: str) -> None:
    for mark, shown in _OTHER_DELIMITERS.items():
        if mark in name:
            raise BadLine(
                1,
                f"the header is one column, with a {shown} in it: say --delimiter {shown}, or"
                " --delimiter , if it is one column",
            )


def _next_row(rows: Iterator[list[str]], lines: Lines) -> list[str] | None:
    first_line = lines.number + 1
    try:
        return next(rows, None)
    except csv.Error as error:
        raise BadLine(first_line, f"not CSV: {error}") from None


def json_error(text: str) -> str | None:
    """Return why a text is not JSON, None if it is."""
    try:
        # Numbers are not converted: JSON allows them any length, and Python does not.
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")
