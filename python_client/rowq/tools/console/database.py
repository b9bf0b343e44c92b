"""Connections of commands, and the secrets of their URLs."""

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
    """rowq is not installed in the database."""


def remember_url(url: str | None) -> str | None:
    """Record a URL whose secrets must not be shown; a callback of --url."""
    if url:
        _seen_urls.add(url)
    return url


def remember_urls(urls: list[str]) -> list[str]:
    """Record URLs, with or without names, as remember_url does."""
    for url in urls:
        named = _NAMED.fullmatch(url)
        remember_url(named[2] if named else url)
    return urls


def is_named(url: str) -> bool:
    """Return whether a text is NAME=URL, not a URL."""
    return _NAMED.fullmatch(url) is not None


def servers_in(urls: Sequence[str]) -> str | dict[str, str]:
    """Return the only URL, or the URLs by their names; raise typer.BadParameter."""
    named = [_NAMED.fullmatch(url) for url in urls]
    if len(urls) == 1 and named[0] is None:
        return urls[0]
    found = {match[1]: match[2] for match in named if match}
    if len(found) < len(urls):
        raise typer.BadParameter(
            "several servers must be NAME=URL each, with different names",
            param_hint="'--url'",
        )
    return found


def only_url(urls: Sequence[str]) -> str:
    """Return the URL of the only server; raise typer.BadParameter if there are several."""
    found = servers_in(urls)
    if not isinstance(found, str):
        raise typer.BadParameter(
            "NAME=URL requires a striped queue: use --stripes", param_hint="'--url'"
        )
    return found


@contextmanager
def open_queue(url: str, reconnect_seconds: float = 5.0) -> Iterator[Queue]:
    """Connect for a block; raise CannotConnect, or NotInstalled if the database has no rowq.

    It reconnects for a short time only and does not wait for a read-only server: the user or script
    can run the command again.
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
    """Return names of queues similar to a wrong one; none if the account cannot list queues."""
    try:
        found = {one.queue_name.lower(): one.queue_name for one in queue.queue_stats(max_count=1)}
    except Exception as error:
        if is_foreseen(error):
            return ""
        raise
    near = get_close_matches(wrong.lower(), found, n=3, cutoff=0.7)
    return " or ".join(f'"{found[name]}"' for name in near)


def check_installed(url: str, error: BaseException) -> None:
    """Raise NotInstalled if a call failed because the database has no rowq."""
    if is_driver_error(error) and is_bare(url):
        raise NotInstalled(
            "rowq is not installed in this database; install it with: rowq migrate"
        ) from error


def require_queue(queue: Queue, queue_name: str, role: Literal["producer", "consumer"]) -> None:
    """Raise QueueNotFound unless the queue exists.

    No routine that checks it is granted to both producers and consumers, so it depends on `role`.
    Neither call reads or changes a message.
    """
    if role == "producer":
        queue.enqueue_batch(queue_name, [])
    else:
        queue.queue_stats(queue_name, max_count=1)


def server_of(url: str) -> str:
    """Return the server's name and version, or the engine's name if they cannot be read."""
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
    """Return whether the database has no rowq; False also if that cannot be read."""
    try:
        return status(url).installed == 0
    except Exception as error:
        if is_foreseen(error):
            return False
        raise


def hide_secrets(text: str) -> str:
    """Return `text` without the passwords of this command's URLs and other passwords."""
    return without_secrets(text, _seen_urls)
