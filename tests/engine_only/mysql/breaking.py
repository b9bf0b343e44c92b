"""Interrupt a migration between two statements, as a crash would."""

from collections.abc import Callable, Iterator

from rowq.tools.engines.mysql.script import statements


def breaking_off(after: int) -> Callable[[str], Iterator[str]]:
    """Return a splitter of scripts that fails after `after` statements."""
    left = [after]

    def split(text: str) -> Iterator[str]:
        for statement in statements(text):
            if left[0] <= 0 and "release_lock" not in statement:
                raise ConnectionAbortedError
            left[0] -= 1
            yield statement

    return split
