"""Processes that start work at the same time and return results."""

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
_PATIENCE = 120


class TeamError(RuntimeError):
    """A process failed; the text is its error."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate that opens when all processes are ready."""

    barrier: Barrier

    def wait(self) -> float:
        """Wait until all processes are ready; return the monotonic time."""
        self.barrier.wait(_PATIENCE)
        self.barrier.wait(_PATIENCE)
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str


class Team(Generic[_T]):
    """Functions that run in one process each; each must call the gate's `wait` once."""

    def __init__(self, works: Sequence[Callable[[Gate], _T]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._barrier = context.Barrier(len(works) + 1)
        self._answers: Any = context.Queue()
        gate = Gate(self._barrier)
        self._processes = [
            context.Process(target=_run, args=(work, gate, self._answers), daemon=True)
            for work in works
        ]

    def run(
        self,
        before: Callable[[], object],
        tick: Callable[[], object] = lambda: None,
        every: float = 0.1,
    ) -> tuple[float, list[_T]]:
        """Run all functions; return the monotonic start time and their results.

        before: called when all are ready. tick: called every `every` seconds.
        Raises TeamError if a function fails.
        """
        for process in self._processes:
            process.start()
        try:
            self._barrier.wait(_PATIENCE)
            before()
            self._barrier.wait(_PATIENCE)
        except threading.BrokenBarrierError:
            list(self._collect(lambda: None, every))
            raise
        began = time.monotonic()
        answers = list(self._collect(tick, every))
        for process in self._processes:
            process.join()
        return began, answers

    def _collect(self, tick: Callable[[], object], every: float) -> Iterator[_T]:
        missing = len(self._processes)
        while missing:
            try:
                answer = self._answers.get(timeout=every)
            except queue.Empty:
                tick()
                continue
            if isinstance(answer, _Failure):
                raise TeamError(answer.text)
            missing -= 1
            yield answer


def _run(work: Callable[[Gate], Any], gate: Gate, answers: Any) -> None:
    """Run a function and put its result or error into the queue."""
    try:
        answers.put(work(gate))
    except threading.BrokenBarrierError:
        pass  # The process that broke it reports the error.
    except Exception as error:
        gate.barrier.abort()
        answers.put(_Failure(f"{type(error).__name__}: {error}"))
