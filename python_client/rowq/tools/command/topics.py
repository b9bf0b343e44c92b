"""rowq topic ...: bind, unbind, list."""

from typing import Annotated

import typer

from rowq.messages import TopicOutcome
from rowq.tools.console.database import open_queue
from rowq.tools.console.options import AnyQueue, AsJson, QueueName, Url
from rowq.tools.console.output import print_json, print_rows
from rowq.tools.console.streams import say

app = typer.Typer(help="Bind queues to topics.", no_args_is_help=True)

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN", help="A topic; * is any one word, # at its end any words or none."
    ),
]


@app.command()
def bind(queue_name: QueueName, pattern: Pattern, url: Url, as_json: AsJson = False) -> None:
    """Let a queue get what is published under the topics that a pattern matches."""
    with open_queue(url) as queue:
        _print_outcome(queue.bind_topic(queue_name, pattern), as_json)


@app.command()
def unbind(queue_name: QueueName, pattern: Pattern, url: Url, as_json: AsJson = False) -> None:
    """Take a queue's pattern away; what it has got stays."""
    with open_queue(url) as queue:
        _print_outcome(queue.unbind_topic(queue_name, pattern), as_json)


@app.command("list")
def list_topics(url: Url, queue_name: AnyQueue = None, as_json: AsJson = False) -> None:
    """List the patterns of one queue or all."""
    with open_queue(url) as queue:
        found = queue.list_topics(queue_name)
    print_rows(found, as_json, nothing="no patterns")


def _print_outcome(done: TopicOutcome, as_json: bool) -> None:
    if as_json:
        print_json(done)
    else:
        outcome = done.outcome.replace("_", " ")
        say(f"{done.queue_name}: {done.topic_pattern} {outcome}")
