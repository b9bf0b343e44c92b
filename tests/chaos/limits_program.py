"""Client that is killed: `limits_program.py <url> <seed> <sessions> <held>` works on `orders`.

Each session has a thread and takes and finishes messages; `held` of them do so in transactions.
They print JSON lines: `dequeue` with the call's start and end, the server's time of the delivery
and the messages; `ending` before a call that may end the lease; `commit` after a transaction's end.
Times are of the machine's monotonic clock. The first line is `ready`.
"""

import json
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import rowq
from rowq import Message, Queue, StaleClaim
from rowq.engines import engine_for_url

LEASE_SECONDS = 3


def print_line(action: str, claim_id: int, **facts: Any) -> None:
    """Print one line in one write."""
    line = json.dumps({"action": action, "claim_id": claim_id, **facts})
    os.write(1, line.encode() + b"\n")


def take(queue: Queue, chance: random.Random, *, held: bool) -> list[Message]:
    """Dequeue 1 to 4 messages, and print them."""
    start = time.monotonic()
    messages = queue.dequeue_fast(
        "orders", chance.choice([1, 1, 2, 4]), lease_seconds=LEASE_SECONDS
    )
    if messages:
        print_line(
            "dequeue",
            messages[0].claim_id,
            start=start,
            end=time.monotonic(),
            began=messages[0].lease_until.timestamp() - LEASE_SECONDS,
            ids=[message.message_id for message in messages],
            held=held,
        )
    return messages


def finish(queue: Queue, chance: random.Random, claim_id: int) -> None:
    """End the claim by a random routine, or let it expire."""
    way = chance.random()
    if way < 0.03:
        return
    print_line("ending", claim_id, start=time.monotonic())
    if way < 0.1:
        queue.retry_later("orders", claim_id, delay_seconds=0)
    elif way < 0.15:
        queue.release("orders", claim_id)
    else:
        queue.complete("orders", claim_id)


def work(url: str, chance: random.Random) -> None:
    """Take and finish messages in autocommit."""
    with rowq.connect(url) as queue:
        while True:
            if messages := take(queue, chance, held=False):
                time.sleep(chance.random() * 0.03)
                # The lease may have run out on a loaded machine.
                with suppress(StaleClaim):
                    finish(queue, chance, messages[0].claim_id)
            else:
                time.sleep(0.02)


def work_in_transactions(url: str, chance: random.Random) -> None:
    """Take and finish in one transaction; roll some of them back."""
    engine = engine_for_url(url)
    connection = engine.connect(url)
    queue = Queue(connection)
    while True:
        with suppress(UnwantedError):
            messages = _work_once(engine.transaction(connection), queue, chance)
            if messages:
                print_line("commit", messages[0].claim_id)
            else:
                time.sleep(0.02)


class UnwantedError(Exception):
    """Rolls a transaction back."""


def fail_at_random(chance: random.Random, claim_id: int) -> None:
    """Raise an error at random, and print that this ends the claim."""
    if chance.random() < 0.2:
        print_line("ending", claim_id, start=time.monotonic())
        raise UnwantedError


def _work_once(
    transaction: AbstractContextManager[Any], queue: Queue, chance: random.Random
) -> list[Message]:
    """Take and finish in a transaction, or roll it back by an error."""
    with transaction:
        if messages := take(queue, chance, held=True):
            time.sleep(chance.random() * 0.03)
            finish(queue, chance, messages[0].claim_id)
            fail_at_random(chance, messages[0].claim_id)
    return messages


def main(url: str, seed: str, sessions: int, held: int) -> None:
    """Run every session until killed; an error in one ends all."""

    def run(part: Callable[[str, random.Random], None], number: int) -> None:
        try:
            part(url, random.Random(f"{seed} {number}"))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    print_line("ready", 0)
    for number in range(sessions):
        part = work_in_transactions if number < held else work
        threading.Thread(target=run, args=(part, number)).start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
