"""What all threads of one worker share: settings, counts, and when to stop."""

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
from rowq.worker.handlers import Handler, check_handler, check_importable, shown
from rowq.worker.meter import Counter, Meter
from rowq.worker.polling import Polling
from rowq.worker.stripes import ServerHealth, Stripe, servers_of, stripes_of
from rowq.worker.timeouts import Timeouts

_T = TypeVar("_T")

log = logging.getLogger("rowq.worker")

# A stopping worker tries for so long to hand in its results when the database is away.
_GRACE_SECONDS = 10.0
# The longest pause between two polls of an idle worker that is not told of messages.
_POLLING_SECONDS = 0.1
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def default_name() -> str:
    """Return what a worker is called that is given no name: host and process."""
    return f"{socket.gethostname()[:150]}:{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The arguments of Worker; worker.py describes them."""

    url: str | Mapping[str, str] = field(repr=False)
    queue_name: str
    handler: Handler | str
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
        """Refuse what cannot work, by the contract's ranges; raises InvalidArgument."""
        if not isinstance(self.handler, str):
            what = "messages" if self.per == "batch" else "message"
            check_handler(self.handler, self.arguments, what)
            if self.processes:
                check_importable(self.handler)
        for rule, holds in self._rules().items():
            if not holds:
                raise InvalidArgument(rule)
        self.all_stripes()

    @property
    def arguments(self) -> int:
        """With how many arguments the handler is called."""
        return 2 if self.transactional else 1

    @property
    def is_together(self) -> bool:
        """Whether the messages of a claim are handled in one call, or at the same time."""
        return self.concurrent or self.per == "batch"

    def _rules(self) -> Mapping[str, bool]:
        lease_seconds = 1 if self.lease_seconds is None else self.lease_seconds
        batch_size = 1 if self.batch_size is None else self.batch_size
        timeout_seconds = 1 if self.timeout_seconds is None else self.timeout_seconds
        pause = self.idle_min_seconds if _is_number(self.idle_min_seconds, 0) else 0
        return {
            "per must be 'message' or 'batch'": self.per in {"message", "batch"},
            "concurrent is for handlers of one message each, without transactional": not (
                self.concurrent and (self.transactional or self.per == "batch")
            ),
            "queue_name must be 1 to 100 characters": _is_text(self.queue_name, 100, least=1),
            "batch_size must be a whole number, 1 to 1000": _is_whole(batch_size, 1, 1000),
            "lease_seconds must be a whole number, 1 to 86400": _is_whole(lease_seconds, 1, 86400),
            "timeout_seconds must be above 0": _is_number(timeout_seconds, 0)
            and timeout_seconds > 0,
            "threads must be a whole number, 1 or more": _is_whole(self.threads, 1),
            "processes must be a whole number, 0 or more": _is_whole(self.processes, 0),
            "idle_min_seconds must be above 0": pause > 0,
            "idle_max_seconds must be at least idle_min_seconds": (
                self.idle_max_seconds is None or _is_number(self.idle_max_seconds, pause)
            ),
            "maintain_seconds must be 0 or more": _is_number(self.maintain_seconds, 0),
            "metrics_port must be a whole number, 0 to 65535": (
                self.metrics_port is None or _is_whole(self.metrics_port, 0, 65535)
            ),
            "metrics_host must be an address": _is_text(self.metrics_host, 255, least=1),
            "first_stripe must be a whole number, 0 or more": self.first_stripe is None
            or _is_whole(self.first_stripe, 0),
            "listen is for one queue: workers of a striped one poll": not (
                self.listen and self.stripes
            ),
            "worker_name must be up to 200 characters, the numbers of process and thread among"
            " them": self.worker_name is None or _is_text(self._longest_name(), 200),
        }

    def all_stripes(self) -> tuple[Stripe, ...]:
        """Return the stripes of the queue; raises InvalidArgument."""
        return stripes_of(self.queue_name, self.stripes, servers_of(self.url))

    def first_thread_stripe(self) -> int | None:
        """Return the stripe that the first thread asks first, the next threads start behind it.

        None: there seem to be fewer threads than stripes, so that they take turns.
        """
        stripes = len(self.all_stripes())
        if self.first_stripe is not None or self.threads * max(self.processes, 1) < stripes:
            return self.first_stripe
        return random.randrange(stripes)  # noqa: S311 - no secret

    def _longest_name(self) -> Any:
        """Return what the last thread of the last process will be called."""
        if not (self.worker_name and isinstance(self.worker_name, str)):
            return self.worker_name
        process = f"-{self.processes}" if self.processes else ""
        thread = f"/{self.threads}" if self.threads != 1 else ""
        return f"{self.worker_name}{process}{thread}"

    def longest_pause(self, otherwise: float) -> float:
        """Return the longest pause between two polls; `otherwise` where none was given."""
        longest = otherwise if self.idle_max_seconds is None else self.idle_max_seconds
        return max(longest, self.idle_min_seconds)

    @property
    def name(self) -> str:
        """What the worker is called."""
        return self.worker_name or default_name()

    @property
    def handlers_at_a_time(self) -> int:
        """How many handlers the worker runs at a time."""
        if not self.concurrent:
            return self.threads
        return self.threads * (self.batch_size or TOGETHER)

    def name_of_thread(self, number: int) -> str:
        """Return the worker_name that thread `number` (from 1) dequeues with."""
        return self.name if self.threads == 1 else f"{self.name}/{number}"


