"""Client that is killed: `client_program.py <kind> <url>` works and prints message ids.

enqueue        enqueues messages one by one until it is killed, and prints each id
hold           enqueues in a transaction, prints the id and never commits
work           handles 50 messages in a worker, prints each id, and then hangs in its handler
transactions   as work, in transactions, with a row in the table effect per message
"""

import os
import sys
import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import rowq
from rowq.engines import engine_for_url

HANDLED = 50
"""The number of messages handled before the handler hangs."""

_handled = count(1)


def print_id(message_id: int) -> None:
    """Print an id in one write."""
    os.write(1, f"{message_id}\n".encode())


def handle_some(message: rowq.Message) -> None:
    """Print the message's id; after HANDLED of them never return."""
    if next(_handled) > HANDLED:
        threading.Event().wait()
    print_id(message.message_id)


def enqueue(url: str) -> None:
    with rowq.connect(url) as queue:
        for number in count():
            print_id(queue.enqueue("orders", number).message_id)


def hold(url: str) -> None:
    connection = engine_for_url(url).connect(url)
    with engine_for_url(url).transaction(connection):
        print_id(rowq.Queue(connection).enqueue("orders", 0, dedup_key="held").message_id)
        sys.stdin.read()


def work(url: str) -> None:
    rowq.Worker(url, "orders", handle_some, batch_size=20, threads=2).run()


def transactions(url: str) -> None:
    def handle(message: rowq.Message, connection: Any) -> None:
        connection.cursor().execute(f"insert into effect values ({message.message_id})")
        handle_some(message)

    rowq.Worker(url, "orders", handle, batch_size=20, threads=2, transactional=True).run()


KINDS: dict[str, Callable[[str], None]] = {
    "enqueue": enqueue,
    "hold": hold,
    "work": work,
    "transactions": transactions,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](sys.argv[2])
