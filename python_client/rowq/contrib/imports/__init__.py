"""The command import: it moves or copies waiting messages from another queue to rowq.

Each batch is one transaction, or one call if the other queue is in another database. The dedup key
contains the other queue and the message's id there, so a second run adds no message twice.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rowq.contrib.imports.mover import Moved, Mover
from rowq.contrib.imports.source import Source
from rowq.engines import engine_for_url
from rowq.queue import Queue
from rowq.tools.console.database import check_installed, open_queue, remember_url
from rowq.tools.console.options import AsJson, Url
from rowq.tools.console.output import print_rows
from rowq.tools.console.streams import say


class Kind(StrEnum):
    """Sources of messages."""

    PGMQ = "pgmq"
    PG_BOSS = "pg-boss"
    PROCRASTINATE = "procrastinate"
    CSV = "csv"


_MODULES = {
    Kind.PGMQ: "pgmq",
    Kind.PG_BOSS: "pg_boss",
    Kind.PROCRASTINATE: "procrastinate",
}


def register(app: typer.Typer) -> None:
    """Add this module's command."""
    app.command("import", rich_help_panel="Messages")(import_messages)


def import_messages(
    url: Url,
    kind: Annotated[
        Kind, typer.Option("--from", help="Source of the messages.", show_default=False)
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Queues to import; with --from csv the file. Default: all queues.",
            show_default=False,
        ),
    ] = None,
    from_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="PostgreSQL database of the other queue. Default: that of --url.",
            callback=remember_url,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Schema of the other queue's tables. Default: pgmq, pgboss or public.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE",
            help="Target queue for one queue or a file. Default: the queue of the same name.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create missing queues in rowq.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Delete imported messages from the other queue."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count messages without changes.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, max=10_000, help="Messages per transaction.")
    ] = 1000,
    as_json: AsJson = False,
) -> None:
    """Import waiting messages from pgmq, pg-boss, procrastinate or a CSV file.

    Stop the other queue's workers and producers first. Each batch is imported completely or not at
    all. After an error, or Ctrl-C, run the command again: it skips imported messages that have not
    ended in rowq.
    """
    _check(kind, names, from_url, schema, into, remove=remove)
    with _opened(kind, url, from_url, schema, names) as (queue, source):
        chosen = source.choose(names)
        if into is not None and len(chosen) > 1:
            raise typer.BadParameter(f"--into requires one queue, got {', '.join(chosen)}")
        targets = {name: into or name for name in chosen}
        mover = Mover(queue, source, batch_size, remove=remove, dry_run=dry_run)
        if not dry_run:
            mover.require(set(targets.values()), create=create)
        moved = [mover.move(name, target) for name, target in targets.items()]
    _print(moved, as_json, dry_run=dry_run, remove=remove)
    _warn(moved, remove=remove and not dry_run)


def _check(
    kind: Kind,
    names: list[str] | None,
    from_url: str | None,
    schema: str | None,
    into: str | None,
    *,
    remove: bool,
) -> None:
    """Raise typer.BadParameter for conflicting options."""
    if kind is not Kind.CSV:
        return
    if len(names or ()) != 1 or into is None:
        raise typer.BadParameter("--from csv requires one file and --into")
    if from_url is not None or schema is not None or remove:
        raise typer.BadParameter(
            "--from csv and --from-url, --schema or --remove are mutually exclusive"
        )


@contextmanager
def _opened(
    kind: Kind, url: str, from_url: str | None, schema: str | None, names: list[str] | None
) -> Iterator[tuple[Queue, Source]]:
    """Open both sides; in one database they share a connection and its transactions."""
    if kind is Kind.CSV:
        module = import_module("rowq.contrib.imports.csv_file")
        with Path((names or [""])[0]).open("rb") as file, open_queue(url) as queue:
            yield queue, module.CsvFile(file)
        return
    with _connected(kind, from_url or url) as connection:
        module = import_module(f"rowq.contrib.imports.{_MODULES[kind]}")
        source: Source = module.Tables(connection, schema)
        if from_url is not None:
            with open_queue(url) as queue:
                yield queue, source
            return
        try:
            yield Queue(connection), source
        except Exception as error:
            check_installed(url, error)
            raise


@contextmanager
def _connected(kind: Kind, url: str) -> Iterator[Any]:
    engine = engine_for_url(url)
    if engine.name != "postgres":
        raise typer.BadParameter(f"{kind} requires PostgreSQL; use --from-url postgresql://...")
    connection = engine.connect(url)
    try:
        yield connection
    finally:
        engine.close(connection)


def _print(moved: list[Moved], as_json: bool, *, dry_run: bool, remove: bool) -> None:
    columns = ["source", "queue_name", "messages", "later", "tried", "left"]
    if dry_run:
        columns += ["missing"]
    else:
        columns += ["enqueued", "duplicates", *(["removed"] if remove else [])]
    print_rows(moved, as_json, nothing="no queues to import", columns=columns)


def _warn(moved: list[Moved], *, remove: bool) -> None:
    """Warn of differences to the other queue, and of messages that remain in it."""
    for one in moved:
        if one.overtaken:
            say(
                f"warning: {one.overtaken} delayed messages of {one.source} have a group key; rowq"
                " may deliver later messages of their groups first",
                err=True,
            )
        if remove and one.removed < one.messages:
            say(
                f"warning: {one.messages - one.removed} messages of {one.source} were not removed:"
                " rowq has messages with the same dedup keys",
                err=True,
            )
