"""The stripes of a queue: where they are, which one a key goes to, in what order to ask them.

A striped queue is several queues, its stripes: "orders/0", "orders/1" and so on, on each of its
servers. The database knows nothing of it; what belongs together is only known to the clients.
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
# A server that has not answered is left alone for so long, growing with each failure.
_FIRST_AWAY_SECONDS = 0.5
_LONGEST_AWAY_SECONDS = 15.0
# Every tenth call starts at a random stripe, so that a stripe that no worker starts at does not
# wait until the others are empty.
_CALLS_OF_A_ROUND = 10


@dataclass(frozen=True, slots=True)
class Stripe:
    """A stripe of a striped queue; a queue that is not striped has one, of its own name.

    number: counted from 0 over all servers. server: its name in the mapping of URLs, None where one
    URL was given.
    """

    number: int
    server: str | None
    queue_name: str

    def __str__(self) -> str:
        """Return the queue's name, and where it is."""
        return self.queue_name if self.server is None else f"{self.queue_name} on {self.server}"


@dataclass(frozen=True, slots=True)
class StripeClaim:
    """A claim of a striped queue: claim ids are counted in each stripe by itself."""

    stripe: Stripe
    claim_id: int


@dataclass(frozen=True, slots=True)
class StripedEnqueued:
    """A message that was handed over, and the stripe that it is in, which its id belongs to."""

    stripe: Stripe
    message_id: int
    outcome: str


@dataclass(frozen=True, slots=True)
class StripedMessage(Message):
    """A message leased to a claim of a stripe."""

    stripe: Stripe

    @classmethod
    def of(cls, message: Message, stripe: Stripe) -> "StripedMessage":
        """Return a message that a stripe has delivered."""
        return cls(*(*_VALUES(message), stripe))

    @property
    def claim(self) -> StripeClaim:
        """The claim, for the calls that finish messages."""
        return StripeClaim(self.stripe, self.claim_id)


_VALUES = attrgetter(*Message.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class StripeStats:
    """What queue_stats says of a stripe; `error` instead where its server does not answer."""

    stripe: Stripe
    stats: QueueStats | None
    error: str | None

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left of which a key may still count.

        Dead messages hold a group only where the queue says so.
        """
        if self.stats is None:
            return False
        stats = self.stats
        held = stats.dead if stats.group_after_dead == "hold" else 0
        return not (stats.ready or stats.delayed or stats.leased or stats.blocked or held)


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """A finding of health on a server; one that does not answer is a critical finding."""

    server: str | None
    check: HealthCheck


def servers_of(urls: str | Mapping[str, str]) -> dict[str | None, str]:
    """Return the URLs of servers by their names; that of an only one by None."""
    if isinstance(urls, str):
        return {None: urls}
    servers: dict[str | None, str] = {}
    servers.update(urls.items())
    return servers


def server_away(error: Exception) -> HealthCheck:
    """Return the finding that a server does not answer."""
    return HealthCheck("server_answers", None, "critical", None, str(error))


def stripes_of(
    queue_name: str, stripes: int | None, servers: Iterable[str | None]
) -> tuple[Stripe, ...]:
    """Return the stripes of a queue in the order of their numbers; raises InvalidArgument.

    Part number s + k * servers is stripe k on server s, the servers in the order of their names. So
    neighbours are on different servers, and no stripe moves when there are more of either.

    stripes: how many stripes each server has; None: the queue is not striped.
    """
    names = sorted(servers, key=str)
    if stripes is None:
        if names != [None]:
            raise InvalidArgument("several servers are for a striped queue: give stripes")
        return (Stripe(0, None, queue_name),)
    is_whole = isinstance(stripes, int) and not isinstance(stripes, bool)
    if not is_whole or not 1 <= stripes <= _MOST_STRIPES:
        raise InvalidArgument(f"stripes must be a whole number, 1 to {_MOST_STRIPES}")
    longest = f"{queue_name}/{stripes - 1}"
    if not queue_name or len(longest) > _NAME_LENGTH:
        raise InvalidArgument(
            f"queue_name must be 1 to {_NAME_LENGTH} characters, /{stripes - 1} of the last stripe"
            " among them"
        )
    return tuple(
        Stripe(len(names) * stripe + place, name, f"{queue_name}/{stripe}")
        for stripe in range(stripes)
        for place, name in enumerate(names)
    )


def number_of_key(key: str, stripes: int) -> int:
    """Return the number of the stripe that a key goes to, the same in every language.

    It is that of the first four bytes of the SHA-256 of its UTF-8, the highest byte first, modulo
    the number of stripes.
    """
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:4], "big") % stripes


class Round:
    """The order in which one consumer asks the stripes.

    A consumer with a first stripe starts there; another takes turns. Either goes on behind a stripe
    that gave less than was asked for, and each tenth time starts anywhere.
    """

    def __init__(self, stripes: Sequence[Stripe], first_stripe: int | None) -> None:
        """Ask these stripes; first_stripe is a consumer's number, of any size."""
        self._stripes = tuple(stripes)
        self._first_stripe = None if first_stripe is None else first_stripe % len(self._stripes)
        self._start = self._first_stripe or 0
        if self._first_stripe is None:
            self._start = random.randrange(len(stripes))  # noqa: S311
        self._calls = 0

    def next(self) -> tuple[Stripe, ...]:
        """Return all stripes, in the order in which to ask them this time."""
        self._calls += 1
        is_drawn = self._calls % _CALLS_OF_A_ROUND == 0
        start = random.randrange(len(self._stripes)) if is_drawn else self._start  # noqa: S311
        return self._stripes[start:] + self._stripes[:start]

    def note(self, stripe: Stripe, *, is_full: bool) -> None:
        """Note that a stripe was the last to be asked, and whether it gave all that it was to."""
        behind = (stripe.number + 1) % len(self._stripes)
        self._start = self._first_stripe if is_full and self._first_stripe is not None else behind


class ServerHealth:
    """Whether a server answers, as far as calls have shown; several threads may share it."""

    def __init__(self) -> None:
        self._backoff = Backoff(first=_FIRST_AWAY_SECONDS, cap=_LONGEST_AWAY_SECONDS)
        self._again_at = 0.0
        self._lock = threading.Lock()

    @property
    def is_backing_off(self) -> bool:
        """Whether it is to be left alone for now."""
        return time.monotonic() < self._again_at

    def record_failure(self) -> None:
        """Note that it did not answer; what fails while it is left alone makes that no longer."""
        with self._lock:
            if not self.is_backing_off:
                self._again_at = time.monotonic() + self._backoff.next()

    def record_success(self) -> None:
        """Note that it did."""
        with self._lock:
            if self._again_at:
                self._again_at = 0.0
                self._backoff.reset()
