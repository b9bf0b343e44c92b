"""reset and cancel, and rowq dead list: what became of messages, and changing it."""

from typing import Annotated

import typer

from rowq.cli.database import open_queue
from rowq.cli.options import AsJson, QueueName, Url
from rowq.cli.output import finish, print_rows

dead = typer.Typer(help="Look at messages that failed for good.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (cancel, reset):
        app.command(rich_help_panel="Messages")(command)
    app.add_typer(dead, name="dead", rich_help_panel="Messages")


def cancel(
    queue_name: QueueName,
    message_ids: Annotated[list[int], typer.Argument(metavar="ID", help="The messages.")],
    url: Url,
    as_json: AsJson = False,
) -> None:
    """Withdraw messages, dead ones too; exits with 4 when one is leased or not found."""
    with open_queue(url) as queue:
        outcomes = queue.cancel(queue_name, message_ids)
    finish(outcomes, as_json, good={"cancelled"})


def reset(
    queue_name: QueueName,
    url: Url,
    message_ids: Annotated[
        list[int] | None, typer.Argument(metavar="ID", help="The messages.")
    ] = None,
    oldest: Annotated[
        int | None,
        typer.Option(metavar="N", help="Instead of naming messages, take the N oldest."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make dead messages ready again, with fresh attempts; exits with 4 unless all are."""
    if bool(message_ids) == (oldest is not None):
        raise typer.BadParameter("name messages, or give --oldest N")
    with open_queue(url) as queue:
        outcomes = (
            queue.reset(queue_name, message_ids)
            if oldest is None
            else queue.reset(queue_name, max_messages=oldest)
        )
    finish(outcomes, as_json, good={"reset"})


@dead.command("list")
def list_dead(
    queue_name: QueueName,
    url: Url,
    after: Annotated[int, typer.Option(metavar="ID", help="Continue after this message.")] = 0,
    limit: Annotated[int, typer.Option(metavar="N", help="Most messages to list.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List dead messages without their bodies, in the order of their ids."""
    with open_queue(url) as queue:
        found = queue.list_dead(queue_name, after_message_id=after, max_messages=limit)
    print_rows(found, as_json, nothing="no dead messages")
