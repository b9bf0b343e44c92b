"""enqueue and publish: one message, for a queue or for each that is bound to a topic."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import only_url, open_queue
from rowq.tools.console.errors import BadInput
from rowq.tools.console.intake import json_fault
from rowq.tools.console.options import (
    AsJson,
    DelaySeconds,
    Headers,
    MessageMaxAttempts,
    MessageType,
    Priority,
    QueueName,
    RunAt,
    Stripes,
    Url,
    Urls,
    message_options,
)
from rowq.tools.console.output import print_enqueued, print_placed, print_rows
from rowq.tools.console.streams import STANDARD_INPUT, say


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (enqueue, publish):
        app.command(rich_help_panel="Messages")(command)


Body = Annotated[
    str | None,
    typer.Argument(
        metavar="BODY", help="Text body, stored as it is; standard input when left out."
    ),
]
Binary = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Binary body from a file, or - for standard input."),
]
NoBody = Annotated[bool, typer.Option("--no-body", help="A message without a body.")]
AsText = Annotated[
    bool, typer.Option("--text", help="Accept a body that begins with { or [ and is not JSON.")
]
DedupKey = Annotated[
    str | None, typer.Option(help="Add nothing while an unfinished message has this key.")
]
Group = Annotated[
    str | None, typer.Option(help="First in, first out, one at a time among those of this key.")
]
Expire = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Withdraw it if it has not ended after this time."),
]


def enqueue(
    queue_name: QueueName,
    url: Urls,
    body: Body = None,
    binary: Binary = None,
    no_body: NoBody = False,
    as_text: AsText = False,
    dedup_key: DedupKey = None,
    group: Group = None,
    after: Annotated[
        list[int] | None,
        typer.Option(metavar="ID", help="Deliver only when this message has ended; repeatable."),
    ] = None,
    on_predecessor_dead: Annotated[
        str | None,
        typer.Option(help="If one of --after dies: hold (unless given), continue or fail."),
    ] = None,
    expire: Expire = None,
    priority: Priority = 5,
    delay_seconds: DelaySeconds = None,
    run_at: RunAt = None,
    message_type: MessageType = None,
    header: Headers = None,
    max_attempts: MessageMaxAttempts = None,
    stripes: Stripes = None,
    as_json: AsJson = False,
) -> None:
    """Hand over one message; rowq load takes a whole file of them.

    Its body is BODY, or what is on standard input, as it is: a pipe is one message however many
    lines it has. A body that begins with { or [ must be JSON, unless there is --text.
    """
    options = message_options(priority, delay_seconds, run_at, message_type, header, max_attempts)
    if stripes is not None and after:
        raise typer.BadParameter("--after is for one queue: name the part, such as orders/3")
    options |= _content(body, binary, no_body, as_text) | {
        "dedup_key": dedup_key,
        "group_key": group,
        "predecessor_ids": after or None,
        "on_predecessor_dead": on_predecessor_dead,
        "expire_seconds": expire,
    }
    if stripes is not None:
        with open_striped(url, queue_name, stripes) as striped:
            placed = striped.enqueue(**options)
        print_placed(placed, as_json)
        return
    with open_queue(only_url(url)) as queue:
        enqueued = queue.enqueue(queue_name, **options)
    print_enqueued(enqueued, as_json)


def publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Words with dots between.")],
    url: Url,
    body: Body = None,
    binary: Binary = None,
    no_body: NoBody = False,
    as_text: AsText = False,
    dedup_key: DedupKey = None,
    group: Group = None,
    expire: Expire = None,
    priority: Priority = 5,
    delay_seconds: DelaySeconds = None,
    run_at: RunAt = None,
    message_type: MessageType = None,
    header: Headers = None,
    max_attempts: MessageMaxAttempts = None,
    as_json: AsJson = False,
) -> None:
    """Hand over one message to each queue that is bound to a topic.

    Without --type its type is the topic.
    """
    options = message_options(priority, delay_seconds, run_at, message_type, header, max_attempts)
    content = _content(body, binary, no_body, as_text)
    with open_queue(url) as queue:
        published = queue.publish(
            topic,
            **content,
            **options,
            dedup_key=dedup_key,
            group_key=group,
            expire_seconds=expire,
        )
    print_rows(published, as_json, nothing="no queue is bound to the topic")


def _content(body: str | None, binary: Path | None, no_body: bool, as_text: bool) -> dict[str, Any]:
    """Return what to enqueue as keyword arguments of Queue.enqueue."""
    if [body is not None, binary is not None, no_body].count(True) > 1:
        raise typer.BadParameter("give one of BODY, --binary and --no-body")
    if no_body:
        return {}
    if binary is not None:
        if binary == STANDARD_INPUT:
            return {"data": _not_empty(sys.stdin.buffer.read(), "standard input")}
        return {"data": _not_empty(binary.read_bytes(), str(binary))}
    text, source = _text(body)
    # A worker that reads JSON would find the fault only when the message is dead.
    is_meant_as_json = not as_text and text.lstrip()[:1] in {"{", "["}
    if is_meant_as_json and (fault := json_fault(text)):
        raise BadInput(f"{source} is {fault}; use --text to send it as it is")
    return {"text": text}


def _text(body: str | None) -> tuple[str, str]:
    """Return a text body, and where it is from; raises BadInput."""
    if body is not None and body != "-":
        _not_empty(body.encode(errors="surrogateescape"), "BODY")
        return body, "BODY"
    if sys.stdin.isatty():
        say("reading the body from the terminal; end with Ctrl-D", err=True)
    content = _not_empty(sys.stdin.buffer.read(), "standard input")
    try:
        return content.decode(), "standard input"
    except UnicodeDecodeError as error:
        raise BadInput(f"standard input is not UTF-8: {error}; use --binary -") from None


def _not_empty(content: bytes, source: str) -> bytes:
    """Return a body; an empty one is most likely the output of a program that has failed."""
    if not content:
        raise BadInput(f"{source} is empty; use --no-body for a message without a body")
    return content
