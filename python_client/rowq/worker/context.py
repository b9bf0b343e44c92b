"""Shared state of a worker's threads: settings, counts, and the signal to stop."""

import logging
import math
import os
import random
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index
from types import FrameType, TracebackType
from typing import Any, Literal, Self, TypeVar

from rowq.backoff import Backoff
from rowq.engines import engine_for_url
from rowq.engines.base import Engine, ListeningEngine
from rowq.errors import ConnectionLost, EngineUnknown, InvalidArgument, RowqError
from rowq.session import OwnedSession
from rowq.worker.batching import TOGETHER
from rowq.worker.handlers import Handlers, check_handler, check_importable, shown
from rowq.worker.meter import Counter, Meter
from rowq.worker.polling import Polling
from rowq.worker.sessions import SharedSession
from rowq.worker.stripes import ServerHealth, Stripe, servers_of, stripes_of
from rowq.worker.timeouts import Timeouts

_T = TypeVar("_T")

log = logging.getLogger("rowq.worker")

# How long a stopping worker tries to report outcomes if the database is unreachable.
_GRACE_SECONDS = 10.0
# The longest pause between two polls of an idle worker that does not listen.
_POLLING_SECONDS = 0.1
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


QueueNames = str | Sequence[str] | Mapping[str, int]
"""A queue, several queues in a strict order, or several with weights."""


def queues_of(names: Sequence[str], weights: str | None) -> QueueNames:
    """Return the queues of a command: one, several in order, or several with weights.

    weights: integers separated by commas, one per name. Raises InvalidArgument.
    """
    if len(set(names)) < len(names):
        raise InvalidArgument("a queue is named twice")
    if weights is None:
        return names if len(names) > 1 else names[0]
    try:
        numbers = [int(weight) for weight in weights.split(",")]
    except ValueError:
        raise InvalidArgument(f"--weights must be integers, got {weights}") from None
    if len(names) == 1:
        raise InvalidArgument("--weights requires --also")
    if len(numbers) != len(names):
        raise InvalidArgument(f"--weights must have {len(names)} numbers, got {len(numbers)}")
    return dict(zip(names, numbers, strict=True))


