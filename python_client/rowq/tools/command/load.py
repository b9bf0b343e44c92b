"""The command load: each batch is one call, so an error leaves no partial batch."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rowq.errors import ConnectionLost
from rowq.messages import NewMessage
from rowq.options import MessageOptions
from rowq.queue import Queue
from rowq.tools.console.database import open_queue, require_queue
from rowq.tools.console.errors import BadInput, CommandFailed, exit_code_of, one_line
from rowq.tools.console.input_lines import BadLine, Body, Lines, csv_bodies, jsonl_bodies
from rowq.tools.console.options import AsJson, QueueName, Url, has_options, message_options
from rowq.tools.console.output import print_json
from rowq.tools.console.streams import STANDARD_INPUT, say

_BATCH_CHARACTERS = 8 * 1024 * 1024


class FileFormat(StrEnum):
    """Format of a file to load."""

    CSV = "csv"
    JSONL = "jsonl"


_ENDINGS = {".csv": FileFormat.CSV, ".jsonl": FileFormat.JSONL, ".ndjson": FileFormat.JSONL}


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Messages")(load)


_NOT_OF_MANY = (
    *("dedup_key", "group_key", "predecessor_ids", "on_predecessor_dead", "expire_seconds"),
)
"""Options that make sense for one message only."""


@has_options(MessageOptions, without=_NOT_OF_MANY)
def load(
    queue_name: QueueName,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A .csv, .jsonl or .ndjson file, or - for standard input (requires --format).",
            show_default=False,
        ),
    ],
    url: Url,
    file_format: Annotated[
        FileFormat | None, typer.Option("--format", help="Format. Default: by the file's name.")
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="MARK", help="Delimiter of CSV columns: a character, or tab. Default: comma."
        ),
    ] = None,
    from_line: Annotated[
        int, typer.Option(metavar="N", min=1, help="First line of the file to load.")
    ] = 1,
    batch_size: Annotated[int, typer.Option(min=1, max=10_000, help="Messages per call.")] = 1000,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Enqueue a message for each row of a file.

    A CSV row becomes a JSON object keyed by the header, with strings as values. A JSON line is
    stored unchanged. Each batch is enqueued completely or not at all. An invalid line ends the load
    with exit status 5: earlier batches stay, and the error names the line to continue from.
    """
    read = _reader(_format_of(source, file_format), delimiter)
    options = message_options(values)
    started = time.monotonic()
    with open_queue(url) as queue, _open(source) as file, _progress(file) as progress:
        require_queue(queue, queue_name, "producer")
        lines = Lines(file)
        loader = Loader(
            queue,
            queue_name,
            "standard input" if source == STANDARD_INPUT else str(source),
            options,
            batch_size,
            on_batch=lambda count: progress.update(
                progress.task_ids[0], completed=lines.bytes_read, messages=count
            ),
        )
        count = loader.run(read(lines, from_line))
    seconds = time.monotonic() - started
    if as_json:
        print_json({"queue_name": queue_name, "enqueued": count, "seconds": round(seconds, 3)})
    else:
        say(f"{count:,} messages enqueued in {queue_name} ({seconds:.1f} s)")


@dataclass(slots=True)
class Loader:
    """Enqueue the rows of one file.

    source       the file's name, for errors
    options      keyword arguments of every NewMessage
    batch_size   maximum number of messages per call
    on_batch     called after each batch with the number of messages enqueued so far
    """

    queue: Queue
    queue_name: str
    source: str
    options: dict[str, Any]
    batch_size: int
    on_batch: Callable[[int], None]
    count: int = field(default=0, init=False)
    _next_line: int | None = field(default=None, init=False)

    def run(self, bodies: Iterator[Body]) -> int:
        """Enqueue all bodies and return their number; raise BadInput or CommandFailed."""
        try:
            for batch in _in_batches(bodies, self.batch_size):
                self._next_line = self._next_line or batch[0].first_line
                self._send(batch)
                self._next_line = batch[-1].last_line + 1
                self.count += len(batch)
                self.on_batch(self.count)
        except BadLine as bad:
            raise BadInput(f"{self.source}, line {bad.line}: {bad}. {self._so_far()}") from None
        except KeyboardInterrupt as interrupt:
            code = exit_code_of(interrupt)
            raise CommandFailed(code, f"interrupted. {self._so_far()}") from None
        return self.count

    def _send(self, batch: list[Body]) -> None:
        messages = [NewMessage(text=body.text, **self.options) for body in batch]
        try:
            self.queue.enqueue_batch(self.queue_name, messages)
        except (Exception, KeyboardInterrupt) as error:
            lines = f"lines {batch[0].first_line} to {batch[-1].last_line} of {self.source}"
            if isinstance(error, ConnectionLost | KeyboardInterrupt):
                text = (
                    f"{one_line(error)}. {self.count} messages were enqueued before it;"
                    f" {lines} may or may not be enqueued: check with rowq stats"
                )
            else:
                text = f"{one_line(error)} ({lines}). {self._so_far()}"
            raise CommandFailed(exit_code_of(error), text) from error

    def _so_far(self) -> str:
        if not self.count:
            return "No messages were enqueued."
        return f"{self.count} messages were enqueued; continue with --from-line {self._next_line}"


def _reader(
    file_format: FileFormat, delimiter: str | None
) -> Callable[[Lines, int], Iterator[Body]]:
    """Return a function that reads bodies from a line on; raise typer.BadParameter."""
    if delimiter is None:
        return csv_bodies if file_format is FileFormat.CSV else jsonl_bodies
    if file_format is not FileFormat.CSV:
        raise typer.BadParameter("--delimiter requires --format csv")
    mark = "\t" if delimiter.lower() in {"tab", "\\t"} else delimiter
    if len(mark) != 1 or mark in '"\r\n':
        raise typer.BadParameter(f"--delimiter must be one character or tab, got {delimiter!r}")
    return partial(csv_bodies, delimiter=mark)


def _in_batches(bodies: Iterator[Body], batch_size: int) -> Iterator[list[Body]]:
    """Yield lists of up to `batch_size` bodies, shorter if they are large."""
    batch: list[Body] = []
    characters = 0
    for body in bodies:
        batch.append(body)
        characters += len(body.text)
        if len(batch) >= batch_size or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _format_of(source: Path, file_format: FileFormat | None) -> FileFormat:
    found = file_format or _ENDINGS.get(source.suffix.lower())
    if found is None:
        raise typer.BadParameter(f"unknown format of {source}; use --format csv or --format jsonl")
    return found


@contextmanager
def _open(source: Path) -> Iterator[BinaryIO]:
    if source == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with source.open("rb") as file:
        yield file


@contextmanager
def _progress(file: BinaryIO) -> Iterator[Progress]:
    """Show a progress bar if standard error is a terminal."""
    size = None if file is sys.stdin.buffer else os.fstat(file.fileno()).st_size
    progress = Progress(
        TextColumn("{task.fields[messages]:,} messages"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    progress.add_task("", total=size, messages=0)
    with progress:
        yield progress
