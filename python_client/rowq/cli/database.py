"""Opens the database of a command, and hides the secrets of its URL."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal
from urllib.parse import unquote, unquote_plus

import rowq
from rowq.engines import EXAMPLE, engine_for_url, is_driver_error, part_of, without_password
from rowq.errors import RowqError
from rowq.migrate import status
from rowq.queue import Queue

# These find a password by where it stands: also in a URL that was given in the wrong place, and in
# what a driver makes of a URL. The example in rowq's own errors holds none.
_EXAMPLE = re.escape(EXAMPLE.partition("://")[2])
_USER_AND_PASSWORD = re.compile(rf"(://(?!{_EXAMPLE}(?!\S))[^\s/:@]*:)\S+@")
_PARAMETER = re.compile(
    r"""(?i)((?:password|passwd|pwd|secret|token)["']?\s*[=:]\s*)"""
    r"""(?:'(?:[^'\\]|\\.)*'|"[^"]*"|\{(?:[^}]|\}\})*\}|[^\s&;,'")]+)"""
)
# A shorter password may be a part of any word.
_LEAST_LENGTH = 8

_seen_urls: set[str] = set()


class NotInstalled(RowqError):  # noqa: N818 - named by what was found
    """The database has no rowq, so none of its routines can be called."""


def remember_url(url: str | None) -> str | None:
    """Note a URL whose secrets must not be shown; a callback of the option --url."""
    if url:
        _seen_urls.add(url)
    return url


@contextmanager
def open_queue(url: str) -> Iterator[Queue]:
    """Connect for the length of a block; raises CannotConnect, NotInstalled for a bare database.

    A lost connection is not waited for long: a person, or a script, can run the command again.
    """
    with rowq.connect(url, reconnect_seconds=5.0) as queue:
        try:
            yield queue
        except Exception as error:
            if is_driver_error(error) and is_bare(url):
                raise NotInstalled(
                    "rowq is not installed in this database; install it with: rowq migrate"
                ) from error
            raise


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
            name: str = part_of(engine.name, "status").Look(connection).server()
        finally:
            engine.close(connection)
    except Exception as error:
        if isinstance(error, RowqError) or is_driver_error(error):
            return engine.name
        raise
    return name.partition(" (")[0]


def is_bare(url: str) -> bool:
    """Whether the database has no rowq; False also when that cannot be found out."""
    try:
        return status(url).installed == 0
    except Exception as error:
        if isinstance(error, RowqError) or is_driver_error(error):
            return False
        raise


def hide_secrets(text: str) -> str:
    """Return `text` without passwords.

    One is blotted out where a password stands: in a URL, after `password=` and the like. One of the
    URLs given to this command is blotted out anywhere, unless it is short, or is also the name of
    the user or the database: such a word may well stand for something else.
    """
    for url in _seen_urls:
        text = text.replace(url, without_password(url))
        for secret in _secrets(url):
            text = text.replace(secret, "***")
    return _PARAMETER.sub(r"\1***", _USER_AND_PASSWORD.sub(r"\1***@", text))


def _secrets(url: str) -> list[str]:
    """Return the URL's passwords as written and as meant, the longest first; no plain words."""
    address, _, query = url.partition("://")[2].partition("?")
    user_info, _, place = address.rpartition("@")
    user, _, password = user_info.partition(":")
    pairs = [pair.partition("=") for pair in re.split("[&#]", query)]
    names = {user, place.partition("/")[2]}
    names |= {value for name, _, value in pairs if name.lower() in {"user", "dbname", "owner"}}
    found = {password} | {value for name, _, value in pairs if "password" in name.lower()}
    found |= {unquote_plus(secret) for secret in found} | {unquote(secret) for secret in found}
    secrets = found - {unquote(name) for name in names}
    long = (secret for secret in secrets if len(secret) >= _LEAST_LENGTH)
    return sorted(long, key=len, reverse=True)
