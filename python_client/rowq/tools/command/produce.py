"""The commands enqueue, publish and alter."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rowq.options import MessageChanges, MessageOptions, PublishOptions
from rowq.tools.command.striped import open_striped
from rowq.tools.console.database import only_url, open_queue
from rowq.tools.console.errors import BadInput
from rowq.tools.console.input_lines import json_error
from rowq.tools.console.options import (
    AsJson,
    QueueName,
    Stripes,
    Url,
    Urls,
    has_options,
    message_options,
)
from rowq.tools.console.output import finish, print_enqueued, print_rows, print_striped
from rowq.tools.console.streams import STANDARD_INPUT, say


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    for command in (enqueue, publish, alter):
        app.command(rich_help_panel="Messages")(command)


Body = Annotated[
    str | None,
    typer.Argument(metavar="BODY", help="Text body. Default: standard input."),
]
Binary = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Binary body from a file, or - for standard input."),
]
NoBody = Annotated[bool, typer.Option("--no-body", help="No body.")]
AsText = Annotated[
    bool, typer.Option("--text", help="Accept a body that starts with { or [ and is not JSON.")
]


@has_options(MessageOptions)
def enqueue(
    queue_name: QueueName,
    url: Urls,
    body: Body = None,
    binary: Binary = None,
    no_body: NoBody = False,
    as_text: AsText = False,
    stripes: Stripes = None,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Enqueue a message; use rowq load for a file of messages.

    All of standard input is one body. A body that starts with { or [ must be JSON, unless --text.
    """
    values["predecessor_ids"] = values["predecessor_ids"] or None
    if stripes is not None and values["predecessor_ids"]:
        raise typer.BadParameter("--after requires a stripe's own name, such as orders/3")
    options = message_options(values) | _content(body, binary, no_body, as_text)
    if stripes is not None:
        with open_striped(url, queue_name, stripes) as striped:
            print_striped(striped.enqueue(**options), as_json)
        return
    with open_queue(only_url(url)) as queue:
        enqueued = queue.enqueue(queue_name, **options)
    print_enqueued(enqueued, as_json)


@has_options(PublishOptions)
def publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Words separated by dots.")],
    url: Url,
    body: Body = None,
    binary: Binary = None,
    no_body: NoBody = False,
    as_text: AsText = False,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Enqueue a message in each queue that is bound to a topic.

    The default of --type is the topic.
    """
    options = message_options(values) | _content(body, binary, no_body, as_text)
    with open_queue(url) as queue:
        published = queue.publish(topic, **options)
    print_rows(published, as_json, nothing="no queue is bound to the topic")


@has_options(
    MessageChanges,
    named={
        "priority": Annotated[
            int | None, typer.Option(help="0 to 9; the message goes to the tail of it.")
        ],
        "expire_seconds": Annotated[
            float | None,
            typer.Option(
                "--expire",
                metavar="SECONDS",
                help="Time from now after which it expires; 0 removes the expiry.",
            ),
        ],
    },
)
def alter(
    queue_name: QueueName,
    message_id: Annotated[int, typer.Argument(metavar="ID", help="Message id.")],
    url: Url,
    body: Annotated[
        str | None, typer.Option(metavar="TEXT", help="New text body, or - for standard input.")
    ] = None,
    binary: Binary = None,
    as_text: AsText = False,
    now: Annotated[bool, typer.Option("--now", help="Deliver without a delay.")] = False,
    as_json: AsJson = False,
    **values: Any,
) -> None:
    """Change a waiting or dead message; omitted values stay unchanged.

    Exit status 4: a worker holds the message, it is not found, or it is dead and a time was given.
    """
    if now and (values["delay_seconds"] is not None or values["run_at"] is not None):
        raise typer.BadParameter("--now, --delay and --run-at are mutually exclusive")
    changes = message_options(values)
    if now:
        changes["delay_seconds"] = 0
    if body is not None or binary is not None:
        changes |= _content(body, binary, no_body=False, as_text=as_text)
    with open_queue(url) as queue:
        altered = queue.alter_message(queue_name, message_id, **changes)
    finish([altered], as_json, good={"altered"})


def _content(body: str | None, binary: Path | None, no_body: bool, as_text: bool) -> dict[str, Any]:
    """Return the body as keyword arguments of Queue.enqueue."""
    if [body is not None, binary is not None, no_body].count(True) > 1:
        raise typer.BadParameter("BODY, --binary and --no-body are mutually exclusive")
    if no_body:
        return {}
    if binary is not None:
        if binary == STANDARD_INPUT:
            return {"data": _not_empty(sys.stdin.buffer.read(), "standard input")}
        return {"data": _not_empty(binary.read_bytes(), str(binary))}
    text, source = _text(body)
    # Otherwise a worker that parses JSON would fail until the message is dead.
    is_meant_as_json = not as_text and text.lstrip()[:1] in {"{", "["}
    if is_meant_as_json and (error := json_error(text)):
        raise BadInput(f"{source} is {error}; use --text to send it unchanged")
    return {"text": text}


def _text(body: str | None) -> tuple[str, str]:
    """Return a text body and its source; raise BadInput."""
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
    """Return a body; raise BadInput if it is empty: most likely a program before it failed."""
    if not content:
        raise BadInput(f"{source} is empty; use --no-body for a message without a body")
    return content
