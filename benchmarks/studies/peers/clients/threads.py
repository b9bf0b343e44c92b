"""Threads that fetch, handle and acknowledge, for clients without a worker of their own."""

import threading
from collections.abc import Callable

from benchmarks.studies.peers.protocol import Talk


def run_threads(talk: Talk, turn: Callable[[], bool], pause: float = 0) -> None:
    """Call `turn` again and again in as many threads as there are workers, until told to stop.

    turn: fetches, handles and acknowledges; returns whether there was anything.
    pause: seconds to wait when there was nothing.

    Raises what a turn raised first.
    """
    failures: list[BaseException] = []

    def work() -> None:
        try:
            while not talk.stopping.is_set():
                if not turn() and pause:
                    talk.stopping.wait(pause)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(talk.workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