def default_name() -> str:
    """Return the default worker name: host and process id."""
    return f"{socket.gethostname()[:150]}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The arguments of Worker; worker.py describes them."""

    url: str | Mapping[str, str] = field(repr=False)
    queue_name: QueueNames
    handler: Handlers
    stripes: int | None = None
    first_stripe: int | None = None
    per: Literal["message", "batch"]
    batch_size: int | None
    lease_seconds: int | None
    timeout_seconds: float | None
    threads: int
    processes: int
    transactional: bool
    concurrent: bool
    drain: bool
    worker_name: str | None
    idle_min_seconds: float
    idle_max_seconds: float | None
    listen: bool | None
    maintain_seconds: float
    metrics_port: int | None
    metrics_host: str

    def __post_init__(self) -> None:
        """Check the arguments; raises InvalidArgument."""
        handlers = self.handler.values() if isinstance(self.handler, Mapping) else [self.handler]
        for handler in handlers:
            if not isinstance(handler, str):
                what = "messages" if self.per == "batch" else "message"
                check_handler(handler, self.arguments, what)
                if self.processes:
                    check_importable(handler)
        for rule, holds in self._rules().items():
            if not holds:
                raise InvalidArgument(rule)
        self.all_stripes()

    @property
    def queue_names(self) -> tuple[str, ...]:
        """The names of the queues, in their order."""
        is_one = isinstance(self.queue_name, str) or not isinstance(
            self.queue_name, Mapping | Sequence
        )
        return (self.queue_name,) if is_one else tuple(self.queue_name)  # type: ignore[return-value]

    @property
    def weights(self) -> tuple[int, ...] | None:
        """The weights of the queues, or None for a strict order."""
        return tuple(self.queue_name.values()) if isinstance(self.queue_name, Mapping) else None

    @property
    def has_several_queues(self) -> bool:
        """Whether there are several independent queues."""
        return len(self.queue_names) > 1

    @property
    def arguments(self) -> int:
        """The number of arguments of the handler."""
        return 2 if self.transactional else 1

    @property
    def is_together(self) -> bool:
        """Whether the messages of a claim are handled in one call, or in parallel."""
        return self.concurrent or self.per == "batch"

    def _rules(self) -> Mapping[str, bool]:
        lease_seconds = 1 if self.lease_seconds is None else self.lease_seconds
        batch_size = 1 if self.batch_size is None else self.batch_size
        timeout_seconds = 1 if self.timeout_seconds is None else self.timeout_seconds
        pause = self.idle_min_seconds if _is_number(self.idle_min_seconds, 0) else 0
        names = self.queue_names
        return {
            "per must be 'message' or 'batch'": self.per in {"message", "batch"},
            "concurrent and transactional are mutually exclusive": not (
                self.concurrent and self.transactional
            ),
            "concurrent and per='batch' are mutually exclusive": not (
                self.concurrent and self.per == "batch"
            ),
            "queue_name must name at least one queue": bool(names),
            "queue_name must be 1 to 100 characters": all(
                _is_text(name, 100, least=1) for name in names
            ),
            "queue_name must not name a queue twice": len(names)
            == len({name for name in names if isinstance(name, str)}),
            "weights must be integers between 1 and 1000": all(
                _is_integer(weight, 1, 1000) for weight in self.weights or ()
            ),
            "several queues require one server URL, and no stripes": isinstance(
                self.queue_name, str
            )
            or (self.stripes is None and not isinstance(self.url, Mapping)),
            "handlers by queue must have the names of all queues, and no stripes": (
                not isinstance(self.handler, Mapping)
                or (self.stripes is None and set(self.handler) == set(names))
            ),
            "batch_size must be an integer between 1 and 1000": _is_integer(batch_size, 1, 1000),
            "lease_seconds must be an integer between 1 and 86400": _is_integer(
                lease_seconds, 1, 86400
            ),
            "timeout_seconds must be greater than 0": _is_number(timeout_seconds, 0)
            and timeout_seconds > 0,
            "threads must be an integer of at least 1": _is_integer(self.threads, 1),
            "processes must be an integer of at least 0": _is_integer(self.processes, 0),
            "idle_min_seconds must be greater than 0": pause > 0,
            "idle_max_seconds must be at least idle_min_seconds": (
                self.idle_max_seconds is None or _is_number(self.idle_max_seconds, pause)
            ),
            "maintain_seconds must be at least 0": _is_number(self.maintain_seconds, 0),
            "metrics_port must be an integer between 0 and 65535": (
                self.metrics_port is None or _is_integer(self.metrics_port, 0, 65535)
            ),
            "metrics_host must be an address": _is_text(self.metrics_host, 255, least=1),
            "first_stripe must be an integer of at least 0": self.first_stripe is None
            or _is_integer(self.first_stripe, 0),
            "listen and stripes are mutually exclusive": not (self.listen and self.stripes),
            "worker_name must be at most 200 characters with the numbers of process and thread": (
                self.worker_name is None or _is_text(self._longest_name(), 200)
            ),
        }

    def all_stripes(self) -> tuple[Stripe, ...]:
        """Return the stripes of the queue, or several queues; raises InvalidArgument."""
        names = self.queue_names
        if len(names) > 1:
            return tuple(Stripe(number, None, name) for number, name in enumerate(names))
        return stripes_of(names[0], self.stripes, servers_of(self.url))

    def first_thread_stripe(self) -> int | None:
        """Return the stripe where the first thread starts; the next threads start after it.

        None: with fewer threads than stripes, they take turns.
        """
        stripes = len(self.all_stripes())
        if self.first_stripe is not None or self.threads * max(self.processes, 1) < stripes:
            return self.first_stripe
        return random.randrange(stripes)  # noqa: S311 - no secret

    def _longest_name(self) -> Any:
        """Return the name of the last thread of the last process."""
        if not (self.worker_name and isinstance(self.worker_name, str)):
            return self.worker_name
        process = f"-{self.processes}" if self.processes else ""
        thread = f"/{self.threads}" if self.threads != 1 else ""
        return f"{self.worker_name}{process}{thread}"

    def longest_pause(self, default: float) -> float:
        """Return the longest pause between two polls: idle_max_seconds or `default`."""
        longest = default if self.idle_max_seconds is None else self.idle_max_seconds
        return max(longest, self.idle_min_seconds)

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.worker_name or default_name()

    @property
    def parallel_handlers(self) -> int:
        """How many handlers the worker runs in parallel."""
        if not self.concurrent:
            return self.threads
        return self.threads * (self.batch_size or TOGETHER)

    def name_of_thread(self, number: int) -> str:
        """Return the worker_name of thread `number`, from 1."""
        return self.name if self.threads == 1 else f"{self.name}/{number}"


