"""The commands rowq queue ... and rowq topic ..."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Annotated, Any, Unpack

import typer

from rowq.messages import PurgedQueue, QueueOutcome, QueueStats, TopicOutcome
from rowq.options import QueueSettings
from rowq.queue import Queue
from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import only_url, open_queue
from rowq.tools.console.errors import CommandFailed
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import (
    AnyQueue,
    AsJson,
    QueueName,
    Stripes,
    Url,
    Urls,
    Yes,
    has_options,
)
from rowq.tools.console.output import location_of, print_facts, print_json, print_rows, record
from rowq.tools.console.streams import can_ask, confirm, say

app = typer.Typer(help="Create, change and drop queues.", no_args_is_help=True)

_COUNTS = (
    "queue_name", "is_paused", "ready", "delayed", "leased", "dead", "blocked",
    "oldest_ready_seconds",
)  # fmt: skip

_LEFT = ("ready", "delayed", "leased", "blocked", "dead")

topics = typer.Typer(help="Bind queues to topics.", no_args_is_help=True)

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN", help="Topic; * is any word, # at the end any number of words."
    ),
]


@app.command()
@has_options(QueueSettings)
def create(
    queue_name: QueueName,
    url: Urls,
    stripes: Stripes = None,
    as_json: AsJson = False,
    **settings: Unpack[QueueSettings],
) -> None:
    """Create a queue; an existing one stays unchanged.

    Exit status 4: the queue exists with other settings.
    """
    with ExitStack() as stack:
        created: list[tuple[Queue, QueueOutcome]]
        if stripes is None:
            queue = stack.enter_context(open_queue(only_url(url)))
            created = [(queue, queue.create_queue(queue_name, **settings))]
        else:
            striped = stack.enter_context(open_striped(url, queue_name, stripes))
            outcomes = striped.create_queue(**settings)
            created = list(zip(map(striped.queue_of, striped.stripes), outcomes, strict=True))
        others = {
            outcome.queue_name: different
            for queue, outcome in created
            if (different := _other_settings(queue, outcome, settings))
        }
    for _, outcome in created:
        _print_outcome(outcome, as_json)
    for name, different in others.items():
        raise CommandFailed(
            ExitCode.INCOMPLETE,
            f"queue {name} already exists with other settings: {'; '.join(different)};"
            " use rowq queue alter",
        )


@app.command()
@has_options(QueueSettings)
def alter(
    queue_name: QueueName,
    url: Urls,
    stripes: Stripes = None,
    as_json: AsJson = False,
    **settings: Unpack[QueueSettings],
) -> None:
    """Change settings of a queue; omitted settings stay unchanged."""
    _do(url, queue_name, stripes, "alter_queue", as_json, **settings)


@app.command("list")
def list_queues(url: Url, as_json: AsJson = False) -> None:
    """List all queues with their counts."""
    with open_queue(url) as queue:
        found = queue.queue_stats()
    print_rows(found, as_json, nothing="no queues", columns=_COUNTS)


@app.command()
def show(queue_name: QueueName, url: Url, as_json: AsJson = False) -> None:
    """Show counts and settings of a queue."""
    with open_queue(url) as queue:
        found: QueueStats = queue.queue_stats(queue_name)[0]
    if as_json:
        print_json(found)
    else:
        print_facts(record(found))


@app.command()
def pause(
    queue_name: QueueName, url: Urls, stripes: Stripes = None, as_json: AsJson = False
) -> None:
    """Stop delivery; messages can still be enqueued and finished."""
    _do(url, queue_name, stripes, "pause_queue", as_json)


@app.command()
def resume(
    queue_name: QueueName, url: Urls, stripes: Stripes = None, as_json: AsJson = False
) -> None:
    """Resume delivery."""
    _do(url, queue_name, stripes, "resume_queue", as_json)


@app.command()
def purge(
    queue_name: QueueName,
    url: Url,
    include_dead: Annotated[
        bool, typer.Option("--include-dead", help="Also delete dead messages.")
    ] = False,
    max_messages: Annotated[
        int | None, typer.Option(help="Maximum number of messages. Default: all.")
    ] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete waiting messages: ready, delayed and blocked.

    Leased messages stay. On a terminal it asks first.
    """
    with open_queue(url) as queue:
        if not yes and can_ask():
            (stats,) = queue.queue_stats(queue_name)
            confirm(_purge_in_words(stats, include_dead, max_messages))
        purged: PurgedQueue = queue.purge_queue(
            queue_name, include_dead=include_dead, max_messages=max_messages
        )
    if as_json:
        print_json(purged)
    else:
        say(f"removed {purged.removed} messages")


