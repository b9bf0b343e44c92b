"""Commands that read and finish messages: dequeue, peek, show, result, complete, retry, fail..."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from rowq.errors import InvalidArgument
from rowq.messages import Attempt, Message, Reason
from rowq.queue import Queue
from rowq.tools.console.database import open_queue
from rowq.tools.console.exit_codes import ExitCode
from rowq.tools.console.options import (
    AsJson,
    BatchSize,
    ClaimId,
    ErrorText,
    HeldIds,
    LeaseSeconds,
    QueueName,
    Url,
    WorkerName,
)
from rowq.tools.console.output import finish, print_facts, print_json, print_rows, record
from rowq.tools.console.streams import say


def register(app: typer.Typer) -> None:
    """Add this module's commands."""
    message_commands: tuple[Callable[..., None], ...] = (dequeue, peek, show, explain, result)
    claim_commands: tuple[Callable[..., None], ...] = (complete, retry, fail, release, extend)
    for command in message_commands:
        app.command(rich_help_panel="Messages")(command)
    for command in claim_commands:
        app.command(rich_help_panel="Messages of a claim")(command)


def dequeue(
    queue_name: QueueName,
    url: Url,
    batch_size: BatchSize = 1,
    worker_name: WorkerName = None,
    lease_seconds: LeaseSeconds = None,
    wait_seconds: Annotated[float, typer.Option(help="Seconds to wait if the queue is empty.")] = 0,
    as_json: AsJson = False,  # noqa: ARG001 - accepted everywhere; here it is always JSON
) -> None:
    """Lease messages and print them as JSON lines.

    A binary body is printed in base64. Finish the messages with complete, retry, fail or release;
    otherwise they return when the lease expires. Messages that cannot be printed are released.
    """
    with open_queue(url) as queue:
        if wait_seconds > 0:
            messages = queue.dequeue_wait(
                queue_name,
                batch_size,
                worker_name=worker_name,
                lease_seconds=lease_seconds,
                wait_seconds=wait_seconds,
            )
        else:
            messages = queue.dequeue_fast(
                queue_name, batch_size, worker_name=worker_name, lease_seconds=lease_seconds
            )
        _print_or_release(queue, queue_name, messages)


def _print_or_release(queue: Queue, queue_name: str, messages: list[Message]) -> None:
    """Print leased messages; on an error, release those that are not printed."""
    waiting = deque(messages)
    try:
        while waiting:
            print_json(waiting[0])
            waiting.popleft()
    except BaseException:
        if ids := [message.message_id for message in waiting]:
            queue.release(queue_name, messages[0].claim_id, ids)
        raise


def peek(
    queue_name: QueueName,
    url: Url,
    max_messages: Annotated[int, typer.Option(help="Maximum number of messages.")] = 10,
    as_json: AsJson = False,  # noqa: ARG001 - accepted everywhere; here it is always JSON
) -> None:
    """Print the next ready messages as JSON lines without leasing them."""
    with open_queue(url) as queue:
        messages = queue.peek(queue_name, max_messages=max_messages)
    for message in messages:
        print_json(message)


