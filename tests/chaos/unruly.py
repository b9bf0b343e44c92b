"""Worker with misbehaving handlers: `python -m tests.chaos.unruly <kind> <url> <folder>`.

It works until the queue is drained, or until a handler has ended it. A message's headers name the
deed of each delivery: {"deeds": [name, ...]}; later deliveries behave. Each handler writes a row
into the table ledger, a program a line into the file of that name. Calls are logged to files.
"""

import logging
import os
import random
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import rowq
from rowq.engines import engine_for_url
from rowq.tools.command.execute import Command
from rowq.tools.command.programs import Programs
from tests.chaos import unruly_program
from tests.chaos.call_log import log_calls
from tests.chaos.deeds import DEEDS, QUEUE, UNSEEN
from tests.chaos.unruly_program import LEASE_SECONDS
from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of

URL, ROOM = "ROWQ_TEST_URL", "ROWQ_TEST_ROOM"

_own = threading.local()


def handle_in_transaction(message: rowq.Message, connection: Connection) -> Any:
    """Write a row on the worker's connection, and do the deed before or after it."""
    deeds: list[str] = (message.headers or {})["deeds"]
    deed = deeds[message.attempt - 1] if message.attempt <= len(deeds) else None
    said = None
    if deed and message.message_id % 3 == 0:
        said = (DEEDS | UNSEEN)[deed](message, connection)
    with suppress(*[rowq.ForbiddenInHandler] * (deed in DEEDS)):
        statement = f"insert into ledger (message_id) values ({message.message_id})"
        dialect_of(connection).execute(connection, statement)
    if deed and message.message_id % 3:
        said = (DEEDS | UNSEEN)[deed](message, connection)
    return said


def handle(message: rowq.Message) -> Any:
    """Do the same on the thread's own connection."""
    engine = engine_for_url(os.environ[URL])
    if not hasattr(_own, "connection") or not engine.is_usable(_own.connection):
        _own.connection = engine.connect(os.environ[URL])
    try:
        return handle_in_transaction(message, _own.connection)
    except BaseException:
        engine.close(_own.connection)
        raise


def threads(url: str) -> None:
    rowq.Worker(url, QUEUE, handle, threads=4, **OPTIONS).run()


def processes(url: str) -> None:
    rowq.Worker(url, QUEUE, handle, threads=2, processes=2, **OPTIONS).run()


def threads_in_transactions(url: str) -> None:
    rowq.Worker(url, QUEUE, handle_in_transaction, threads=4, transactional=True, **OPTIONS).run()


def processes_in_transactions(url: str) -> None:
    rowq.Worker(
        url, QUEUE, handle_in_transaction, threads=2, processes=2, transactional=True, **OPTIONS
    ).run()


def programs(url: str) -> None:
    """Work as `rowq work --exec` does, with shorter timeouts for programs."""
    program = Path(os.environ[ROOM]) / "program"
    text = Path(unruly_program.__file__).read_text(encoding="utf-8")
    new = program.with_name("new")
    new.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
    new.chmod(0o755)
    new.replace(program)
    os.environ |= {unruly_program.WORKER: str(os.getpid()), "ROWQ_TEST_PYTHON": sys.executable}
    with Programs(grace_seconds=0.5) as running:
        command = Command((str(program),), running)
        rowq.Worker(url, QUEUE, command, threads=4, **OPTIONS).run()


def release() -> None:
    """Release the claim in the arguments, in a separate process."""
    with suppress(rowq.StaleClaim), rowq.connect(os.environ[URL]) as queue:
        queue.release(QUEUE, int(sys.argv[1]))


OPTIONS: dict[str, Any] = {"batch_size": 5, "lease_seconds": LEASE_SECONDS, "drain": True}

IN_PYTHON: tuple[Callable[[str], None], ...] = (
    *(threads, processes, threads_in_transactions, processes_in_transactions),
)
KINDS: dict[str, Callable[[str], None]] = {kind.__name__: kind for kind in (*IN_PYTHON, programs)}
"""The kinds of workers."""


def main() -> None:
    """Run a worker once."""
    logging.basicConfig(format="%(asctime)s %(process)d %(threadName)s %(message)s")
    kind, url, room = sys.argv[1:]
    os.environ |= {URL: url, ROOM: room}
    log_calls(engine_for_url(url), Path(room))
    try:
        KINDS[kind](url)
    except rowq.WorkerFailed as error:
        sys.exit(f"failed: {error}")


# At the top level, because the worker's child processes import this module.
if ROOM in os.environ:
    log_calls(engine_for_url(os.environ[URL]), Path(os.environ[ROOM]))
    random.seed()

if __name__ == "__main__":
    main()
