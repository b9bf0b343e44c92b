"""The threads of a worker inside one process."""

import threading
from collections.abc import Callable

from rowq.errors import RowqError, WorkerFailed
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


def described(error: BaseException) -> str:
    """Return what an error says; that of another's making begins with its type."""
    if isinstance(error, RowqError):
        return str(error)
    return f"{type(error).__name__}: {error}"


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
        """Work until every consumer has ended; raises WorkerFailed when one had to give up.

        Whatever it raises, every thread has ended.
        """
        consumers: list[threading.Thread] = []
        others: list[threading.Thread] = []
        try:
            self._start("keeper", self._keeper.run, others)
            for name, run in self._helpers():
                self._start(name, run, others)
            for consumer in self._consumers:
                self._start("consumer", consumer.run, consumers)
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
            raise WorkerFailed(described(self._context.failure)) from self._context.failure
        return self._context.counter.snapshot()

    def _helpers(self) -> list[tuple[str, Callable[[], None]]]:
        """Return the names and loops of the threads that are wanted beside the consumers'."""
        helpers: list[tuple[str, Callable[[], None]]] = []
        if self._context.listening_engine:
            listener = Listener(self._context, self._context.listening_engine)
            helpers.append(("listener", listener.run))
        if self._context.settings.maintain_seconds > 0:
            helpers.append(("housekeeper", self._housekeeper.run))
        return helpers

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

    def _start(self, name: str, run: Callable[[], None], started: list[threading.Thread]) -> None:
        def guarded() -> None:
            try:
                run()
            except BaseException as error:
                self._context.fail(error)

        thread = threading.Thread(target=guarded, name=f"rowq-{name}", daemon=True)
        thread.start()
        started.append(thread)
