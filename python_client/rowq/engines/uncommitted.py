"""Warnings when a caller's connection is closed before its messages are committed.

The database then rolls the transaction back, and the messages never existed. A call costs nothing:
an enqueue in a transaction wraps the connection's `close`, which checks whether the transaction is
still open.
"""

import sys
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

_NAME = "rowq_uncommitted"


class UncommittedWarning(UserWarning):
    """Messages do not exist, because their transaction was never committed."""


def target_of(routine: str, arguments: Mapping[str, Any]) -> str | None:
    """Return the queue or topic to which a routine enqueues, for the warning, or None."""
    match routine:
        case "enqueue" | "enqueue_batch":
            return f"queue {arguments['queue_name']}"
        case "publish":
            return f"topic {arguments['topic']}"
        case "publish_batch":
            return "several topics"
        case _:
            return None


def warn_of(target: str) -> None:
    """Warn of an uncommitted message, at the line that closes the connection."""
    warnings.warn(
        f"a message for {target} is lost: its connection was closed without commit()",
        UncommittedWarning,
        stacklevel=4,
    )


class Watch:
    """The last enqueue on a caller's connection or session."""

    def __init__(self) -> None:
        self._target: str | None = None
        self._is_open: Callable[[], bool] = lambda: False

    def record(self, target: str, is_open: Callable[[], bool]) -> None:
        """Record an enqueue; `is_open` returns whether its transaction is still open."""
        self._target, self._is_open = target, is_open

    def forget(self) -> None:
        """Record the end of the transaction."""
        self._target = None

    def check(self) -> None:
        """Warn if the transaction is still open.

        While an exception is handled, the rollback is intended.
        """
        target, self._target = self._target, None
        if target is not None and sys.exc_info()[0] is None and self._is_open():
            warn_of(target)


def watch_by_methods(
    connection: Any, target: str, is_in_transaction: Callable[[Any], bool]
) -> None:
    """Warn if a connection is closed uncommitted, as seen by its methods."""

    def wrap(owner: Any, found: Watch) -> None:
        for method in ("commit", "rollback", "begin"):
            before(owner, method, found.forget)
        before(owner, "close", found.check)

    if found := watch_of(connection, wrap):
        reference = weakref.ref(connection)
        found.record(target, lambda: is_in_transaction(reference()))


def watch_session(session: Any, target: str) -> None:
    """Warn if a session or connection of SQLAlchemy is closed uncommitted."""
    owner = _synchronous(session)
    if (transaction := owner.get_transaction()) is None:
        return
    if found := watch_of(owner, lambda owner, found: before(owner, "close", found.check)):
        session_of, transaction_of = weakref.ref(owner), weakref.ref(transaction)

        def is_open() -> bool:
            owner, transaction = session_of(), transaction_of()
            if owner is None or transaction is None or not transaction.is_active:
                return False
            return owner.get_transaction() is transaction

        found.record(target, is_open)


def _synchronous(session: Any) -> Any:
    """Return the session or connection inside a scoped or asynchronous one."""
    if registry := getattr(session, "registry", None):
        session = registry()
    inside = getattr(session, "sync_session", None) or getattr(session, "sync_connection", None)
    return inside or session


def watch_of(owner: Any, wrap: Callable[[Any, Watch], None]) -> Watch | None:
    """Return the watch of an object; `wrap` its methods the first time.

    None if the driver does not allow attributes on it.
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
    """Run an action before an object's method, which may be `async def`.

    The wrapper keeps no reference to the object.
    """
    reference = weakref.ref(owner)

    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            action()
        finally:
            done = getattr(type(reference()), method)(reference(), *args, **options)
        return done

    vars(owner)[method] = wrapped
