"""The threads of a worker inside one process."""

import threading
from collections.abc import Callable

from rowq.errors import WorkerFailed
from rowq.worker.consumer import Consumer
from rowq.worker.context import Context
from rowq.worker.handlers import find_handler
from rowq.worker.housekeeper import Housekeeper
from rowq.worker.keeper import Keeper
from rowq.worker.listener import Listener
from rowq.worker.signals import StopSignals
from rowq.worker.stats import WorkerStats

_PROGRESS_SECONDS = 0.2

OnProgress = Callable[[WorkerStats], None]


class Team:
    """Consumers, the keeper of their claims, and a housekeeper."""

    def __init__(self, context: Context) -> None:
        """Start nothing yet; raises WorkerFailed when the handler cannot be found."""
        self._context = context
        handler = find_handler(context.settings.handler)
        self._keeper = Keeper(context)
        self._housekeeper = Housekeeper(context)
        numbers = range(1, context.settings.threads + 1)
        self._consumers = [Consumer(context, handler, self._keeper, one) for one in numbers]

    def run(self, on_progress: OnProgress | None, signals: StopSignals) -> WorkerStats:
        """Work until every consumer has ended; raises WorkerFailed when one had to give up."""
        consumers = [self._start("consumer", one.run) for one in self._consumers]
        others = [self._start("keeper", self._keeper.run)]
        if self._context.listening_engine:
            listener = Listener(self._context, self._context.listening_engine)
            others.append(self._start("listener", listener.run))
        if self._context.settings.maintain_seconds > 0:
            others.append(self._start("housekeeper", self._housekeeper.run))
        try:
            self._watch(consumers, on_progress, signals)
        finally:
            self._context.stop()
            for thread in consumers:
                thread.join()
            self._keeper.end()
            self._housekeeper.end()
            for thread in others:
                thread.join()
        if self._context.failure is not None:
            raise WorkerFailed(str(self._context.failure)) from self._context.failure
        return self._context.counter.snapshot()

    def _watch(
        self,
        consumers: list[threading.Thread],
        on_progress: OnProgress | None,
        signals: StopSignals,
    ) -> None:
        while living := [thread for thread in consumers if thread.is_alive()]:
            living[0].join(_PROGRESS_SECONDS)
            if signals.asked or self._context.failure:
                self._context.stop()
            if on_progress:
                on_progress(self._context.counter.snapshot())

    def _start(self, name: str, run: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                run()
            except BaseException as error:
                self._context.fail(error)

        thread = threading.Thread(target=guarded, name=f"rowq-{name}", daemon=True)
        thread.start()
        return thread
