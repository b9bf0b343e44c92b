"""Stripes of a queue: their names and servers, the stripe of a key, the order of polling.

A striped queue is several queues, its stripes: "orders/0", "orders/1" and so on, on each of its
servers. Only the clients know that they belong together.
"""

import hashlib
import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from rowq.backoff import Backoff
from rowq.errors import InvalidArgument
from rowq.messages import HealthCheck, Message, QueueStats

_NAME_LENGTH = 100
_MOST_STRIPES = 1000
# Backoff after an unreachable server.
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 15.0
# Every tenth call starts at a random stripe, so that a stripe where no worker starts is not starved
# by the others.
_CALLS_OF_A_ROUND = 10


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe of a striped queue; a queue that is not striped has one, with its own name.

    number: from 0, over all servers. server: its name in the mapping of URLs, or None.
    """

    number: int
    server: str | None
    queue_name: str

    def __str__(self) -> str:
        """Return the queue's name and its server."""
        return self.queue_name if self.server is None else f"{self.queue_name} on {self.server}"


@dataclass(frozen=True, slots=True)
class StripeClaim:
    """A claim of a striped queue; claim ids are unique within a stripe only."""

    stripe: Stripe
    claim_id: int


@dataclass(frozen=True, slots=True)
class StripedEnqueued:
    """An enqueued message and its stripe; message ids are unique within a stripe only."""

    stripe: Stripe
    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class StripedMessage(Message):
    """A message leased to a claim of a stripe."""

    stripe: Stripe

    @classmethod
    def of(cls, message: Message, stripe: Stripe) -> "StripedMessage":
        """Return a message of a stripe."""
        return cls(*(*_VALUES(message), stripe))

    @property
    def claim(self) -> StripeClaim:
        """The claim, for the finishing methods."""
        return StripeClaim(self.stripe, self.claim_id)


