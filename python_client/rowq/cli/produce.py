"""enqueue: one message, or a whole file of them."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from rowq.cli.database import open_queue
from rowq.cli.errors import BadInput
from rowq.cli.intake import READERS, Lines
from rowq.cli.load import Load
from rowq.cli.options import AsJson, QueueName, Url, header_pairs, moment
from rowq.cli.output import print_json
from rowq.messages import Enqueued
from rowq.queue import Queue

_STDIN = Path("-")


class FileFormat(StrEnum):
    """What --from can read."""

    CSV = "csv"
    JSONL = "jsonl"


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command(rich_help_panel="Messages")(enqueue)


def enqueue(
    queue_name: QueueName,
    url: Url,
    body: Annotated[
        str | None,
        typer.Argument(
            metavar="BODY", help="Text body, stored as it is; standard input when left out."
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="A .csv or .jsonl file, or - for standard input with --format: a message per row.",
        ),
    ] = None,
    file_format: Annotated[
        FileFormat | None, typer.Option("--format", help="When the file's name does not tell.")
    ] = None,
    from_line: Annotated[
        int, typer.Option(metavar="N", min=1, help="Begin --from at this line of the file.")
    ] = 1,
    batch_size: Annotated[
        int, typer.Option(min=1, max=10_000, help="Messages of --from per call: all in or none.")
    ] = 1000,
    binary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Binary body from a file, or - for standard input."),
    ] = None,
    no_body: Annotated[bool, typer.Option("--no-body", help="A message without a body.")] = False,
    priority: Annotated[int, typer.Option(help="0 to 9; 0 is delivered first.")] = 5,
    delay_seconds: Annotated[
        float | None, typer.Option("--delay", metavar="SECONDS", help="Deliver no sooner.")
    ] = None,
    run_at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Deliver no sooner than this ISO 8601 date and time."),
    ] = None,
    dedup_key: Annotated[
        str | None, typer.Option(help="Add nothing while an unfinished message has this key.")
    ] = None,
    message_type: Annotated[
        str | None, typer.Option("--type", help="Free label for the consumer.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A header; may be repeated.")
    ] = None,
    max_attempts: Annotated[
        int | None, typer.Option(help="Leases before the message is dead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Hand over one message, or with --from one for each row of a file.

    A row of CSV becomes a JSON object keyed by the header, its values strings; a line of JSON is
    stored as it is. Each batch is in whole or not at all. At a bad line the load ends with exit
    status 5: the batches before it are in, its own is not, and the error says from which line to
    go on.
    """
    _check_sources(body, source, binary, no_body)
    options: dict[str, Any] = {
        "message_type": message_type,
        "headers": header_pairs(header),
        "priority": priority,
        "delay_seconds": delay_seconds,
        "run_at": moment(run_at),
        "max_attempts": max_attempts,
    }
    if source is not None:
        if dedup_key is not None:
            raise typer.BadParameter("--dedup-key is for one message, not for --from")
        _enqueue_file(url, queue_name, source, file_format, from_line, batch_size, options, as_json)
        return
    content = _content(body, binary, no_body)
    with open_queue(url) as queue:
        sent = queue.enqueue(queue_name, **content, **options, dedup_key=dedup_key)
    _tell(sent, as_json)


def _check_sources(
    body: str | None, source: Path | None, binary: Path | None, no_body: bool
) -> None:
    given = [body is not None, source is not None, binary is not None, no_body]
    if sum(given) > 1:
        raise typer.BadParameter("give one of BODY, --from, --binary and --no-body")


def _content(body: str | None, binary: Path | None, no_body: bool) -> dict[str, Any]:
    """Return what to enqueue as keyword arguments of Queue.enqueue."""
    if no_body:
        return {}
    if binary is not None:
        if binary == _STDIN:
            return {"data": _not_empty(_standard_input().read(), "standard input")}
        return {"data": _not_empty(binary.read_bytes(), str(binary))}
    if body is not None and body != "-":
        _not_empty(body.encode(errors="surrogateescape"), "BODY")
        return {"text": body}
    content = _not_empty(_standard_input().read(), "standard input")
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError as error:
        raise BadInput(f"standard input is not UTF-8: {error}; use --binary -") from None


def _not_empty(content: bytes, source: str) -> bytes:
    """Return a body; an empty one is most likely the output of a program that has failed."""
    if not content:
        raise BadInput(f"{source} is empty; use --no-body for a message without a body")
    return content


def _tell(sent: Enqueued, as_json: bool) -> None:
    if as_json:
        print_json(sent)
    else:
        typer.echo(f"{sent.message_id} {sent.outcome}")


def _enqueue_file(
    url: str,
    queue_name: str,
    source: Path,
    file_format: FileFormat | None,
    from_line: int,
    batch_size: int,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    read = READERS[_format_of(source, file_format)]
    name = "standard input" if source == _STDIN else str(source)
    started = time.monotonic()
    with open_queue(url) as queue, _open(source) as file, _progress(file) as progress:
        lines = Lines(file)
        load = Load(
            queue,
            queue_name,
            name,
            options,
            batch_size,
            on_batch=lambda count: progress.update(
                progress.task_ids[0], completed=lines.bytes_read, messages=count
            ),
        )
        _check_queue(queue, queue_name)
        count = load.run(read(lines, from_line))
    seconds = time.monotonic() - started
    if as_json:
        print_json({"queue_name": queue_name, "enqueued": count, "seconds": round(seconds, 3)})
    else:
        typer.echo(f"{count:,} messages are in {queue_name} ({seconds:.1f} s)")


def _check_queue(queue: Queue, queue_name: str) -> None:
    """Refuse an unknown queue before anything is read; an empty batch asks for it and adds none."""
    queue.enqueue_batch(queue_name, [])


def _format_of(source: Path, given: FileFormat | None) -> FileFormat:
    if given is not None:
        return given
    endings = {".csv": FileFormat.CSV, ".jsonl": FileFormat.JSONL, ".ndjson": FileFormat.JSONL}
    found = endings.get(source.suffix.lower())
    if found is None:
        raise typer.BadParameter(f"say with --format whether {source} is csv or jsonl")
    return found


@contextmanager
def _open(source: Path) -> Iterator[BinaryIO]:
    if source == _STDIN:
        yield _standard_input()
        return
    with source.open("rb") as file:
        yield file


def _standard_input() -> BinaryIO:
    return sys.stdin.buffer


@contextmanager
def _progress(file: BinaryIO) -> Iterator[Progress]:
    """Show a bar on a terminal's standard error, and nothing elsewhere."""
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
