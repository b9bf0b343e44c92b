"""Opens the database of a command, and hides the secrets of its URL."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Literal

import typer

from rowq.engines import TOOLS, engine_for_url, engine_module, is_driver_error, is_foreseen
from rowq.errors import QueueNotFound, RowqError
from rowq.queue import Queue
from rowq.session import OwnedSession
from rowq.tools.migrate import status
from rowq.tools.terminal import without_secrets

_NAMED = re.compile(r"([\w-]+)=(\w+://.*)", re.DOTALL)

_seen_urls: set[str] = set()


class NotInstalled(RowqError):  # noqa: N818 - named by what was found
    """The database has no rowq, so none of its routines can be called."""


def remember_url(url: str | None) -> str | None:
    """Note a URL whose secrets must not be shown; a callback of the option --url."""
    if url:
        _seen_urls.add(url)
    return url


def remember_urls(urls: list[str]) -> list[str]:
    """Note several URLs, with names or without, as remember_url does."""
    for url in urls:
        named = _NAMED.fullmatch(url)
        remember_url(named[2] if named else url)
    return urls


def is_named(url: str) -> bool:
    """Whether a text is NAME=URL and no URL."""
    return _NAMED.fullmatch(url) is not None


def servers_in(urls: Sequence[str]) -> str | dict[str, str]:
    """Return the URL that was given, or the URLs by their names; raises typer.BadParameter."""
    named = [_NAMED.fullmatch(url) for url in urls]
    if len(urls) == 1 and named[0] is None:
        return urls[0]
    found = {match[1]: match[2] for match in named if match}
    if len(found) < len(urls):
        raise typer.BadParameter(
            "several servers are written NAME=URL, each with a name of its own",
            param_hint="'--url'",
        )
    return found


def only_url(urls: Sequence[str]) -> str:
    """Return the URL of the only server; raises typer.BadParameter where there are several."""
    found = servers_in(urls)
    if not isinstance(found, str):
        raise typer.BadParameter(
            "servers with names are for a striped queue: give --stripes", param_hint="'--url'"
        )
    return found


@contextmanager
def open_queue(url: str, reconnect_seconds: float = 5.0) -> Iterator[Queue]:
    """Connect for the length of a block; raises CannotConnect, NotInstalled for a bare database.

    A lost connection is not waited for long, and a server that is read-only not at all: a person,
    or a script, can run the command again.
    """
    session = OwnedSession(url, reconnect_seconds=reconnect_seconds, awaits_writes=False)
    with Queue(session) as queue:
        session.open()
        try:
            yield queue
        except QueueNotFound as error:
            wrong = str(error).partition('"')[2].rpartition('"')[0]
            if near := _near_names(queue, wrong):
                raise QueueNotFound(f"{error}; did you mean {near}?") from error
            raise
        except Exception as error:
            check_installed(url, error)
            raise


def _near_names(queue: Queue, wrong: str) -> str:
    """Return the names of queues that are like a wrong one, none to an account that may not look.

    Only a command that has failed comes here: a call itself looks for no other name.
    """
    try:
        found = {one.queue_name.lower(): one.queue_name for one in queue.queue_stats(max_count=1)}
    except Exception as error:
        if is_foreseen(error):
            return ""
        raise
    near = get_close_matches(wrong.lower(), found, n=3, cutoff=0.7)
    return " or ".join(f'"{found[name]}"' for name in near)


def check_installed(url: str, error: BaseException) -> None:
    """Raise NotInstalled where a call has failed because the database has no rowq."""
    if is_driver_error(error) and is_bare(url):
        raise NotInstalled(
            "rowq is not installed in this database; install it with: rowq migrate"
        ) from error


def require_queue(queue: Queue, queue_name: str, role: Literal["producer", "consumer"]) -> None:
    """Raise QueueNotFound unless there is such a queue, before a command begins its work.

    No routine that asks for a queue is granted to producers and consumers both, so `role` says who
    asks. Neither call reads or changes a message.
    """
    if role == "producer":
        queue.enqueue_batch(queue_name, [])
    else:
        queue.queue_stats(queue_name, max_count=1)


def server_of(url: str) -> str:
    """Return the server's name and version; the engine's name when that cannot be found out."""
    engine = engine_for_url(url)
    try:
        connection = engine.connect(url)
        try:
            name: str = engine_module(engine.name, "status", TOOLS).Inspection(connection).server()
        finally:
            engine.close(connection)
    except Exception as error:
        if is_foreseen(error):
            return engine.name
        raise
    return name.partition(" (")[0]


def is_bare(url: str) -> bool:
    """Whether the database has no rowq; False also when that cannot be found out."""
    try:
        return status(url).installed == 0
    except Exception as error:
        if is_foreseen(error):
            return False
        raise


def hide_secrets(text: str) -> str:
    """Return `text` without passwords, those of the URLs given to this command among them."""
    return without_secrets(text, _seen_urls)