_VALUES = attrgetter(*Message.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class StripeStats:
    """The queue_stats of a stripe, or the `error` of an unreachable server."""

    stripe: Stripe
    stats: QueueStats | None
    error: str | None

    @property
    def is_drained(self) -> bool:
        """Whether no message is left whose key counts.

        Dead messages hold their group only if group_after_dead is "hold".
        """
        if self.stats is None:
            return False
        stats = self.stats
        held = stats.dead if stats.group_after_dead == "hold" else 0
        return not (stats.ready or stats.delayed or stats.leased or stats.blocked or held)


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """A health check of a server."""

    server: str | None
    check: HealthCheck


def servers_of(urls: str | Mapping[str, str]) -> dict[str | None, str]:
    """Return the servers' URLs by name; a single URL has the name None."""
    if not isinstance(urls, Mapping):
        return {None: urls}
    servers: dict[str | None, str] = {}
    servers.update(urls.items())
    return servers


def server_down(error: Exception) -> HealthCheck:
    """Return the health check of an unreachable server."""
    return HealthCheck("server_answers", None, "critical", None, str(error))


def stripes_of(
    queue_name: str, stripes: int | None, servers: Iterable[str | None]
) -> tuple[Stripe, ...]:
    """Return the stripes of a queue by number; raises InvalidArgument.

    Number s + k * servers is stripe k on server s, with servers ordered by name. So neighbours are
    on different servers, and no stripe moves if stripes or servers are added.

    stripes: stripes per server; None: the queue is not striped.
    """
    names = sorted(servers, key=str)
    if stripes is None:
        if names != [None]:
            raise InvalidArgument("several server URLs require stripes")
        return (Stripe(0, None, queue_name),)
    is_integer = isinstance(stripes, int) and not isinstance(stripes, bool)
    if not is_integer or not 1 <= stripes <= _MOST_STRIPES:
        raise InvalidArgument(
            f"stripes must be an integer between 1 and {_MOST_STRIPES}, got {stripes}"
        )
    longest = _NAME_LENGTH - len(f"/{stripes - 1}")
    if not 1 <= len(queue_name) <= longest:
        raise InvalidArgument(
            f"queue_name must be 1 to {longest} characters with {stripes} stripes,"
            f" got {len(queue_name)}"
        )
    return tuple(
        Stripe(len(names) * stripe + position, name, f"{queue_name}/{stripe}")
        for stripe in range(stripes)
        for position, name in enumerate(names)
    )


def number_of_key(key: str, stripes: int) -> int:
    """Return the number of the stripe of a key, which is the same in every language.

    It is the first four bytes of the SHA-256 of the key in UTF-8, as a big-endian integer, modulo
    the number of stripes.
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % stripes


class Round:
    """The order in which one consumer polls the stripes.

    A consumer with a first stripe starts there; others take turns. A round continues after a stripe
    that returned less than a full batch. Every tenth round starts at a random stripe.
    """

    def __init__(self, stripes: Sequence[Stripe], first_stripe: int | None) -> None:
        """Poll these stripes; first_stripe is the consumer's number, modulo the stripes."""
        self._stripes = tuple(stripes)
        self._first_stripe = None if first_stripe is None else first_stripe % len(self._stripes)
        self._start = self._first_stripe or 0
        if self._first_stripe is None:
            self._start = random.randrange(len(stripes))  # noqa: S311
        self._calls = 0

    def next(self) -> tuple[Stripe, ...]:
        """Return all stripes in the order of the next round."""
        self._calls += 1
        is_random = self._calls % _CALLS_OF_A_ROUND == 0
        start = random.randrange(len(self._stripes)) if is_random else self._start  # noqa: S311
        return self._stripes[start:] + self._stripes[:start]

    def record(self, stripe: Stripe, *, is_full: bool) -> None:
        """Record the last polled stripe, and whether it returned a full batch."""
        following = (stripe.number + 1) % len(self._stripes)
        self._start = following
        if is_full and self._first_stripe is not None:
            self._start = self._first_stripe


class QueueOrder:
    """The order in which one consumer polls several independent queues.

    Without weights it is strict: every claim comes from the first queue that has a message. With
    weights the queues with messages take smooth weighted turns, a claim each; a queue without one
    loses no turn and saves none.
    """

    def __init__(self, queues: Sequence[Stripe], weights: Sequence[int] | None) -> None:
        """Poll these queues; weights are in their order."""
        self._queues = tuple(queues)
        self._weights = tuple(weights or ())
        self._credits = [0] * len(queues)

    def next(self) -> tuple[Stripe, ...]:
        """Return all queues in the order to poll them."""
        if not self._weights:
            return self._queues
        return tuple(sorted(self._queues, key=lambda queue: -self._next_credit(queue)))

    def record(self, queue: Stripe, *, is_full: bool) -> None:
        """Record the queue of a claim: those before it in the order were empty."""
        del is_full
        if not self._weights:
            return
        order = self.next()
        found = order[order.index(queue) :]
        for other in found:
            self._credits[other.number] += self._weights[other.number]
        self._credits[queue.number] -= sum(self._weights[other.number] for other in found)

    def _next_credit(self, queue: Stripe) -> int:
        return self._credits[queue.number] + self._weights[queue.number]


class ServerHealth:
    """Track whether a server is reachable. Thread-safe."""

    def __init__(self) -> None:
        self._backoff = Backoff(first=_FIRST_PAUSE_SECONDS, cap=_LONGEST_PAUSE_SECONDS)
        self._retry_at = 0.0
        self._lock = threading.Lock()

    @property
    def is_backing_off(self) -> bool:
        """Whether to skip the server for now."""
        return time.monotonic() < self._retry_at

    def record_failure(self) -> None:
        """Record a failed call; failures while backing off do not extend the pause."""
        with self._lock:
            if not self.is_backing_off:
                self._retry_at = time.monotonic() + self._backoff.next()

    def record_success(self) -> None:
        """Record an answer."""
        with self._lock:
            if self._retry_at:
                self._retry_at = 0.0
                self._backoff.reset()
