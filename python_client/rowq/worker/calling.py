"""Calls the handler, awaits it if need be, and reads what it says."""

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rowq.worker.claim import HeldMessage
from rowq.worker.context import Context
from rowq.worker.handlers import Fail, GiveUp, Handler, Release, Retry
from rowq.worker.log import log
from rowq.worker.verdicts import COMPLETED, RELEASED, Verdict, retry, shown, verdict_of


@dataclass(frozen=True, slots=True)
class Said:
    """What a handler has decided about each message it was given.

    failed: whether it raised, or returned what counts as that; what it wrote is not to be kept.
    is_passing: whether it raised an error of the database's that asks for the transaction to be
    tried again. The exception itself is not kept: it would keep the messages, by its traceback.
    """

    verdicts: Mapping[int, Verdict]
    failed: bool = False
    is_passing: bool = False


class Calling:
    """Calls a handler from one thread.

    What it has to await is awaited in an event loop of that thread, made when it is first needed.
    """

    def __init__(self, context: Context, handler: Handler) -> None:
        """Make no loop yet."""
        self._context = context
        self._handler = handler
        self._runner: asyncio.Runner | None = None

    def close(self) -> None:
        """Cancel what the handler has left running in the loop, and close that."""
        if self._runner is not None:
            self._runner.close()

    def call(self, messages: Sequence[HeldMessage], *connection: Any) -> Said:
        """Give the handler a message, or per batch all of them; raises only KeyboardInterrupt."""
        ids = [message.message_id for message in messages]
        try:
            if self._context.settings.per == "batch":
                result = self._awaited(self._handler(list(messages), *connection))
                return _said_of_batch(ids, result)
            (message,) = messages
            return self._said(ids[0], self._awaited(self._handler(message, *connection)))
        except KeyboardInterrupt:
            raise
        except GiveUp as error:
            self._context.fail(error)
            return Said(dict.fromkeys(ids, RELEASED), failed=True)
        except BaseException as error:
            is_passing = isinstance(error, Exception) and self._context.engine.is_undone(error)
            return _said_by(ids, error, is_passing=is_passing)

    def _awaited(self, result: Any) -> Any:
        """Return a result, or what comes of it when it is awaited."""
        if not inspect.isawaitable(result):
            return result
        self._runner = self._runner or asyncio.Runner()
        # Each message has context variables of its own, as if each had a thread of its own.
        return self._runner.run(_of(result), context=contextvars.copy_context())

    def _said(self, message_id: int, result: Any) -> Said:
        if result is None:
            return Said({message_id: COMPLETED})
        if isinstance(result, Retry | Fail):
            return _said_by([message_id], result)
        if _is_mistaken(result):
            return _mistaken([message_id], result)
        self._context.warn_of_result(result)
        return Said({message_id: COMPLETED})


async def _of(result: Awaitable[Any]) -> Any:
    return await result


def _said_by(ids: list[int], error: BaseException, *, is_passing: bool = False) -> Said:
    """Return what an exception means for messages, and log it unless it is a decision."""
    verdicts = dict.fromkeys(ids, verdict_of(error))
    if isinstance(error, Retry | Fail | Release):
        return Said(verdicts, failed=True)
    log.warning("message %d: the handler raised", ids[0], exc_info=error)
    return Said(verdicts, failed=True, is_passing=is_passing)


def _said_of_batch(ids: list[int], result: Any) -> Said:
    """Return what a batch handler said, which is None or {message_id: None, Retry or Fail}."""
    if result is None:
        return Said(dict.fromkeys(ids, COMPLETED))
    if not isinstance(result, Mapping):
        return _mistaken(ids, result)
    given = dict(result)
    strangers = given.keys() - set(ids)
    nonsense = [one for one in given.values() if not isinstance(one, Retry | Fail | None)]
    if strangers or nonsense:
        return _mistaken(ids, result)
    said = {message_id: given.get(message_id) for message_id in ids}
    return Said(
        {one: verdict_of(how) if how is not None else COMPLETED for one, how in said.items()}
    )


def _is_mistaken(result: Any) -> bool:
    """Whether a message's result shows that the handler did not do, or say, what it meant to."""
    is_class = inspect.isclass(result) and issubclass(result, BaseException)
    is_generator = inspect.isgenerator(result) or inspect.isasyncgen(result)
    return is_class or is_generator or isinstance(result, BaseException)


def _mistaken(ids: list[int], result: Any) -> Said:
    """Return another attempt for all, with an error that shows what was returned."""
    if inspect.isgenerator(result):
        result.close()
    error = (
        f"the handler returned {shown(result):.300}; it may return None, Retry(...) or Fail(...),"
        " and per batch a mapping of its messages' ids to these"
    )
    log.warning("message %d: %s", ids[0], error)
    return Said(dict.fromkeys(ids, retry(error)), failed=True)
