"""A program that is killed: `client_program.py <what> <url>` works and prints what it did.

enqueue        enqueues one message after the other, until it is killed, and says each id
hold           enqueues in a transaction, says the id and never commits
work           handles 50 messages in a worker, says each id, and then is stuck in its handler
transactions   as work, in transactions, with a row in the table effect for each message
"""

import os
import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import rowq
from rowq.engines import engine_for_url

PATIENCE = 50
"""The number of messages that are handled before the handler is stuck."""

_handled = count(1)


def say(message_id: int) -> None:
    """Say an id, whole."""
    os.write(1, f"{message_id}\n".encode())


def handle_some(message: rowq.Message) -> None:
    """Say the message's id; after enough of them never return."""
    if next(_handled) > PATIENCE:
        threading.Event().wait()
    say(message.message_id)


def enqueue(url: str) -> None:
    with rowq.connect(url) as queue:
        for number in count():
            say(queue.enqueue("orders", number).message_id)


def hold(url: str) -> None:
    connection = engine_for_url(url).connect(url)
    with engine_for_url(url).transaction(connection):
        say(rowq.Queue(connection).enqueue("orders", 0, dedup_key="held").message_id)
        sys.stdin.read()


def work(url: str) -> None:
    rowq.Worker(url, "orders", handle_some, batch_size=20, threads=2).run()


def transactions(url: str) -> None:
    def handle(message: rowq.Message, connection: Any) -> None:
        connection.cursor().execute(f"insert into effect values ({message.message_id})")
        handle_some(message)

    rowq.Worker(url, "orders", handle, batch_size=20, threads=2, transactional=True).run()


PARTS: dict[str, Callable[[str], None]] = {
    "enqueue": enqueue,
    "hold": hold,
    "work": work,
    "transactions": transactions,
}

if __name__ == "__main__":
    PARTS[sys.argv[1]](sys.argv[2])
