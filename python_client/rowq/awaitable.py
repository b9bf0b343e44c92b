"""Awaitables that `async with` accepts directly."""

import functools
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Opened = TypeVar("_Opened", bound=AbstractAsyncContextManager[Any])


class Opening(Coroutine[Any, Any, _Opened]):
    """Awaitable that can also be used directly in `async with`."""

    def __init__(self, coroutine: Coroutine[Any, Any, _Opened]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, _Opened]:
        return self._coroutine.__await__()

    def send(self, value: Any, /) -> Any:
        """Resume the coroutine; for the event loop."""
        return self._coroutine.send(value)

    def throw(self, *raised: Any) -> Any:
        """Raise in the coroutine; for the event loop."""
        return self._coroutine.throw(*raised)

    def close(self) -> None:
        """End the coroutine; for the event loop."""
        self._coroutine.close()

    async def __aenter__(self) -> _Opened:
        self._opened = await self._coroutine
        return await self._opened.__aenter__()  # type: ignore[no-any-return]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return await self._opened.__aexit__(kind, error, traceback)


def may_be_entered(
    opens: Callable[_Given, Coroutine[Any, Any, _Opened]],
) -> Callable[_Given, Opening[_Opened]]:
    """Let `async with` accept the call of an asynchronous function."""

    @functools.wraps(opens)
    def opening(*args: _Given.args, **options: _Given.kwargs) -> Opening[_Opened]:
        return Opening(opens(*args, **options))

    return opening
