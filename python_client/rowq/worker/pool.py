"""Several worker processes and their parent, which restarts those that die."""

import multiprocessing
from dataclasses import replace
from multiprocessing.connection import wait

from rowq.worker.child import Child
from rowq.worker.settings import Settings
from rowq.worker.signals import StopSignals
from rowq.worker.stats import WorkerStats
from rowq.worker.team import OnProgress

_TICK_SECONDS = 0.2


class Pool:
    """As many children as settings.processes, each a worker of its own.

    The parent asks them to stop through a pipe, not by a signal: a terminal or a service manager
    signals the whole group already, and a second signal means to stop at once.
    """

    def __init__(self, settings: Settings) -> None:
        """Start nothing yet."""
        self._start = WorkerStats()
        self._stopping = False
        context = multiprocessing.get_context("spawn")
        name = settings.worker_name
        self._children = [
            Child(
                context,
                replace(settings, processes=0, worker_name=name and f"{name}-{number}"),
            )
            for number in range(1, settings.processes + 1)
        ]

    def stop(self) -> None:
        """Ask every child to stop."""
        self._stopping = True

    def kill(self) -> None:
        """Kill every child at once; their claims run out."""
        for child in self._children:
            child.kill()

    def run(self, on_progress: OnProgress | None, signals: StopSignals) -> WorkerStats:
        """Work until every child is done; raises WorkerFailed when going on made no sense."""
        try:
            for child in self._children:
                child.start()
            while not all(child.done for child in self._children):
                wait(
                    [sentinel for child in self._children for sentinel in child.sentinels],
                    _TICK_SECONDS,
                )
                if signals.asked:
                    self.stop()
                self._round()
                if on_progress:
                    on_progress(self.stats())
        finally:
            for child in self._children:
                child.ask_to_stop()
            for child in self._children:
                child.join()
        return self.stats()

    def stats(self) -> WorkerStats:
        """Return what all children have done, as far as they could tell."""
        total = self._start
        for child in self._children:
            total = total.plus(child.stats)
        return total

    def _round(self) -> None:
        for child in self._children:
            if self._stopping:
                child.ask_to_stop()
            child.look(self._stopping)
