"""import: the waiting messages of another queue become rowq's.

Every batch is one transaction, or one call where the other queue is in another database. A message
has a dedup key that names the other queue and its id there, so a second run adds nothing that is
in, and no message is taken for one of another queue.
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
    """What messages can be imported from."""

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
        Kind, typer.Option("--from", help="Whose messages they are now.", show_default=False)
    ],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Queues to import, all of them by default; with --from csv the file.",
            show_default=False,
        ),
    ] = None,
    from_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The database of the other queue, on PostgreSQL; the one of --url by default.",
            callback=remember_url,
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Schema of the other queue's tables: pgmq, pgboss or public by default.",
        ),
    ] = None,
    into: Annotated[
        str | None,
        typer.Option(
            metavar="QUEUE",
            help="Where the messages of one queue, or of a file, go; the queue of the same name by"
            " default.",
        ),
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Create queues that are missing in rowq.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option("--remove", help="Delete what is in from the other queue, batch by batch."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and count everything, and change nothing.")
    ] = False,
    batch_size: Annotated[
        int, typer.Option(min=1, max=10_000, help="Messages per batch: all in or none.")
    ] = 1000,
    as_json: AsJson = False,
) -> None:
    """Hand over the waiting messages of pgmq, pg-boss or procrastinate, or of a file.

    Stop the other queue's workers and producers first. Each batch is in whole or not at all. After
    a fault, or Ctrl-C, run the command again: what is in already is not added again, as long as it
    has not ended in rowq.
    """
    _check(kind, names, from_url, schema, into, remove=remove)
    with _opened(kind, url, from_url, schema, names) as (queue, source):
        chosen = source.choose(names)
        if into is not None and len(chosen) > 1:
            raise typer.BadParameter(f"--into is for one queue, and there are {', '.join(chosen)}")
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
    """Raise typer.BadParameter for options that do not go together."""
    if kind is not Kind.CSV:
        return
    if len(names or ()) != 1 or into is None:
        raise typer.BadParameter("--from csv takes one file, and --into the queue")
    if from_url is not None or schema is not None or remove:
        raise typer.BadParameter("--from-url, --schema and --remove are not for a file")


@contextmanager
def _opened(
    kind: Kind, url: str, from_url: str | None, schema: str | None, names: list[str] | None
) -> Iterator[tuple[Queue, Source]]:
    """Open both sides; they share a connection, and transactions, in one database."""
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
        raise typer.BadParameter(
            f"{kind} is on PostgreSQL: name its database, postgresql://..., with --from-url"
        )
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
    print_rows(moved, as_json, nothing="there is no queue to import", columns=columns)


def _warn(moved: list[Moved], *, remove: bool) -> None:
    """Say on standard error what differs from the other queue, or is left in it."""
    for one in moved:
        if one.overtaken:
            say(
                f"warning: {one.overtaken} messages of {one.source} with a group key wait for their"
                " time: rowq lets later ones of their groups pass them",
                err=True,
            )
        if remove and one.removed < one.messages:
            say(
                f"warning: {one.messages - one.removed} messages of {one.source} stay there: rowq"
                " has messages with the dedup keys that they have, which may be others",
                err=True,
            )
