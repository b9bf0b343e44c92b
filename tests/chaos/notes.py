"""Notes the calls that a worker's processes make, as they make them, for the checker of histories.

Each process writes a file of its own, a line before a call and one after it: a process that ends in
the middle of a call leaves a call whose effect is unknown.
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

_NOTED = FINISHES | {"dequeue_fast", "extend_lease"}
_HOPED = {"complete": "completed", "fail_now": "dead"}


class Notes:
    """The file of this process, also of one that a handler forks."""

    def __init__(self, room: Path) -> None:
        self._room = room
        self._numbers = count()

    def begin(self, calls: Sequence[tuple[str, Arguments]]) -> list[int]:
        """Note calls that are about to be made."""
        return [self._write(next(self._numbers), **_hoped(*call)) for call in calls]

    def end(self, numbers: Sequence[int], results: Sequence[Rows]) -> None:
        """Note what calls have returned; no rows of a call that did nothing."""
        for number, rows in zip(numbers, results, strict=True):
            self._write(number, rows=[_plain(row) for row in rows])

    def lose(self, numbers: Sequence[int]) -> None:
        """Note that nobody knows what calls have done."""
        for number in numbers:
            self._write(number, is_lost=True)

    def _write(self, number: int, **what: Any) -> int:
        line = json.dumps({"number": number, "at": time.monotonic(), **what}).encode() + b"\n"
        path = self._room / f"calls-{os.getpid()}"
        with path.open("ab", buffering=0) as file:
            file.write(line)
        return number


def note_calls(engine: Engine, room: Path) -> None:
    """Let every call that is made through an engine in this process be noted from now on."""
    notes = Notes(room)
    open_ones: dict[int, _Noted] = {}
    call, call_briefly = engine.call, engine.call_briefly
    # Some engines make one kind of call by another, which must not be noted twice.
    inside = threading.local()

    def noted(made: Callable[..., Rows]) -> Callable[..., Rows]:
        def calling(connection: Any, routine: str, arguments: Arguments) -> Rows:
            if routine not in _NOTED or getattr(inside, "call", False):
                return made(connection, routine, arguments)
            if transaction := open_ones.get(id(connection)):
                rows = made(connection, routine, arguments)
                transaction.calls.append(((routine, arguments), rows))
                return rows
            inside.call = True
            try:
                with _noting(engine, notes, [(routine, arguments)]) as results:
                    rows = made(connection, routine, arguments)
                    results.append(rows)
            finally:
                inside.call = False
            return rows

        return calling

    def transaction(of: Engine, connection: Any) -> WorkTransaction:
        return _Noted(of, notes, open_ones, connection, work_transaction(of, connection))

    patched: Any = engine
    patched.call, patched.call_briefly = noted(call), noted(call_briefly)
    module: Any = transactional
    module.work_transaction = transaction
    if call_all := getattr(engine, "call_all", None):

        def calling_all(connection: Any, calls: Sequence[tuple[str, Arguments]]) -> list[Rows]:
            with _noting(engine, notes, calls) as results:
                results.extend(call_all(connection, calls))
            return results

        patched.call_all = calling_all


@contextmanager
def _noting(
    engine: Engine, notes: Notes, calls: Sequence[tuple[str, Arguments]]
) -> Iterator[list[Rows]]:
    """Note calls before and after the block, which puts their rows into the list."""
    numbers = notes.begin(calls)
    results: list[Rows] = []
    try:
        yield results
    except Exception as error:
        if engine.is_connection_lost(error):
            notes.lose(numbers)
        else:
            notes.end(numbers, [[]] * len(numbers))
        raise
    notes.end(numbers, results)


class _Noted(WorkTransaction):
    """A worker's transaction whose calls are noted when it commits, as if they were made then."""

    def __init__(
        self,
        engine: Engine,
        notes: Notes,
        open_ones: dict[int, _Noted],
        connection: Any,
        work: WorkTransaction,
    ) -> None:
        self._engine, self._notes, self._work = engine, notes, work
        self._open_ones, self._key = open_ones, id(connection)
        self.calls: list[tuple[tuple[str, Arguments], Rows]] = []

    def lend(self, claim_id: int) -> AbstractContextManager[Any]:
        return self._work.lend(claim_id)

    def keep(self) -> AbortedTransaction | None:
        return self._work.keep()

    def undo(self) -> None:
        self._work.undo()

    def begin(self) -> None:
        self._work.begin()
        self._open_ones[self._key] = self

    def commit(self) -> None:
        with _noting(self._engine, self._notes, [call for call, _ in self.calls]) as results:
            self._work.commit()
            results.extend(rows for _, rows in self.calls)
        self._open_ones.pop(self._key, None)

    def abandon(self) -> None:
        self._open_ones.pop(self._key, None)
        self._work.abandon()


def _plain(row: tuple[Any, ...]) -> list[int | str | None]:
    """Return what of a row the history wants: ids, outcome or attempt."""
    return [value if isinstance(value, int | str) else None for value in row[:3]]


def _hoped(routine: str, arguments: Arguments) -> dict[str, Any]:
    ids = arguments.get("message_ids") or ()
    return {
        "routine": routine,
        "claim_id": arguments.get("claim_id"),
        "hoped": [[message_id, _HOPED.get(routine, routine)] for message_id in ids],
        "lease_seconds": arguments.get("lease_seconds") or 0,
    }


def history(room: Path, end: float) -> Iterator[Event]:
    """Yield what the processes have noted; `end` is when the last of them was gone."""
    for path in room.glob("calls-*"):
        yield from _history(path, end)


def _history(path: Path, end: float) -> Iterator[Event]:
    calls: dict[int, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        note = json.loads(line)
        if note["number"] not in calls:
            calls[note["number"]] = {"end": end, "is_lost": True, **note}
        else:
            calls[note["number"]] |= {"end": note.pop("at"), "is_lost": False, **note}
    for call in calls.values():
        if event := _event(path.name, call):
            yield event


def _event(session: str, call: dict[str, Any]) -> Event | None:
    """Return a call as an event, None if nothing came of it."""
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
        results = [(row[0], row[1]) for row in (rows if known else call["hoped"])]
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
