"""Warns when a caller's connection is closed before what was enqueued on it is committed.

The database then rolls the transaction back, and the messages never existed. Nothing is asked of
the database at a call: the connection's own `close` is wrapped when something is enqueued in a
transaction, and looks then whether that transaction is still open.
"""

import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

_NAME = "rowq_uncommitted"


class UncommittedWarning(UserWarning):
    """Messages were enqueued in a transaction that was never committed: they do not exist."""


def place_of(routine: str, arguments: Mapping[str, Any]) -> str | None:
    """Return where a routine enqueues, in words; None for one that enqueues nothing."""
    match routine:
        case "enqueue" | "enqueue_batch":
            return f"queue {arguments['queue_name']}"
        case "publish":
            return f"topic {arguments['topic']}"
        case "publish_batch":
            return "several topics"
        case _:
            return None


def warn_of(place: str) -> None:
    """Warn that what was enqueued was not committed; the line is that which closes."""
    warnings.warn(
        f"a message for {place} was not committed before its connection was closed, so it does"
        " not exist; call commit() first",
        UncommittedWarning,
        stacklevel=4,
    )


class Watch:
    """What is open on one connection, or session, of a caller's."""

    def __init__(self) -> None:
        self._place: str | None = None
        self._is_open: Callable[[], bool] = lambda: False

    def note(self, place: str, is_open: Callable[[], bool]) -> None:
        """Note what was enqueued last; `is_open` tells whether its transaction is still open."""
        self._place, self._is_open = place, is_open

    def forget(self) -> None:
        """Note that the transaction has ended."""
        self._place = None

    def check(self) -> None:
        """Warn if the transaction is open, as it will be rolled back now.

        An exception that is being handled rolls back on purpose.
        """
        name, self._place = self._place, None
        if name is not None and sys.exc_info()[0] is None and self._is_open():
            warn_of(name)


def watch_by_methods(connection: Any, place: str, is_in_transaction: Callable[[Any], bool]) -> None:
    """Have a warning given when a connection is closed uncommitted, as far as its methods say."""

    def wrap(owner: Any, found: Watch) -> None:
        for method in ("commit", "rollback", "begin"):
            before(owner, method, found.forget)
        before(owner, "close", found.check)

    if found := watch_of(connection, wrap):
        reference = weakref.ref(connection)
        found.note(place, lambda: is_in_transaction(reference()))


def watch_session(session: Any, place: str) -> None:
    """Have a warning given when a session or connection of SQLAlchemy's is closed uncommitted."""
    owner = _synchronous(session)
    if (transaction := owner.get_transaction()) is None:
        return
    if found := watch_of(owner, lambda owner, found: before(owner, "close", found.check)):
        session_of, noted = weakref.ref(owner), weakref.ref(transaction)

        def is_open() -> bool:
            owner, transaction = session_of(), noted()
            if owner is None or transaction is None or not transaction.is_active:
                return False
            return owner.get_transaction() is transaction

        found.note(place, is_open)


def _synchronous(session: Any) -> Any:
    """Return the session, or connection, that is inside a scoped or asynchronous one."""
    if registry := getattr(session, "registry", None):
        session = registry()
    inside = getattr(session, "sync_session", None) or getattr(session, "sync_connection", None)
    return inside or session


def watch_of(owner: Any, wrap: Callable[[Any, Watch], None]) -> Watch | None:
    """Return the watch of an object; at the first time `wrap` lets its methods look at it.

    None where its driver allows it no attributes of its own.
    """
    own = getattr(owner, "__dict__", None)
    if own is None:
        return None
    if _NAME not in own:
        own[_NAME] = watch = Watch()
        wrap(owner, watch)
    found: Watch = own[_NAME]
    return found


def before(owner: Any, method: str, action: Callable[[], None]) -> None:
    """Let an object do something before a method of its class, which may be `async def`.

    The wrapper does not keep the object from being collected.
    """
    reference = weakref.ref(owner)

    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            action()
        finally:
            done = getattr(type(reference()), method)(reference(), *args, **options)
        return done

    vars(owner)[method] = wrapped
