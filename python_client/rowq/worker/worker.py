"""The Worker class."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, TypeVar

from rowq.errors import WorkerFailed
from rowq.worker.context import Context, QueueNames, Settings, StopSignals
from rowq.worker.handlers import Handlers
from rowq.worker.meter import Measured, WorkerStats
from rowq.worker.metrics import load_library
from rowq.worker.metrics.worker import serving_worker
from rowq.worker.processes import WorkerProcesses
from rowq.worker.threads import OnProgress, WorkerThreads

_T = TypeVar("_T")


def _copied(value: _T) -> _T:
    """Return a plain copy of a list or mapping."""
    if isinstance(value, Mapping):
        return dict(value)  # type: ignore[return-value]
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


class Worker:
    """A worker: calls a handler for each message of a queue, until stopped or drained.

    It may be a worker of several queues.

    If the handler returns, its message is completed. It can raise or return rowq.Retry,
    rowq.Snooze or rowq.Fail. Any other exception, even a BaseException, means a retry after the
    queue's backoff, with the end of the traceback as the error; only KeyboardInterrupt ends the
    worker. After a crash a message is delivered again (at least once). With `transactional`, what
    the handler writes through its connection happens exactly once.

    The handler is called as

    - handler(message), or handler(message, connection) with `transactional`;
    - handler(messages), or handler(messages, connection), with per="batch": for a whole claim. It
      may return {message_id: Retry, Snooze or Fail} for messages that are not done. Any other
      result than None retries all of them.

    It may be `async def`, or return an awaitable, which the thread awaits in its own event loop,
    one message at a time unless `concurrent`. With `transactional` it gets the same synchronous
    connection. A result other than None, Retry, Snooze and Fail completes the message, with one
    warning per worker; generators, and returned exceptions and classes, are refused.

    With `transactional` the worker owns the transaction, which is READ COMMITTED. The handler's
    connection refuses to end it, and to finish or extend the claim (ForbiddenInHandler). If the
    transaction loses its connection, or a deadlock, the message is handled up to three times before
    this costs an attempt; the other messages of the claim lose no attempt.

    `message.lost` is true if the lease is gone, so that the outcome of the handler does not count:
    the database reported it, or does not answer and 95% of the lease have passed by monotonic time.
    `message.cancelled` is true from the next heartbeat after a cancel: if the handler then raises,
    the message is cancelled; if it returns, the message is completed. `message.set_result(value)`
    sets the message's result, and `message.progress(text)` its progress, sent by the heartbeat.
    """

    def __init__(
        self,
        url: str | Mapping[str, str],
        queue_name: QueueNames,
        handler: Handlers,
        *,
        stripes: int | None = None,
        first_stripe: int | None = None,
        per: Literal["message", "batch"] = "message",
        batch_size: int | None = None,
        lease_seconds: int | None = None,
        timeout_seconds: float | None = None,
        threads: int = 1,
        processes: int = 0,
        transactional: bool = False,
        concurrent: bool = False,
        drain: bool = False,
        worker_name: str | None = None,
        idle_min_seconds: float = 0.05,
        idle_max_seconds: float | None = None,
        listen: bool | None = None,
        maintain_seconds: float = 1.0,
        on_progress: OnProgress | None = None,
        metrics_port: int | None = None,
        metrics_host: str = "127.0.0.1",
    ) -> None:
        """Prepare a worker; connect in `run`.

        queue_name          a queue; a list of queues, of which each claim comes from the first that
                            has a message; or a mapping of queues to weights, whose queues with
                            messages take weighted turns. Several queues need one server and no
                            stripes; message.stripe.queue_name is the message's queue
        handler             a callable, or "module:function"; with `processes` it must be
                            importable. With several queues also a mapping by queue name
        url                 of the server; for a striped queue also a mapping of names to URLs.
                            Unreachable servers are skipped for a while
        stripes             stripes per server, for a striped queue
        first_stripe        where the first thread starts polling; the next threads start at the
                            following stripes. None: random; with fewer threads than stripes they
                            take turns
        batch_size          maximum messages per claim. None: first 1, then as many as take 0.1
                            seconds, up to 50; messages not started after 0.5 seconds are released.
                            With per="batch" or `concurrent`, 10
        lease_seconds       length of the lease, which the heartbeat extends; None: the queue's,
                            read once a minute. It must be longer than any single call into C, such
                            as a regular expression, which blocks the heartbeat
        timeout_seconds     maximum seconds of one handler call; None: no limit. Then
                            HandlerTimedOut is raised in the thread of a plain handler, or the task
                            of an asynchronous one is cancelled, and the message is retried. If the
                            handler still runs 10 seconds later, for example in a call into C, its
                            lease is ended, and run() raises WorkerFailed, or with `processes` the
                            process is replaced
        threads             parallel handlers in this process, each thread with its own connection
                            while it works
        processes           0: work in this process; else the number of child processes, which are
                            restarted if they die
        transactional       handler and completion share one transaction per claim
        concurrent          an asynchronous handler runs for all messages of a claim at once: up to
                            batch_size per thread. The next claim is dequeued when all are done
        drain               end if no message is ready, due or leased
        worker_name         shown with the claims; None: host and process id
        idle_min_seconds    pause between polls of an idle process; one of its threads polls
        idle_max_seconds    the pause doubles up to this, the longest time a message waits for an
                            idle worker. None: 0.1; while listening 1.25, or 7 if another process
                            of the queue is the leader
        listen              receive notifications of new messages while idle, within milliseconds,
                            for a notification per commit of a producer; PostgreSQL only. None: if
                            possible and without `drain`; otherwise poll, and log a warning. True:
                            raise an error if impossible. Workers of a striped queue poll
        maintain_seconds    interval of maintenance; 0: never. While listening, 7 seconds if another
                            process of the queue is the leader
        on_progress         called several times a second with the current WorkerStats
        metrics_port        serve /metrics for Prometheus, /live and /ready at this port; 0: a free
                            port, see `metrics_url`. Requires rowq[metrics]
        metrics_host        address to serve them at; 0.0.0.0: all addresses

        Raises InvalidArgument, EngineUnknown for the URL, PackageMissing for the metrics.
        """
        self._on_progress = on_progress
        self._settings = Settings(
            url=url,
            # A list may change later, and not every mapping can be sent to another process.
            queue_name=_copied(queue_name),
            handler=_copied(handler),
            stripes=stripes,
            first_stripe=first_stripe,
            per=per,
            batch_size=batch_size,
            lease_seconds=lease_seconds,
            timeout_seconds=timeout_seconds,
            threads=threads,
            processes=processes,
            transactional=transactional,
            concurrent=concurrent,
            drain=drain,
            worker_name=worker_name,
            idle_min_seconds=idle_min_seconds,
            idle_max_seconds=idle_max_seconds,
            listen=listen,
            maintain_seconds=maintain_seconds,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        if metrics_port is not None:
            load_library()
        self.metrics_url: str | None = None
        """URL of the metrics while it runs with a metrics_port."""
        # The lock is reentrant, so that a signal handler may call stop() at any time.
        self._lock = threading.RLock()
        self._is_running = False
        self._is_stopped = False
        self._has_failed = False
        self._is_fresh = True
        self._context = Context(self._settings)
        self._processes = WorkerProcesses(self._settings) if processes else None

    @property
    def stats(self) -> WorkerStats:
        """Counts of the current or last run."""
        return self._processes.stats() if self._processes else self._context.counter.snapshot()

    def stop(self) -> None:
        """Stop as SIGTERM does, from any thread: finish the running messages, release the rest.

        If the worker does not run, the next run stops at once. After a run that raised an error it
        does nothing: stopping all workers of a program does not stop the restart of a failed one.
        """
        with self._lock:
            if self._has_failed:
                return
            self._is_stopped = True
            self._context.stop()
            if self._processes:
                self._processes.stop()

    def _stop_run(self) -> None:
        """Stop the current run, if there is one, as `stop` does; do not affect a later run."""
        with self._lock:
            if self._is_running:
                self.stop()

    def run(self) -> WorkerStats:
        """Work until SIGTERM, SIGINT or stop(), or with `drain` until no message is due or leased.

        After the first signal, running messages finish and the others are released. A second signal
        ends the process at once; its messages are reaped when their leases expire. A worker can run
        again, and then counts from 0.

        Raises WorkerFailed if the worker cannot continue: no connection at the start, no such
        queue, no permission, metrics port in use; or if it is already running.
        """
        self._begin()
        has_failed = True
        try:
            stats = self._work()
            has_failed = False
        finally:
            with self._lock:
                self._is_running = self._is_stopped = False
                self._has_failed = has_failed
        return stats

    def _work(self) -> WorkerStats:
        """Work in processes or threads until the end; raises WorkerFailed."""
        if self._processes:
            work = self._processes
            with StopSignals(at_once=work.kill) as signals, self._serving(work):
                return work.run(self._on_progress, signals)
        with StopSignals() as signals:
            threads = WorkerThreads(self._context)
            with self._serving(threads):
                return threads.run(self._on_progress, signals)

    @contextmanager
    def _serving(self, measured: Measured) -> Iterator[None]:
        """Serve the metrics, if there is a port for them, during a block."""
        port = self._settings.metrics_port
        if port is None:
            yield
            return
        with serving_worker(self._settings.metrics_host, port, self._settings, measured) as url:
            self.metrics_url = url
            try:
                yield
            finally:
                self.metrics_url = None

    def _begin(self) -> None:
        """Replace the state of an earlier run."""
        with self._lock:
            if self._is_running:
                raise WorkerFailed(
                    "this Worker is already running; create another one to run in parallel"
                )
            self._has_failed = False
            if not self._is_fresh:
                self._context = Context(self._settings)
                self._processes = (
                    WorkerProcesses(self._settings) if self._settings.processes else None
                )
                if self._is_stopped:
                    self.stop()
            self._is_fresh = False
            self._is_running = True