def _is_integer(value: Any, least: int, most: float = math.inf) -> bool:
    try:
        return not isinstance(value, bool) and least <= index(value) <= most
    except TypeError:
        return False


def _is_number(value: Any, least: float) -> bool:
    """Whether it is a number of at least `least`; infinity counts, NaN does not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def _is_text(value: Any, most: int, *, least: int = 0) -> bool:
    return isinstance(value, str) and least <= len(value) <= most


class Context:
    """The shared state of a worker's threads."""

    def __init__(self, settings: Settings, *, is_restart: bool = False) -> None:
        """Prepare for these settings; open nothing.

        is_restart: whether to wait for the first connection too.
        """
        self.settings = settings
        self.is_restart = is_restart
        self.servers = [
            Server(name, url, SharedSession(url, **self._retries(self.may_wait)))
            for name, url in servers_of(settings.url).items()
        ]
        self.stripes = settings.all_stripes()
        self.has_several_queues = settings.has_several_queues
        self.first_thread_stripe = settings.first_thread_stripe()
        self.engine = _engine_of(self.servers)
        self.listening_engine = _listening(self.engine, settings)
        self.worker_id = uuid.uuid4().hex
        """Unique id of this run of the worker in this process."""
        self.counter = Counter()
        self.timeouts = Timeouts(settings.timeout_seconds)
        self.meter = None if settings.metrics_port is None else Meter()
        """The measures, if the worker serves metrics."""
        self.polling = Polling(settings.idle_min_seconds, settings.longest_pause(_POLLING_SECONDS))
        self.follower_seconds = 0.0
        """How long maintenance may pause while another process of the queue is the leader."""
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self._deadline = float("inf")
        self._has_warned = False

    def stop(self) -> None:
        """Let every thread finish its message and end."""
        if not self.stopping.is_set():
            self._deadline = time.monotonic() + _GRACE_SECONDS
            self.stopping.set()
            self.polling.end()

    def fail(self, error: BaseException) -> None:
        """Stop because of `error`, without waiting for the database; the first one counts."""
        if self.failure is None:
            self.failure = error
        self.stop()
        self._deadline = time.monotonic()

    def record_database_error(self) -> None:
        """Count a failed call that is retried."""
        if self.meter:
            self.meter.count("database_error")

    def warn_of_result(self, result: object) -> None:
        """Log, once per worker, a result of the handler without a meaning."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "the handler returned %.100s; expected None, Retry(...), Snooze(...) or Fail(...);"
                " the message is completed (logged once)",
                shown(result),
            )

    @property
    def has_several_servers(self) -> bool:
        """Whether there are other servers to work on while one is unreachable."""
        return len(self.servers) > 1

    def session(
        self,
        server: "Server",
        on_pause: Callable[[], None] = lambda: None,
        may_wait: Callable[[], bool] = lambda: True,
    ) -> OwnedSession:
        """Return a session, not yet open, that retries its calls while this worker lives.

        `on_pause` is called before every pause between two attempts. If `may_wait` returns false,
        the session raises ConnectionLost instead.
        """
        return OwnedSession(server.url, **self._retries(may_wait, on_pause))

    def _retries(
        self, may_wait: Callable[[], bool], on_pause: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        def sleep(seconds: float) -> None:
            on_pause()
            self.record_database_error()
            self.sleep_or_raise(seconds, may_wait)

        return {
            "reconnect_seconds": float("inf"),
            "retries_transient": True,
            "sleep": sleep,
        }

    def may_wait(self) -> bool:
        """Whether to wait for an unreachable server: not for one of several while stopping."""
        return not (self.has_several_servers and self.stopping.is_set())

    def sleep_or_raise(self, seconds: float, may_wait: Callable[[], bool] = lambda: True) -> None:
        """Wait; raise ConnectionLost if `may_wait` returns false, or stopping takes too long."""
        if not may_wait():
            raise ConnectionLost("the server is unreachable, or refuses calls temporarily")
        if not self.stopping.wait(seconds):
            return
        if time.monotonic() >= self._deadline:
            raise ConnectionLost("the worker stops without the database; its leases will expire")
        time.sleep(min(seconds, 0.5))

    def persist(self, call: Callable[[], _T], may_wait: Callable[[], bool] = lambda: True) -> _T:
        """Retry a call that is not on a session until it succeeds or fails permanently.

        The call must be safe to repeat. async_session.py lists which layer retries what.
        """
        backoff = Backoff(first=0.1, cap=5.0)
        while True:
            try:
                return call()
            except Exception as error:
                if not self.is_transient(error):
                    raise
                self.record_database_error()
                delay = backoff.next()
                log.warning("retrying in %.1f s: %s", delay, error)
            self.sleep_or_raise(delay, may_wait)

    def is_transient(self, error: Exception) -> bool:
        """Whether a retry may succeed after this error."""
        if isinstance(error, ConnectionLost):
            return False
        return (isinstance(error, RowqError) and error.retryable) or self.engine.is_transient(error)


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a worker; `shared` is the session of all its threads."""

    name: str | None
    url: str = field(repr=False)
    shared: SharedSession = field(repr=False, compare=False)
    server_health: ServerHealth = field(default_factory=ServerHealth, compare=False)


