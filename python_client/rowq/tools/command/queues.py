"""rowq queue ...: create, list, show, alter, pause, resume, purge, drop, drained."""

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
from rowq.tools.console.output import place_of, print_facts, print_json, print_rows, record
from rowq.tools.console.streams import can_ask, confirm, say

app = typer.Typer(help="Make, change and remove queues.", no_args_is_help=True)

_COUNTS = (
    "queue_name", "is_paused", "ready", "delayed", "leased", "dead", "blocked",
    "oldest_ready_seconds",
)  # fmt: skip

_LEFT = ("ready", "delayed", "leased", "blocked", "dead")

topics = typer.Typer(help="Bind queues to topics.", no_args_is_help=True)

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN", help="A topic; * is any one word, # at its end any words or none."
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
    """Create a queue; one that exists is left as it is, with exit status 4 if asked for another."""
    with ExitStack() as stack:
        made: list[tuple[Queue, QueueOutcome]]
        if stripes is None:
            queue = stack.enter_context(open_queue(only_url(url)))
            made = [(queue, queue.create_queue(queue_name, **settings))]
        else:
            striped = stack.enter_context(open_striped(url, queue_name, stripes))
            outcomes = striped.create_queue(**settings)
            made = list(zip(map(striped.queue_of, striped.stripes), outcomes, strict=True))
        others = {
            outcome.queue_name: different
            for queue, outcome in made
            if (different := _other_settings(queue, outcome, settings))
        }
    for _, outcome in made:
        _print_outcome(outcome, as_json)
    for name, different in others.items():
        raise CommandFailed(
            ExitCode.INCOMPLETE,
            f"{name} exists, and its settings are as they were: {'; '.join(different)};"
            " rowq queue alter changes them",
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
    """Change settings of a queue; what is left out stays as it is."""
    _do(url, queue_name, stripes, "alter_queue", as_json, **settings)


@app.command("list")
def list_queues(url: Url, as_json: AsJson = False) -> None:
    """List every queue with its counts."""
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
    """Stop delivery; enqueue and finishing go on."""
    _do(url, queue_name, stripes, "pause_queue", as_json)


@app.command()
def resume(
    queue_name: QueueName, url: Urls, stripes: Stripes = None, as_json: AsJson = False
) -> None:
    """Start delivery again."""
    _do(url, queue_name, stripes, "resume_queue", as_json)


@app.command()
def purge(
    queue_name: QueueName,
    url: Url,
    include_dead: Annotated[
        bool, typer.Option("--include-dead", help="Remove dead messages too.")
    ] = False,
    max_messages: Annotated[int | None, typer.Option(help="Stop after so many.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete waiting messages: ready, delayed, blocked; leased ones stay with their workers.

    On a terminal it asks first.
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
        bool, typer.Option("--force", help="With everything in it, archive included.")
    ] = False,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Remove an empty queue, or with --force any queue."""
    _do(url, queue_name, stripes, "drop_queue", as_json, force=force)


@app.command()
def drained(
    queue_name: QueueName,
    url: Urls,
    stripes: Annotated[
        int, typer.Option(metavar="N", help="How many stripes it has had on each server.")
    ],
    as_json: AsJson = False,
) -> None:
    """Say if a striped queue may have another number of stripes; exits with 4 when not yet.

    First stop all that enqueue messages with keys. What is left in the stripes is listed.
    """
    with open_striped(url, queue_name, stripes) as striped:
        left = striped.undrained()
    rows = [
        place_of(one.stripe)
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
    """Call a method for a queue, or for all stripes of a striped one, and print the outcomes."""
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
    most = "all of these" if max_messages is None else f"{max_messages:,} of these at most"
    return f"{stats.queue_name} has {counts} messages. This deletes {most}."


def _other_settings(queue: Queue, made: QueueOutcome, asked: Mapping[str, Any]) -> list[str]:
    """Return in words what an existing queue's settings are where others were asked for."""
    given = {name: value for name, value in asked.items() if value is not None}
    if made.outcome != "exists" or not given:
        return []
    here = record(queue.queue_stats(made.queue_name, max_count=1)[0])
    return [
        f"{name} is {_said(here[name])}, asked for {_said(value)}"
        for name, value in given.items()
        if here[name] != value
    ]


def _said(value: Any) -> str:
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
    """Let a queue get what is published under the topics that a pattern matches."""
    with open_queue(url) as queue:
        _print_outcome(queue.bind_topic(queue_name, pattern), as_json)


@topics.command()
def unbind(queue_name: QueueName, pattern: Pattern, url: Url, as_json: AsJson = False) -> None:
    """Take a queue's pattern away; what it has got stays."""
    with open_queue(url) as queue:
        _print_outcome(queue.unbind_topic(queue_name, pattern), as_json)


@topics.command("list")
def list_topics(url: Url, queue_name: AnyQueue = None, as_json: AsJson = False) -> None:
    """List the patterns of one queue or all."""
    with open_queue(url) as queue:
        found = queue.list_topics(queue_name)
    print_rows(found, as_json, nothing="no patterns")
