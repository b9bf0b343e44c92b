"""Breaks a migration off between two statements, as a crash would."""

from collections.abc import Callable, Iterator

from rowq.tools.engines.mysql.script import statements


def breaking_off(after: int) -> Callable[[str], Iterator[str]]:
    """Return what cuts scripts into statements until so many were sent, and then breaks off."""
    left = [after]

    def some(text: str) -> Iterator[str]:
        for statement in statements(text):
            if left[0] <= 0 and "release_lock" not in statement:
                raise ConnectionAbortedError
            left[0] -= 1
            yield statement

    return some
