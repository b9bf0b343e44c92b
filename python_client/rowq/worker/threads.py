"""The threads of a worker inside one process."""

import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from rowq.errors import ConnectionLost, RowqError, WorkerFailed
from rowq.queue import Queue
from rowq.rights import remedy_of
from rowq.worker.batching import MAINTAIN_BATCH_SIZE, has_more
from rowq.worker.claim import LiveClaim
from rowq.worker.consumer import Consumer
from rowq.worker.context import Context, Server, StopSignals, log
from rowq.worker.handlers import find_handlers, retry
from rowq.worker.heartbeat import Heartbeat
from rowq.worker.listener import Listener
from rowq.worker.meter import Measures, Meter, WorkerStats
from rowq.worker.timeouts import Call

_PAUSES = 3
# On a busy machine a thread may be late by this much.
_LEAST_SECONDS = 3.0

_PROGRESS_SECONDS = 0.2
# How long to wait for the heartbeat to abandon claims whose handlers hang.
_ABANDON_SECONDS = 5.0

OnProgress = Callable[[WorkerStats], None]


class Liveness:
    """Liveness and readiness of the threads of one process, without waiting for them.

    A running process is not enough: the worker or its heartbeat may be cut off from the database
    while handlers continue.
    """

    def __init__(self, context: Context, meter: Meter, heartbeats: Iterable[Heartbeat]) -> None:
        self._context = context
        self._meter = meter
        self._heartbeats = list(heartbeats)

    def measures(self) -> Measures:
        """Return the counts and state of the worker."""
        claims = self._claims()
        began_at = min((claim.called_at for claim in claims), default=None)
        now, answered_at = time.monotonic(), self._meter.answered_at
        return replace(
            self._meter.measures(),
            stats=self._context.counter.snapshot(),
            held=sum(claim.held for claim in claims),
            oldest_claim_seconds=0.0 if began_at is None else now - began_at,
            last_poll_at=None if answered_at is None else time.time() - (now - answered_at),
            why_not_ready=self.why_not_ready(),
        )

    def why_not_ready(self) -> str:
        """Return why the worker is not ready, or an empty string.

        A ready worker gets an answer to a dequeue within three pauses between polls, and 3 seconds,
        unless each thread has a claim; and it extends each lease before two thirds have passed.
        """
        if self._context.failure is not None:
            return "the worker has failed"
        if self._context.stopping.is_set():
            return "the worker is stopping"
        if self._meter.answered_at is None:
            return "no dequeue has been answered yet"
        return self._why_leases() or self._why_polls(self._meter.answered_at)

    def _claims(self) -> list[LiveClaim]:
        return [claim for heartbeat in self._heartbeats for claim in heartbeat.claims()]

    def _why_leases(self) -> str:
        now = time.monotonic()
        for claim in self._claims():
            late_at = claim.lease.extend_at + claim.lease.seconds / 3
            if claim.held and (claim.lost or now >= late_at):
                return f"the lease of claim {claim.claim_id} was not extended"
        return ""

    def _why_polls(self, answered_at: float) -> str:
        if len(self._claims()) >= self._context.settings.threads:
            return ""
        seconds = time.monotonic() - max(answered_at, self._meter.free_at)
        pauses = _PAUSES * self._context.polling.longest_pause_seconds
        if seconds > max(pauses, _LEAST_SECONDS):
            return f"no dequeue has been answered for {seconds:.0f} seconds"
        return ""


def described(error: BaseException) -> str:
    """Return an error's text, with its type unless it is rowq's."""
    if isinstance(error, RowqError):
        return str(error)
    remedy = remedy_of(error)
    return f"{type(error).__name__}: {error}" + (f": {remedy}" if remedy else "")