@app.command()
def drop(
    queue_name: QueueName,
    url: Urls,
    force: Annotated[
        bool, typer.Option("--force", help="Also drop its messages and its archive.")
    ] = False,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Drop an empty queue, or with --force any queue."""
    _do(url, queue_name, stripes, "drop_queue", as_json, force=force)


@app.command()
def drained(
    queue_name: QueueName,
    url: Urls,
    stripes: Annotated[
        int, typer.Option(metavar="N", help="Present number of stripes per server.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check whether a striped queue can change its number of stripes.

    First stop all producers of messages with keys. Lists the stripes that still hold messages.
    Exit status 4: some do.
    """
    with open_striped(url, queue_name, stripes) as striped:
        left = striped.undrained()
    rows = [
        location_of(one.stripe)
        | {name: one.stats and getattr(one.stats, name) for name in _LEFT}
        | {"error": one.error}
        for one in left
    ]
    print_rows(rows, as_json, nothing="nothing is left")
    if left:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _do(
    urls: list[str],
    queue_name: str,
    stripes: int | None,
    method: str,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Call a method for a queue, or for all stripes of a queue, and print the outcomes."""
    if stripes is None:
        with open_queue(only_url(urls)) as queue:
            outcomes = [getattr(queue, method)(queue_name, **arguments)]
    else:
        with open_striped(urls, queue_name, stripes) as striped:
            outcomes = getattr(striped, method)(**arguments)
    for outcome in outcomes:
        _print_outcome(outcome, as_json)


def _purge_in_words(stats: QueueStats, include_dead: bool, max_messages: int | None) -> str:
    names = ("ready", "delayed", "blocked", *(("dead",) if include_dead else ()))
    counts = ", ".join(f"{getattr(stats, name) or 0:,} {name}" for name in names)
    most = "all of them" if max_messages is None else f"at most {max_messages:,} of them"
    return f"{stats.queue_name} has {counts} messages. This deletes {most}."


def _other_settings(queue: Queue, created: QueueOutcome, settings: Mapping[str, Any]) -> list[str]:
    """Return in words how an existing queue's settings differ from `settings`."""
    wanted = {name: value for name, value in settings.items() if value is not None}
    if created.outcome != "exists" or not wanted:
        return []
    found = record(queue.queue_stats(created.queue_name, max_count=1)[0])
    return [
        f"{name} is {_text_of(found[name])}, not {_text_of(value)}"
        for name, value in wanted.items()
        if found[name] != value
    ]


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _print_outcome(outcome: QueueOutcome | TopicOutcome, as_json: bool) -> None:
    if as_json:
        print_json(outcome)
    elif isinstance(outcome, TopicOutcome):
        words = outcome.outcome.replace("_", " ")
        say(f"{outcome.queue_name}: {outcome.topic_pattern} {words}")
    else:
        say(f"{outcome.queue_name}: {outcome.outcome}")


@topics.command()
def bind(queue_name: QueueName, pattern: Pattern, url: Url, as_json: AsJson = False) -> None:
    """Bind a queue to all topics that match a pattern."""
    with open_queue(url) as queue:
        _print_outcome(queue.bind_topic(queue_name, pattern), as_json)


@topics.command()
def unbind(queue_name: QueueName, pattern: Pattern, url: Url, as_json: AsJson = False) -> None:
    """Remove a pattern from a queue; its messages stay."""
    with open_queue(url) as queue:
        _print_outcome(queue.unbind_topic(queue_name, pattern), as_json)


@topics.command("list")
def list_topics(url: Url, queue_name: AnyQueue = None, as_json: AsJson = False) -> None:
    """List the patterns of one queue or all queues."""
    with open_queue(url) as queue:
        found = queue.list_topics(queue_name)
    print_rows(found, as_json, nothing="no patterns")