def _engine_of(servers: Sequence[Server]) -> Engine:
    """Return the engine of all servers; raises EngineUnknown."""
    engines = [engine_for_url(server.url) for server in servers]
    if len({engine.name for engine in engines}) > 1:
        raise EngineUnknown("all servers of a worker must have the same engine")
    return engines[0]


def _listening(engine: Engine, settings: Settings) -> ListeningEngine | None:
    """Return the engine if the worker listens, or tries to."""
    if settings.stripes is not None:
        return None
    is_wanted = not settings.drain if settings.listen is None else settings.listen
    if isinstance(engine, ListeningEngine):
        return engine if is_wanted else None
    if settings.listen:
        raise InvalidArgument("listen requires PostgreSQL; omit it to poll")
    return None


class StopSignals:
    """Context in which the first signal sets `asked`, and the second calls `at_once` and exits.

    The handler only sets a flag: a lock or a log call could wait for the code that it interrupts.
    Outside the main thread, where Python handles no signals, it does nothing. A process that a
    message's handler forks gets the previous signal handlers.
    """

    entered: "StopSignals | None" = None

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        """Call `at_once` at the second signal."""
        self.asked: signal.Signals | None = None
        self._at_once = at_once
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            StopSignals.entered = self
            self._previous = {number: signal.signal(number, self._handle) for number in _SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._previous:
            self.restore()
            StopSignals.entered = None

    def restore(self) -> None:
        """Restore the previous signal handlers."""
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            self._at_once()
            os._exit(128 + number)
        self.asked = signal.Signals(number)


class _Forks:
    """Blocking of signals in a thread that forks, until the new process has its own handlers.

    A signal in between would be handled as in the parent, or be lost.
    """

    def __init__(self) -> None:
        self._masks = threading.local()

    def begin(self) -> None:
        if StopSignals.entered:
            self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)

    def end_in_child(self) -> None:
        if StopSignals.entered:
            StopSignals.entered.restore()
            self.end()
            StopSignals.entered = None

    def end(self) -> None:
        if StopSignals.entered and hasattr(self._masks, "before"):
            signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)


if hasattr(os, "register_at_fork"):
    _forks = _Forks()
    os.register_at_fork(
        before=_forks.begin,
        after_in_child=_forks.end_in_child,
        after_in_parent=_forks.end,
    )