class WorkerThreads:
    """The threads of a worker: consumers, heartbeat, listener, and maintenance."""

    def __init__(self, context: Context) -> None:
        """Prepare the threads without starting them; raises WorkerFailed for a bad handler."""
        self._context = context
        handler = find_handlers(context.settings.handler, context.settings.arguments)
        self._heartbeats = {server.name: Heartbeat(context, server) for server in context.servers}
        self._liveness = (
            Liveness(context, context.meter, self._heartbeats.values()) if context.meter else None
        )
        self._hung: set[Call] = set()
        """Calls of the handler that hang; do not wait for their threads."""
        self._maintenances = [Maintenance(context, server) for server in context.servers]
        self._consumers = [
            Consumer(context, handler, self._heartbeats, number)
            for number in range(1, context.settings.threads + 1)
        ]

    def run(self, on_progress: OnProgress | None, signals: StopSignals) -> WorkerStats:
        """Work until every thread has ended; raises WorkerFailed if one cannot continue."""
        consumers: list[threading.Thread] = []
        others: list[threading.Thread] = []
        try:
            for heartbeat in self._heartbeats.values():
                self._start("heartbeat", heartbeat.run, others)
            for name, run in self._helpers():
                self._start(name, run, others)
            for consumer in self._consumers:
                self._start("consumer", consumer.run, consumers)
            self._watch(consumers, on_progress, signals)
        finally:
            self._context.stop()
            _join([thread for thread in consumers if self._is_working(thread)])
            self._abandon_hung()
            self._end_helpers()
            _join(others)
            for server in self._context.servers:
                server.shared.end()
        if self._context.failure is not None:
            raise WorkerFailed(described(self._context.failure)) from self._context.failure
        return self._context.counter.snapshot()

    def measures(self) -> Measures:
        """Return the counts and state of the worker."""
        if self._liveness is None:
            return Measures(stats=self._context.counter.snapshot())
        return self._liveness.measures()

    def _helpers(self) -> list[tuple[str, Callable[[], None]]]:
        """Return the names and loops of the helper threads."""
        helpers: list[tuple[str, Callable[[], None]]] = []
        if self._context.listening_engine:
            listener = Listener(self._context, self._context.listening_engine)
            helpers.append(("listener", listener.run))
        if self._context.settings.maintain_seconds > 0:
            helpers += [("maintenance", maintenance.run) for maintenance in self._maintenances]
        return helpers

    def _end_helpers(self) -> None:
        for heartbeat in self._heartbeats.values():
            heartbeat.end()
        for maintenance in self._maintenances:
            maintenance.end()

    def _watch(
        self,
        consumers: list[threading.Thread],
        on_progress: OnProgress | None,
        signals: StopSignals,
    ) -> None:
        while working := [thread for thread in consumers if self._is_working(thread)]:
            working[0].join(_PROGRESS_SECONDS)
            for call in self._context.timeouts.check():
                if call not in self._hung:
                    self._record_hang(call)
            if signals.asked or self._context.failure:
                self._context.stop()
            if on_progress:
                on_progress(self._context.counter.snapshot())

    def _is_working(self, thread: threading.Thread) -> bool:
        return thread.is_alive() and all(thread.ident != call.thread for call in self._hung)

    def _record_hang(self, call: Call) -> None:
        """Let the heartbeat abandon the claim of a call that hangs, and fail."""
        hung = self._context.timeouts.hung(call)
        self._hung.add(call)
        self._context.fail(hung)
        log.error("%s", hung)
        first, decision = call.messages[0], retry(str(hung))
        for claim in self._claims():
            if (claim.stripe, claim.claim_id) == (first.stripe, first.claim_id):
                claim.record_hang({message.message_id: decision for message in call.messages})

    def _abandon_hung(self) -> None:
        """Wait until the heartbeat has abandoned the claims whose handlers hang."""
        until = time.monotonic() + _ABANDON_SECONDS
        for claim in self._claims():
            if claim.is_hung and not claim.was_abandoned(max(until - time.monotonic(), 0)):
                log.warning("claim %d not finished, its lease will expire", claim.claim_id)

    def _claims(self) -> list[LiveClaim]:
        return [claim for heartbeat in self._heartbeats.values() for claim in heartbeat.claims()]

    def _start(self, name: str, run: Callable[[], None], started: list[threading.Thread]) -> None:
        def guarded() -> None:
            try:
                run()
            except BaseException as error:
                self._context.fail(error)

        thread = threading.Thread(target=guarded, name=f"rowq-{name}", daemon=True)
        thread.start()
        started.append(thread)


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


class Maintenance:
    """The thread that calls maintain on a server, about once a second, or at once for a backlog.

    While another process of the queue is the leader, it calls maintain less often.
    """

    def __init__(self, context: Context, server: Server) -> None:
        self._context = context
        self._server = server
        self._names = [
            stripe.queue_name for stripe in context.stripes if stripe.server == server.name
        ]
        self._ended = threading.Event()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()

    def run(self) -> None:
        """Call maintain until the end; every call has its own transaction."""
        queue = Queue(self._server.shared)
        while not self._ended.is_set():
            if not self._go_round(queue):
                self._wait()

    def _go_round(self, queue: Queue) -> bool:
        """Call maintain for each stripe; return whether there is more work."""
        is_full = False
        for name in self._names:
            try:
                results = queue.maintain(name, MAINTAIN_BATCH_SIZE)
            except ConnectionLost:
                if self._context.may_wait():
                    raise
                return False
            is_full = has_more(results) or is_full
        return is_full

    def _wait(self) -> None:
        """Wait for the next call; the process may become the leader during a long pause."""
        began_at = time.monotonic()
        self._ended.wait(self._pause())
        while time.monotonic() < began_at + self._context.follower_seconds:
            if self._ended.wait(self._pause()):
                return

    def _pause(self) -> float:
        return self._context.settings.maintain_seconds * random.uniform(0.75, 1.25)  # noqa: S311
