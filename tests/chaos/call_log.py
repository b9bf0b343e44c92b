"""Log of the calls of a worker's processes, for the checker of histories.

Each process writes its own file, a line before and after each call. A process that ends during a
call leaves a call whose effect is unknown.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from rowq.engines.base import Engine
from rowq.worker import transactional
from rowq.worker.engines import work_transaction
from rowq.worker.engines.base import AbortedTransaction, WorkTransaction
from tests.concurrency.checker import FINISHES
from tests.concurrency.history import Event

Arguments = Mapping[str, Any]
Rows = list[tuple[Any, ...]]

_EXCHANGE = "complete_and_dequeue"
_LOGGED = FINISHES | {_EXCHANGE, "dequeue_fast", "extend_lease"}
_EXPECTED = {"complete": "completed", "fail_now": "dead"}
_NO_CLAIM = {"claim_id": None, "message_ids": None}


class CallLog:
    """The log file of this process or of a forked child."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def begin(self, calls: Sequence[tuple[str, Arguments]]) -> list[int]:
        """Log calls before they are made; return their numbers."""
        return [self._write(next(self._numbers), **_expected(*call)) for call in calls]

    def end(self, numbers: Sequence[int], results: Sequence[Rows]) -> None:
        """Log the rows that calls returned; a failed call has none."""
        for number, rows in zip(numbers, results, strict=True):
            self._write(number, rows=[_plain(row) for row in rows])

    def lose(self, numbers: Sequence[int]) -> None:
        """Log that the effect of calls is unknown."""
        for number in numbers:
            self._write(number, is_lost=True)

    def _write(self, number: int, **what: Any) -> int:
        line = json.dumps({"number": number, "at": time.monotonic(), **what}).encode() + b"\n"
        path = self._folder / f"calls-{os.getpid()}"
        with path.open("ab", buffering=0) as file:
            file.write(line)
        return number


def log_calls(engine: Engine, folder: Path) -> None:
    """Log every later call that this process makes through an engine."""
    log = CallLog(folder)
    transactions: dict[int, _LoggedTransaction] = {}
    call, call_briefly = engine.call, engine.call_briefly
    # Some engines make one kind of call by another, which must not be logged twice.
    inside = threading.local()

    def logged(made: Callable[..., Rows]) -> Callable[..., Rows]:
        def calling(connection: Any, routine: str, arguments: Arguments) -> Rows:
            if routine not in _LOGGED or getattr(inside, "call", False):
                return made(connection, routine, arguments)
            if transaction := transactions.get(id(connection)):
                rows = made(connection, routine, arguments)
                transaction.calls.append(((routine, arguments), rows))
                return rows
            inside.call = True
            try:
                with _logging(engine, log, _calls_of(routine, arguments)) as results:
                    rows = made(connection, routine, arguments)
                    results.extend(_results_of(routine, arguments, rows))
            finally:
                inside.call = False
            return rows

        return calling

    def transaction(of: Engine, connection: Any) -> WorkTransaction:
        return _LoggedTransaction(
            of, log, transactions, connection, work_transaction(of, connection)
        )

    patched: Any = engine
    patched.call, patched.call_briefly = logged(call), logged(call_briefly)
    module: Any = transactional
    module.work_transaction = transaction


@contextmanager
def _logging(
    engine: Engine, log: CallLog, calls: Sequence[tuple[str, Arguments]]
) -> Iterator[list[Rows]]:
    """Log calls before and after the block, which appends their rows to the list."""
    numbers = log.begin(calls)
    results: list[Rows] = []
    try:
        yield results
    except Exception as error:
        if engine.is_connection_lost(error):
            log.lose(numbers)
        else:
            log.end(numbers, [[]] * len(numbers))
        raise
    log.end(numbers, results)


class _LoggedTransaction(WorkTransaction):
    """A worker's transaction whose calls are logged when it commits."""

    def __init__(
        self,
        engine: Engine,
        log: CallLog,
        transactions: dict[int, _LoggedTransaction],
        connection: Any,
        work: WorkTransaction,
    ) -> None:
        self._engine, self._log, self._work = engine, log, work
        self._transactions, self._key = transactions, id(connection)
        self.calls: list[tuple[tuple[str, Arguments], Rows]] = []

    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        return self._work.lend(claim_id)

    def keep(self) -> AbortedTransaction | None:
        return self._work.keep()

    def undo(self) -> None:
        self._work.undo()

    def begin(self) -> None:
        self._work.begin()
        self._transactions[self._key] = self

    def commit(self) -> None:
        with _logging(self._engine, self._log, [call for call, _ in self.calls]) as results:
            self._work.commit()
            results.extend(rows for _, rows in self.calls)
        self._transactions.pop(self._key, None)

    def abandon(self) -> None:
        self._transactions.pop(self._key, None)
        self._work.abandon()


def _calls_of(routine: str, arguments: Arguments) -> list[tuple[str, Arguments]]:
    """Return the calls that a call equals."""
    if routine != _EXCHANGE:
        return [(routine, arguments)]
    return [("complete", arguments), ("dequeue_fast", {**arguments, **_NO_CLAIM})]


def _results_of(routine: str, arguments: Arguments, rows: Rows) -> list[Rows]:
    """Return the rows of the calls that a call equals."""
    if routine != _EXCHANGE:
        return [rows]
    stale = {row[2] for row in rows if row[0] == "stale"}
    ids = arguments["message_ids"]
    completed = [(one, "stale" if one in stale else "completed") for one in ids]
    return [completed, [row[1:] for row in rows if row[0] == "leased"]]


def _plain(row: tuple[Any, ...]) -> list[int | str | None]:
    """Return the part of a row that the history needs: ids, outcome or attempt."""
    return [value if isinstance(value, int | str) else None for value in row[:3]]


def _expected(routine: str, arguments: Arguments) -> dict[str, Any]:
    ids = arguments.get("message_ids") or ()
    return {
        "routine": routine,
        "claim_id": arguments.get("claim_id"),
        "expected": [[message_id, _EXPECTED.get(routine, routine)] for message_id in ids],
        "lease_seconds": arguments.get("lease_seconds") or 0,
    }


def history(folder: Path, end: float) -> Iterator[Event]:
    """Yield the logged events; `end` is when the last process had ended."""
    for path in folder.glob("calls-*"):
        yield from _history(path, end)


def _history(path: Path, end: float) -> Iterator[Event]:
    calls: dict[int, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["number"] not in calls:
            calls[entry["number"]] = {"end": end, "is_lost": True, **entry}
        else:
            calls[entry["number"]] |= {"end": entry.pop("at"), "is_lost": False, **entry}
    for call in calls.values():
        if event := _event(path.name, call):
            yield event


def _event(session: str, call: dict[str, Any]) -> Event | None:
    """Return a call as an event, or None if it had no effect."""
    routine, known, rows = call["routine"], not call["is_lost"], call.get("rows", [])
    if known and not rows:
        return None
    is_dequeue = routine == "dequeue_fast"
    action = "dequeue" if is_dequeue else routine
    claim_id = call["claim_id"]
    results: list[tuple[int, Any]] = []
    if known and is_dequeue:
        claim_id = rows[0][0]
        results = [(message_id, attempt) for _, message_id, attempt in rows]
    elif routine != "extend_lease":
        results = [(row[0], row[1]) for row in (rows if known else call["expected"])]
    return Event(
        call["at"],
        call["end"],
        session,
        action,
        claim_id,
        tuple(results),
        known,
        float(call["lease_seconds"]),
    )
