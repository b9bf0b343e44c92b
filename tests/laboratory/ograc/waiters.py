"""Sessions that wait at one queue of an oGRAC at the same time: one looks for all, and is followed.

The lock that dbms_lock would give is one of oGRAC's own there, and the doorbell is test code.
"""

import threading
import time

from tests.engines.base import wait_until
from tests.laboratory.ograc.calls import Calls, Row, UnexpectedError
from tests.laboratory.ograc.client import Client

WAITERS, SENT = 6, 4
LOOKS_A_SECOND = 12
"""One by each that waits for the leader, one or two by the leader; without one it would be 24."""


def wait_together(client: Client, calls: Calls) -> None:
    """Let sessions wait for fewer messages than they are. Raises UnexpectedError."""
    answers: list[list[Row]] = []

    def wait() -> None:
        answers.append(client.call("rowq.dequeue_wait", queue_name="'t'", wait_seconds="12"))

    def seen(name: str) -> int:
        return calls.count(f"rowq_seen where name like '{name}'")

    calls.want("create_queue", {"outcome": "created"}, queue_name="'t'")
    calls.change("delete from rowq_seen where name like 'listen%' or name like 'ring%'")
    before = seen("internal_dequeue")
    began_at = time.monotonic()
    waiting = [threading.Thread(target=wait) for _ in range(WAITERS)]
    for thread in waiting:
        thread.start()
    wait_until(lambda: seen("listen%") >= 3, "one leads and listens", seconds=10)
    looks, seconds = seen("internal_dequeue") - before, time.monotonic() - began_at
    if looks > LOOKS_A_SECOND * (seconds + 1):
        raise UnexpectedError(f"{looks} looks in {seconds:.1f} seconds")
    bodies = ", ".join(['{"body": "x"}'] * SENT)
    sent = [{"outcome": "enqueued"}] * SENT
    calls.want("enqueue_batch", *sent, queue_name="'t'", messages=f"'[{bodies}]'")
    wait_until(lambda: len(answers) == SENT, "each message has ended a wait", seconds=6)
    for thread in waiting:
        thread.join(60)
    if (len(answers), sum(map(bool, answers)), seen("ring%")) != (WAITERS, SENT, 1):
        raise UnexpectedError(f"{seen('ring%')} rings, {answers}")
    calls.want("drop_queue", {"outcome": "dropped"}, queue_name="'t'", force="1")