def _is_whole(value: Any, least: int, most: float = math.inf) -> bool:
    try:
        return not isinstance(value, bool) and least <= index(value) <= most
    except TypeError:
        return False


def _is_number(value: Any, least: float) -> bool:
    """Whether it is a number of at least so much; infinity is one, and NaN is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


def _is_text(value: Any, most: int, *, least: int = 0) -> bool:
    return isinstance(value, str) and least <= len(value) <= most


class Context:
    """The shared state of a worker's threads."""

    def __init__(self, settings: Settings, *, is_patient: bool = False) -> None:
        """Prepare for these settings, and open nothing.

        is_patient: whether the first connection, too, is waited for.
        """
        self.settings = settings
        self.is_patient = is_patient
        self.servers = [Server(name, url) for name, url in servers_of(settings.url).items()]
        self.stripes = settings.all_stripes()
        self.first_thread_stripe = settings.first_thread_stripe()
        self.engine = _engine_of(self.servers)
        self.listening_engine = _listening(self.engine, settings)
        self.worker_id = uuid.uuid4().hex
        """What tells this run of the worker, in this process, from any other one."""
        self.counter = Counter()
        self.timeouts = Timeouts(settings.timeout_seconds)
        self.meter = None if settings.metrics_port is None else Meter()
        """What is measured for metrics, where somebody may ask for them."""
        self.polling = Polling(settings.idle_min_seconds, settings.longest_pause(_POLLING_SECONDS))
        self.resting_seconds = 0.0
        """How long housekeeping may pause, as another process of the queue is elected for it."""
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self._give_up_at = float("inf")
        self._has_warned = False

    def stop(self) -> None:
        """Tell every thread to finish its message and end."""
        if not self.stopping.is_set():
            self._give_up_at = time.monotonic() + _GRACE_SECONDS
            self.stopping.set()
            self.polling.end()

    def fail(self, error: BaseException) -> None:
        """Stop because of `error`, without waiting for the database; the first one counts."""
        if self.failure is None:
            self.failure = error
        self.stop()
        self._give_up_at = time.monotonic()

    def note_trouble(self) -> None:
        """Count that the database did not do what it was asked to, and is asked again."""
        if self.meter:
            self.meter.count("database_error")

    def warn_of_result(self, result: object) -> None:
        """Log, once for each worker, a result of the handler's that means nothing."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "the handler returned %.100s: its message is completed; only None, Retry(...) and"
                " Fail(...) mean something (said once)",
                shown(result),
            )

    @property
    def has_several_servers(self) -> bool:
        """Whether there is work elsewhere while a server does not answer."""
        return len(self.servers) > 1

    def session(
        self,
        server: "Server",
        on_pause: Callable[[], None] = lambda: None,
        may_wait: Callable[[], bool] = lambda: True,
    ) -> OwnedSession:
        """Return a session, not yet open, that repeats its calls for as long as this worker lives.

        `on_pause` is called before every pause between two attempts; where `may_wait` says no, the
        session gives up instead, with ConnectionLost.
        """

        def sleep(seconds: float) -> None:
            on_pause()
            self.note_trouble()
            self.sleep_or_give_up(seconds, may_wait)

        return OwnedSession(
            server.url,
            reconnect_seconds=float("inf"),
            repeats_passing=True,
            sleep=sleep,
        )

    def sleep_or_give_up(self, seconds: float, may_wait: Callable[[], bool] = lambda: True) -> None:
        """Wait, shorter when stopping; raises ConnectionLost when stopping takes too long.

        It raises that at once where `may_wait` says no.
        """
        if not may_wait():
            raise ConnectionLost("its server does not answer, or refuses for now")
        if not self.stopping.wait(seconds):
            return
        if time.monotonic() >= self._give_up_at:
            raise ConnectionLost("the worker stops without the database; leases will run out")
        time.sleep(min(seconds, 0.5))

    def persist(self, call: Callable[[], _T], may_wait: Callable[[], bool] = lambda: True) -> _T:
        """Repeat a call that is none on a session, until it succeeds or fails for a lasting reason.

        The call must be safe to repeat. async_session.py says which layer repeats what.
        """
        backoff = Backoff(first=0.1, cap=5.0)
        while True:
            try:
                return call()
            except Exception as error:
                if not self.is_transient(error):
                    raise
                self.note_trouble()
                delay = backoff.next()
                log.warning("trying again in %.1f s: %s", delay, error)
            self.sleep_or_give_up(delay, may_wait)

    def is_transient(self, error: Exception) -> bool:
        """Whether what failed with this error may succeed in a moment."""
        if isinstance(error, ConnectionLost):
            return False
        return (isinstance(error, RowqError) and error.retryable) or self.engine.is_transient(error)


@dataclass(frozen=True, slots=True)
class Server:
    """One server of a worker, and whether it answers."""

    name: str | None
    url: str = field(repr=False)
    server_health: ServerHealth = field(default_factory=ServerHealth, compare=False)


def _engine_of(servers: Sequence[Server]) -> Engine:
    """Return the engine of all servers; raises EngineUnknown."""
    engines = [engine_for_url(server.url) for server in servers]
    if len({engine.name for engine in engines}) > 1:
        raise EngineUnknown("the servers of a worker must be of one engine")
    return engines[0]


def _listening(engine: Engine, settings: Settings) -> ListeningEngine | None:
    """Return the engine if the worker is to listen, or to try to."""
    if settings.stripes is not None:
        return None
    is_wanted = not settings.drain if settings.listen is None else settings.listen
    if isinstance(engine, ListeningEngine):
        return engine if is_wanted else None
    if settings.listen:
        raise InvalidArgument("listen is for PostgreSQL: other engines' workers only poll")
    return None


class StopSignals:
    """While entered, the first signal is kept in `asked`; the second calls `at_once` and exits.

    The handler only sets a flag: taking a lock or logging there could wait for the very code that
    it interrupts. Outside the main thread, where Python handles no signals, nothing is changed.
    A process that is forked meanwhile, by a message's handler, gets back what was there before.
    """

    entered: "StopSignals | None" = None

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        """Call `at_once` at the second signal; signals are handled from __enter__ on."""
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
        """Handle signals again as before."""
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self.asked:
            self._at_once()
            os._exit(128 + number)
        self.asked = signal.Signals(number)


class _Forks:
    """Blocks signals in a thread that forks until the new process handles them in its own way.

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
