"""Does something now and then while a run goes on."""

import time
from collections.abc import Callable


def once_a_second(act: Callable[[], object], *, at_once: bool) -> Callable[[], None]:
    """Return a function that calls another if it has not done so for a second.

    at_once: whether the first call counts, too; else the second begins now.
    """
    last = -1.0 if at_once else time.monotonic()

    def maybe() -> None:
        nonlocal last
        if time.monotonic() - last >= 1:
            act()
            last = time.monotonic()

    return maybe
