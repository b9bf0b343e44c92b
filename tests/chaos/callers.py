"""Sessions that each call one routine at the same time.

`python -m tests.chaos.callers <url> <file>` does so in a process that can be killed. The file has
the calls; each line of output is the position of a call that has ended.
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

    in_transaction: it opens a transaction first and does not end it.
    session: the server's id of the session, once known. rows, error: how the call ended.
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
        """Start the call."""
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def has_ended(self) -> bool:
        """Return whether the call has returned."""
        return self.thread is not None and not self.thread.is_alive()

    def wait(self) -> None:
        """Wait until the call has returned."""
        assert self.thread is not None
        self.thread.join(60)
        assert self.has_ended, f"{self.routine.name} does not return"

    def close(self) -> None:
        """Close the session if it still exists."""
        engine_for_url(self.url).close(self.connection)

    def _run(self) -> None:
        try:
            self.rows = call(self.connection, self.routine.name, **self.arguments)
        except Exception as error:
            self.error = error


def accepts(url: str) -> bool:
    """Return whether the server accepts connections."""
    try:
        engine_for_url(url).connect(url).close()
    except CannotConnect:
        return False
    return True


def as_text(callers: Sequence[Caller]) -> str:
    """Return the calls as JSON, for the program."""
    return json.dumps(
        [(caller.routine.name, caller.arguments, caller.in_transaction) for caller in callers]
    )


def main(url: str, path: str) -> None:
    """Make all calls at once, and print the positions of those that end."""
    calls = json.loads(Path(path).read_text())
    routines = load_contract().of(engine_for_url(url).name)
    callers = [Caller(url, routines[name], arguments, held) for name, arguments, held in calls]
    for caller in callers:
        caller.connect()
    os.write(1, b"connected\n")
    sys.stdin.readline()
    for caller in callers:
        caller.start()
    for position, caller in enumerate(callers):
        threading.Thread(target=_print_end, args=(position, caller), daemon=True).start()
    sys.stdin.read()


def _print_end(position: int, caller: Caller) -> None:
    assert caller.thread is not None
    caller.thread.join()
    os.write(1, f"{position}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
