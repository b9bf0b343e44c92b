"""Kills one of the demo's workers while it holds a claim, not a moment before or after.

It reserves the place of an order that is still to come, in a transaction that stays open. The
worker that takes this order has to wait in the middle of booking its claim, and can neither finish
it nor lose it, until it is killed. Then the reservation is given up.
"""

import multiprocessing
import os
import signal
from dataclasses import dataclass
from typing import Any

from rowq.messages import MessageDetails
from rowq.queue import Queue
from rowq.tools.demo.ledger import Ledger

_STEP = 1000


@dataclass(frozen=True, slots=True)
class Killed:
    """The worker that was killed, and the claim that it held."""

    pid: int
    claim_id: int
    order_number: int


class Killer:
    """Strikes once, in the middle of the drain; `tick` is called again and again meanwhile."""

    def __init__(
        self, queue: Queue, queue_name: str, ledger: Ledger, connection: Any, message_ids: list[int]
    ) -> None:
        """Watch `queue_name`; `message_ids[n - 1]` is the message of order n."""
        self._queue = queue
        self._queue_name = queue_name
        self._ledger = ledger
        self._connection = connection
        self._message_ids = message_ids
        self._bait: int | None = None
        self.killed: Killed | None = None

    def tick(self, done: int) -> Killed | None:
        """Do the next step after `done` orders; return the killed worker once, when it is done."""
        if self.killed is not None:
            return None
        if self._bait is None:
            if done >= len(self._message_ids) // 4:
                self._lay_bait(len(self._message_ids) // 2)
            return None
        found = self._queue.get_message(self._queue_name, self._message_ids[self._bait - 1])
        if found is None or found.state != "leased":
            return None
        self.killed = self._kill(found)
        self.give_up()
        return self.killed

    def give_up(self) -> None:
        """End the transaction, so that nobody waits for it."""
        if self._bait is not None:
            self._ledger.let_go(self._connection)
            self._bait = None

    def _lay_bait(self, first: int) -> None:
        for number in range(first, len(self._message_ids), _STEP):
            if self._ledger.reserve(self._connection, number):
                self._bait = number
                return

    def _kill(self, found: MessageDetails) -> Killed:
        """Kill the process of the worker that holds the message."""
        assert self._bait is not None
        assert found.claim_id is not None
        assert found.worker_name is not None
        pid = int(found.worker_name.rpartition(":")[2])
        if pid not in {child.pid for child in multiprocessing.active_children()}:
            raise RuntimeError(f"{found.worker_name} is not one of the demo's workers")
        os.kill(pid, signal.SIGKILL)
        return Killed(pid, found.claim_id, self._bait)
