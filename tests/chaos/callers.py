"""Opens sessions that each call one routine of the contract at the same time.

As a program, `python -m tests.chaos.callers <url> <file>`, it does so in a process of its own, to
be killed. The file says what to call; each line of output is the place of a call that has ended.
"""

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.engines import engine_for_url
from rowq.errors import CannotConnect
from tests.engines.base import Connection
from tests.helpers.calls import Row, call
from tests.helpers.dialects import dialect_of


@dataclass
class Caller:
    """One session and its one call.

    in_transaction: it opens a transaction first, which nobody ends but whoever breaks it off.
    session: the server's number of it, once somebody has asked. rows, error: how the call ended.
    """

    url: str
    routine: Routine
    arguments: dict[str, Any]
    in_transaction: bool = False
    connection: Connection = None
    session: int = 0
    rows: list[Row] = field(default_factory=list)
    error: Exception | None = None
    thread: threading.Thread | None = None

    def connect(self) -> None:
        """Open the session."""
        self.connection = engine_for_url(self.url).connect(self.url)
        if self.in_transaction:
            dialect_of(self.connection).begin(self.connection)

    def start(self) -> None:
        """Begin the call."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether the call has come back."""
        return self.thread is not None and not self.thread.is_alive()

    def wait(self) -> None:
        """Wait until the call has come back."""
        assert self.thread is not None
        self.thread.join(60)
        assert self.has_ended, f"{self.routine.name} does not come back"

    def close(self) -> None:
        """Close the session, if it is still there."""
        engine_for_url(self.url).close(self.connection)

    def _run(self) -> None:
        try:
            self.rows = call(self.connection, self.routine.name, **self.arguments)
        except Exception as error:
            self.error = error


def accepts(url: str) -> bool:
    """Return whether the server takes a session."""
    try:
        engine_for_url(url).connect(url).close()
    except CannotConnect:
        return False
    return True


def as_text(callers: Sequence[Caller]) -> str:
    """Return what the program reads."""
    return json.dumps(
        [(caller.routine.name, caller.arguments, caller.in_transaction) for caller in callers]
    )


def main(url: str, path: str) -> None:
    """Call everything at once, and say what has ended."""
    calls = json.loads(Path(path).read_text())
    routines = load_contract().of(engine_for_url(url).name)
    callers = [Caller(url, routines[name], arguments, held) for name, arguments, held in calls]
    for caller in callers:
        caller.connect()
    os.write(1, b"connected\n")
    sys.stdin.readline()
    for caller in callers:
        caller.start()
    for place, caller in enumerate(callers):
        threading.Thread(target=_tell, args=(place, caller), daemon=True).start()
    sys.stdin.read()


def _tell(place: int, caller: Caller) -> None:
    assert caller.thread is not None
    caller.thread.join()
    os.write(1, f"{place}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
