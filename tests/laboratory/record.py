"""What is noted of the runs on a database, and how the files of SQL are shown that ran there."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class File:
    """A file in a report.

    Attributes:
        name: its path below the folder of the engine.
        way: how it reached the server.
        why: the rules that changed it, or why it did not run.
        seen: what is known of the runs that had it as it is today, None where none had.
    """

    name: str
    way: str
    why: str
    seen: str | None


def digest(text: str) -> str:
    """Return the beginning of the SHA-256 of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def as_json(record: Mapping[str, Any]) -> str:
    """Return a record as JSON with a line for each entry of what has names."""
    parts = []
    for name, value in record.items():
        text = json.dumps(value, sort_keys=True)
        if isinstance(value, dict):
            lines = (
                f" {json.dumps(key)}: {json.dumps(value[key], sort_keys=True)}" for key in value
            )
            text = "{\n" + ",\n".join(lines) + "\n}"
        parts.append(f"{json.dumps(name)}: {text}")
    return "{" + ",\n".join(parts) + "}\n"


def ways(files: Iterable[File]) -> str:
    """Return how many files reached the server in which way."""
    return ", ".join(f"{count} {way}" for way, count in Counter(file.way for file in files).items())


def table(files: Iterable[File]) -> str:
    """Return a table of files with a row for all that have one way and one reason."""
    rows: dict[tuple[str, str], list[File]] = {}
    for file in files:
        rows.setdefault((file.way, file.why), []).append(file)
    lines = [
        f"| {way} | {why} | {_names(alike, _as_it_ran)} | {_names(alike, _changed)} |\n"
        for (way, why), alike in sorted(rows.items())
    ]
    head = "| how | why | files as they ran | changed since |\n|---|---|---|---|\n"
    return "".join([head, *lines])


def _names(files: Iterable[File], shown: Callable[[File], str]) -> str:
    return ", ".join(filter(None, map(shown, files)))


def _as_it_ran(file: File) -> str:
    if file.seen is None:
        return ""
    return f"`{file.name}`" + (f" ({file.seen})" if file.seen else "")


def _changed(file: File) -> str:
    return f"`{file.name}`" if file.seen is None else ""