def show(
    queue_name: QueueName,
    url: Url,
    message_id: Annotated[int | None, typer.Argument(metavar="ID", help="Message id.")] = None,
    key: Annotated[
        str | None, typer.Option(help="Dedup key of an unfinished message, instead of ID.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a message: its state, settings and attempts, and why it is not delivered now.

    Attempts are shown if the queue keeps history, even after the message has ended.
    Exit status 4: not found.
    """
    if (message_id is None) == (key is None):
        raise typer.BadParameter("exactly one of ID and --key is required")
    more = _More([], [])
    with open_queue(url) as queue:
        if key is not None:
            found = queue.find_message(queue_name, key)
            message_id = found.message_id if found else None
        elif message_id is not None:
            found = queue.get_message(queue_name, message_id)
        if message_id is not None:
            more = _more(queue, queue_name, message_id, is_there=found is not None)
    if as_json and (found or more.history):
        facts = record(found) if found else {"message_id": message_id}
        print_json({**facts, **{name: [*map(record, rows)] for name, rows in vars(more).items()}})
    elif not as_json:
        _print_message(record(found) if found else {}, more)
    if found is None:
        raise typer.Exit(ExitCode.INCOMPLETE)


@dataclass
class _More:
    """The attempts of a message, and the reasons why it is not delivered."""

    history: list[Attempt]
    reasons: list[Reason]


def _more(queue: Queue, queue_name: str, message_id: int, *, is_there: bool) -> _More:
    """Return the attempts and reasons of a message; none if the installed rowq lacks them."""
    found = _More([], [])
    with suppress(InvalidArgument):
        found.history = queue.get_history(queue_name, message_id)
    if is_there:
        with suppress(InvalidArgument):
            found.reasons = queue.explain_message(queue_name, message_id)
    return found


def _print_message(facts: dict[str, Any], more: _More) -> None:
    """Print a message, its reasons, attempts and last error; without facts, "not found"."""
    error = facts.pop("last_error", None)
    if not facts:
        say("not found")
    else:
        print_facts(facts if error else {**facts, "last_error": None})
    for reason in more.reasons:
        say(str(reason))
    if more.history:
        print_rows(more.history, as_json=False, nothing="")
    if error:
        say("\n".join(["last error", *error.splitlines()]))


def explain(
    queue_name: QueueName,
    message_id: Annotated[int, typer.Argument(metavar="ID", help="Message id.")],
    url: Url,
    as_json: AsJson = False,
) -> None:
    """Print why a message is not delivered now, and what would change it.

    Exit status 4: not found.
    """
    with open_queue(url) as queue:
        reasons = queue.explain_message(queue_name, message_id)
    for reason in reasons:
        if as_json:
            print_json(reason)
        else:
            say(str(reason))
    if reasons[0].reason == "unknown":
        raise typer.Exit(ExitCode.INCOMPLETE)


def result(
    queue_name: QueueName,
    message_id: Annotated[int, typer.Argument(metavar="ID", help="Message id.")],
    url: Url,
    wait_seconds: Annotated[
        float, typer.Option(help="Seconds to wait if the message has not ended.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Show how a message ended, and its result.

    Exit status 4: not completed.
    """
    with open_queue(url) as queue:
        if wait_seconds > 0:
            found = queue.wait_for_result(queue_name, message_id, wait_seconds=wait_seconds)
        else:
            found = queue.get_result(queue_name, message_id)
    if found is not None and as_json:
        print_json(found)
    elif found is not None:
        print_facts(record(found))
    elif not as_json:
        say("not found")
    if found is None or found.state != "completed":
        raise typer.Exit(ExitCode.INCOMPLETE)


def complete(
    queue_name: QueueName,
    claim_id: ClaimId,
    url: Url,
    message_ids: HeldIds = None,
    as_json: AsJson = False,
) -> None:
    """Complete messages of a claim.

    Exit status 4: a message was stale.
    """
    with open_queue(url) as queue:
        outcomes = queue.complete(queue_name, claim_id, message_ids)
    finish(outcomes, as_json, good={"completed"})


def retry(
    queue_name: QueueName,
    claim_id: ClaimId,
    url: Url,
    message_ids: HeldIds = None,
    delay_seconds: Annotated[
        float | None, typer.Option(help="Delay in seconds. Default: the queue's backoff.")
    ] = None,
    error: ErrorText = None,
    as_json: AsJson = False,
) -> None:
    """Return messages for another attempt.

    Exit status 4: a message was stale.
    """
    with open_queue(url) as queue:
        outcomes = queue.retry_later(
            queue_name, claim_id, message_ids, delay_seconds=delay_seconds, error=error
        )
    finish(outcomes, as_json, good={"retrying", "dead", "cancelled"})


def fail(
    queue_name: QueueName,
    claim_id: ClaimId,
    url: Url,
    message_ids: HeldIds = None,
    error: ErrorText = None,
    as_json: AsJson = False,
) -> None:
    """Make messages dead without another attempt.

    Exit status 4: a message was stale.
    """
    with open_queue(url) as queue:
        outcomes = queue.fail_now(queue_name, claim_id, message_ids, error=error)
    finish(outcomes, as_json, good={"dead", "cancelled"})


def release(
    queue_name: QueueName,
    claim_id: ClaimId,
    url: Url,
    message_ids: HeldIds = None,
    delay_seconds: Annotated[
        float, typer.Option("--delay", metavar="SECONDS", help="Delay in seconds. Default 0.")
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Return messages without counting the attempt, at once or after a delay.

    Exit status 4: a message was stale.
    """
    with open_queue(url) as queue:
        outcomes = queue.release(queue_name, claim_id, message_ids, delay_seconds=delay_seconds)
    finish(outcomes, as_json, good={"released", "snoozed", "cancelled"})


def extend(
    queue_name: QueueName,
    claim_id: ClaimId,
    url: Url,
    lease_seconds: LeaseSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Extend the lease of a claim.

    Exit status 4: the claim is gone.
    """
    with open_queue(url) as queue:
        lease = queue.extend_lease(queue_name, claim_id, lease_seconds=lease_seconds)
    if as_json:
        print_json(lease)
    else:
        print_facts(record(lease))
