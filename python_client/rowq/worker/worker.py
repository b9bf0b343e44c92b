"""Runs a handler for every message of a queue."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from rowq.errors import WorkerFailed
from rowq.worker.context import Context, Settings, StopSignals
from rowq.worker.handlers import Handler
from rowq.worker.meter import Measured, WorkerStats
from rowq.worker.metrics import load_library
from rowq.worker.metrics.worker import serving_worker
from rowq.worker.processes import WorkerProcesses
from rowq.worker.threads import OnProgress, WorkerThreads


class Worker:
    """Takes messages of one queue and gives them to a handler, until stopped or drained.

    A handler that returns completes its message; one that raises or returns rowq.Retry or rowq.Fail
    decides otherwise; any other exception, also one that is no Exception, means another attempt
    after the queue's backoff, with the end of the traceback as the message's error. Only
    KeyboardInterrupt ends the worker. A message may come again after a crash (at least once); with
    `transactional` what the handler writes through its connection happens exactly once.

    The handler is called as

    - handler(message), or handler(message, connection) with `transactional`;
    - handler(messages), or handler(messages, connection), with per="batch": for a whole claim; it
      may return {message_id: Retry or Fail} for those that are not done. Anything else that it
      returns, but None, means another attempt for all of them.

    It may be `async def`, or return something to await: that is awaited in an event loop of the
    thread, kept until the thread ends, one message at a time unless `concurrent`. With
    `transactional` it is given the same synchronous connection. A result other than None, Retry and
    Fail completes a message, with one warning for each worker; a generator is refused, and so is a
    returned exception or class.

    With `transactional` the transaction is READ COMMITTED, and is the worker's: a handler's
    connection refuses to end it, and to finish or extend the message's claim (ForbiddenInHandler).
    A message whose transaction loses its connection, or a deadlock, is handled up to three times
    before that costs it an attempt; the others of its claim are handled again at no cost.

    `message.lost` tells a slow handler that its lease is gone and its work will not count, however
    it ends: the database has said so, or is silent and the lease's time is up. The second is told
    by monotonic time, a twentieth of the lease before its end; its messages then come again.
    `message.cancelled` tells it, at the next heartbeat, that somebody has cancelled the message:
    what it raises then ends the message as cancelled; if it returns, the message is completed.
    `message.set_result(value)` keeps a JSON value for who waits for the message's result, and
    `message.progress(text)` says how far the work is, with the next heartbeat.
    """

    def __init__(
        self,
        url: str | Mapping[str, str],
        queue_name: str,
        handler: Handler | str,
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
        """Prepare a worker; nothing is connected before `run`.

        handler             a callable, or "module:function"; with processes it must be importable.
                            One that cannot be called so, or not imported, is refused
        url                 of the server; for a striped queue also a mapping of names to URLs of
                            several servers. One that does not answer is left alone for a while
        stripes             stripes of a striped queue on each server
        first_stripe        where its first thread asks first, the next ones at the stripes behind
                            it; None: drawn, or with fewer threads than stripes they take turns
        batch_size          most messages per claim. None: one at first, then as many as take a
                            tenth of a second, at most 50; messages not begun after half a second
                            are released. With per="batch", or `concurrent`, 10
        lease_seconds       length of the lease, extended while handlers run; None: the queue's,
                            looked up once a minute. Take a lease that is longer than any one call
                            into C, such as a regular expression: it holds up the heartbeat
        timeout_seconds     most seconds for one call of the handler; None: no limit. When they are
                            over, HandlerTimedOut is raised in a plain handler's thread, or the task
                            of an asynchronous one is cancelled, and another attempt follows. A
                            handler that has not ended 10 seconds later hangs, such as in a call
                            into C: its lease is ended, and run() raises WorkerFailed, or with
                            `processes` the process is replaced
        threads             handlers at a time in this process, each thread with its own connection
        processes           0: work here; else so many child processes, restarted when they die
        transactional       handler and completion share one transaction per claim
        concurrent          an asynchronous handler works on all messages of a claim together, so on
                            batch_size of them in each thread; the next claim is taken when all are
                            done. Without it, and where nothing is awaited, one after the other
        drain               end when nothing is ready, due or in any worker's hands
        worker_name         shown with the claims; None: host and process id
        idle_min_seconds    when there is nothing, one idle thread of each process asks again after
                            this pause, the others wait for it
        idle_max_seconds    the pause doubles up to this: for so long at most, and a query, does a
                            message wait for an idle worker. None: 0.1; while it listens 1.25, or 7
                            where another process of the queue keeps house
        listen              be told of new messages while idle: milliseconds instead of that pause,
                            for one more connection and a notification with each producer's commit;
                            PostgreSQL only. None: where that works and without `drain`, else the
                            worker polls, and a warning in the log says why. True: an error says it.
                            Workers of a striped queue poll
        maintain_seconds    how often housekeeping is called; 0: never. While it listens, every 7
                            seconds where another process of the queue keeps house
        on_progress         called several times a second with the WorkerStats so far
        metrics_port        serve /metrics for Prometheus, /live and /ready at this port while it
                            runs; 0: at a free one, see `metrics_url`. Needs rowq[metrics]
        metrics_host        the address of this machine to serve them at; 0.0.0.0: at all of them

        Raises InvalidArgument for what cannot work, EngineUnknown for the URL, PackageMissing
        without what metrics need.
        """
        self._on_progress = on_progress
        self._settings = Settings(
            url=url,
            queue_name=queue_name,
            handler=handler,
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
        """Where its metrics are while it runs, if it has a port for them."""
        # The lock is reentrant, so that a signal's handler may call stop() wherever it interrupts.
        self._lock = threading.RLock()
        self._is_running = False
        self._is_stopped = False
        self._has_failed = False
        self._is_fresh = True
        self._context = Context(self._settings)
        self._processes = WorkerProcesses(self._settings) if processes else None

    @property
    def stats(self) -> WorkerStats:
        """What has been done so far, in this run or else in the last one."""
        return self._processes.stats() if self._processes else self._context.counter.snapshot()

    def stop(self) -> None:
        """Stop as SIGTERM does, from any thread: finish the running message, release the rest.

        When the worker does not run, this is for its next run. But after a run that has raised an
        error there is nothing to stop: who ends all workers of a program does not end the next run
        of one that has given up, and who runs such a one again asks first whether to.
        """
        with self._lock:
            if self._has_failed:
                return
            self._is_stopped = True
            self._context.stop()
            if self._processes:
                self._processes.stop()

    def _stop_run(self) -> None:
        """Stop the run that is under way, as `stop` does; do nothing where there is none.

        It is for who has begun a run in a thread, which may be over: no other run is stopped by it.
        """
        with self._lock:
            if self._is_running:
                self.stop()

    def run(self) -> WorkerStats:
        """Work until SIGTERM, SIGINT or stop(), or with `drain` until nothing is left.

        The first signal lets running messages finish and releases the others; a second one ends the
        process at once, and what it held comes back when its lease runs out. It may be run again,
        and counts from nothing then.

        Raises WorkerFailed when going on made no sense: no connection at the start, no such queue,
        no permission, the port of its metrics is taken; and when it is running already.
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
        """Serve the metrics, if there is a port for them, for the length of a block."""
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
        """Replace what an earlier run has used up."""
        with self._lock:
            if self._is_running:
                raise WorkerFailed("the worker is running already; make another one to run beside")
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
