"""The commands reset, cancel, cancel-many, delayed and dead."""

from typing import Annotated

import typer

from rowq.messages import LAST_ID, Cancelled, Discarded
from rowq.tools.console.database import open_queue
from rowq.tools.console.options import AsJson, QueueName, Url, Yes, header_pairs, parse_time
from rowq.tools.console.output import finish, print_json, print_rows
from rowq.tools.console.streams import can_ask, confirm, say

MessageIds = Annotated[list[int] | None, typer.Argument(metavar="ID", help="Message ids.")]
Oldest = Annotated[
    int | None, typer.Option(metavar="N", help="The N oldest messages, instead of IDs.")
]
DiedBefore = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only messages that died before this ISO 8601 time."),
]
Limit = Annotated[int, typer.Option(metavar="N", help="Maximum number of messages.")]
OfType = Annotated[str | None, typer.Option("--type", help="Only messages of this type.")]

_MOST = 10_000
"""Maximum number of messages per call."""

dead = typer.Typer(help="List and delete dead messages.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (cancel, cancel_many, reset, delayed):
        app.command(rich_help_panel="Messages")(command)
    app.add_typer(dead, name="dead", rich_help_panel="Messages")


def cancel(
    queue_name: QueueName,
    message_ids: Annotated[list[int], typer.Argument(metavar="ID", help="Message ids.")],
    url: Url,
    include_leased: Annotated[
        bool,
        typer.Option("--include-leased", help="Also request cancellation of leased messages."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cancel messages, dead ones included.

    Exit status 4: a message is leased or not found.
    """
    with open_queue(url) as queue:
        outcomes = queue.cancel(queue_name, message_ids, include_leased=include_leased)
    finish(outcomes, as_json, good={"cancelled", "requested"})


def cancel_many(
    queue_name: QueueName,
    url: Url,
    message_type: OfType = None,
    group_key: Annotated[str | None, typer.Option(help="Only messages of this group.")] = None,
    header: Annotated[
        str | None, typer.Option(metavar="KEY=VALUE", help="Only messages with this header.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only messages enqueued before this ISO 8601 time."),
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel all messages that match every filter, except leased ones.

    On a terminal it asks first.
    """
    is_filtered = any((message_type, group_key, header, before))
    if not yes and can_ask():
        which = "all messages that match" if is_filtered else "all messages"
        confirm(f"This cancels {which} in {queue_name}, except leased ones.")
    [(name, value)] = (header_pairs([header]) or {}).items() if header else [(None, None)]
    count, after = 0, 0
    with open_queue(url) as queue:
        while True:
            answer = queue.cancel_many(
                queue_name,
                message_type=message_type,
                group_key=group_key,
                header_name=name,
                header_value=value,
                enqueued_before=parse_time(before),
                after_message_id=after,
                max_messages=_MOST,
            )
            count += answer.cancelled
            if answer.after_message_id is None:
                break
            after = answer.after_message_id
    if as_json:
        print_json(Cancelled(count, None))
    else:
        say(f"cancelled {count} messages")


def reset(
    queue_name: QueueName,
    url: Url,
    message_ids: MessageIds = None,
    oldest: Oldest = None,
    message_type: OfType = None,
    died_before: DiedBefore = None,
    as_json: AsJson = False,
) -> None:
    """Make dead messages ready again, with fresh attempts.

    Exit status 4: a message was not reset.
    """
    if bool(message_ids) == (oldest is not None):
        raise typer.BadParameter("exactly one of ID and --oldest is required")
    if message_ids and (message_type or died_before):
        raise typer.BadParameter("--type and --died-before require --oldest")
    with open_queue(url) as queue:
        outcomes = (
            queue.reset(queue_name, message_ids)
            if oldest is None
            else queue.reset(
                queue_name,
                max_messages=oldest,
                message_type=message_type,
                died_before=parse_time(died_before),
            )
        )
    finish(outcomes, as_json, good={"reset"})


def delayed(
    queue_name: QueueName,
    url: Url,
    after: Annotated[
        int, typer.Option(metavar="ID", help="Continue after this message; requires --after-due.")
    ] = 0,
    after_due: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The due_at of that message, as --json prints it."),
    ] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List delayed messages without their bodies, the next due first."""
    with open_queue(url) as queue:
        found = queue.list_delayed(
            queue_name,
            after_due_at=parse_time(after_due),
            after_message_id=after,
            max_messages=limit,
        )
    print_rows(found, as_json, nothing="no delayed messages")


@dead.command("list")
def list_dead(
    queue_name: QueueName,
    url: Url,
    after: Annotated[int, typer.Option(metavar="ID", help="Continue after this message.")] = 0,
    limit: Limit = 100,
    newest: Annotated[bool, typer.Option("--newest", help="Newest messages first.")] = False,
    before: Annotated[
        int | None,
        typer.Option(metavar="ID", help="Newest first, starting before this message."),
    ] = None,
    message_type: OfType = None,
    as_json: AsJson = False,
) -> None:
    """List dead messages without their bodies, ordered by id."""
    with open_queue(url) as queue:
        found = queue.list_dead(
            queue_name,
            after_message_id=after,
            max_messages=limit,
            before_message_id=LAST_ID if newest and before is None else before,
            message_type=message_type,
        )
    print_rows(found, as_json, nothing="no dead messages")


@dead.command()
def discard(
    queue_name: QueueName,
    url: Url,
    message_ids: MessageIds = None,
    oldest: Oldest = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All dead messages, instead of IDs.")
    ] = False,
    message_type: OfType = None,
    died_before: DiedBefore = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete dead messages; they are not archived.

    With --oldest and --all it asks first on a terminal.
    """
    if [bool(message_ids), oldest is not None, everything].count(True) != 1:
        raise typer.BadParameter("exactly one of ID, --oldest and --all is required")
    if message_ids and (message_type or died_before):
        raise typer.BadParameter("--type and --died-before require --oldest or --all")
    removed = 0
    with open_queue(url) as queue:
        if not (message_ids or yes) and can_ask():
            (stats,) = queue.queue_stats(queue_name)
            most = "all" if oldest is None else f"the {oldest:,} oldest"
            match = " that match" if message_type or died_before else ""
            confirm(f"{queue_name} has {stats.dead:,} dead messages. This deletes {most}{match}.")
        while True:
            done = queue.discard_dead(
                queue_name,
                message_ids or None,
                max_messages=_MOST if oldest is None else oldest,
                message_type=message_type,
                died_before=parse_time(died_before),
            )
            removed += done.removed
            if not everything or done.removed < _MOST:
                break
    if as_json:
        print_json(Discarded(removed))
    else:
        say(f"removed {removed} messages")
