"""What is shown, chosen by keys, and how it is drawn in the lines and columns of a terminal."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rowq.messages import Claim, DeadMessage, HealthCheck, QueueStats, WorkerReport
from rowq.tools.console.output import LEVEL_STYLES
from rowq.tools.terminal import cause_of, printable
from rowq.tools.throughput import Rates, Throughput, by_queue, is_live

ORDERS = ("name", "ready", "dead", "age")
_KEPT = 20
"""Looks that a trend is made of."""

_BARS = "▁▂▃▄▅▆▇█"
_WIDE = 90
"""Columns from which failures are shown, too."""
_WIDEST = 120
"""Columns from which a trend is shown, too."""
_AROUND = 4
"""Lines around those of a table: its head, a rule, and an empty one on either side."""
_COUNTS = ("ready", "delayed", "blocked", "leased", "dead")
_KEYS = "q end  p pause  s order: {order}  arrows, Enter one queue  d dead"
_KEYS_OF_ONE = "q end  p pause  d dead  Escape all queues"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one look has found.

    at: the moment, in seconds of a clock that only goes on. server: name and version.
    """

    at: float
    server: str
    queues: Sequence[QueueStats] = ()
    workers: Sequence[WorkerReport] = ()
    claims: Sequence[Claim] = ()
    checks: Sequence[HealthCheck] = ()
    dead: Sequence[DeadMessage] = ()


@dataclass(slots=True)
class View:
    """What a person has chosen.

    entered: the one queue that is shown. chosen: the marked line of all queues, from 0. max_count:
    no count is larger. error: why the last look failed.
    """

    entered: str | None = None
    max_count: int = 10_000
    chosen: int = 0
    order: str = ORDERS[0]
    is_paused: bool = False
    shows_dead: bool = False
    error: str | None = None
    _past: dict[str, deque[int]] = field(default_factory=dict)
    _throughput: Throughput[str] = field(init=False)

    def __post_init__(self) -> None:
        self._throughput = Throughput(self.max_count)

    def remember(self, snapshot: Snapshot) -> None:
        """Keep a look for trends."""
        names = {queue.queue_name for queue in snapshot.queues}
        self._past = {name: past for name, past in self._past.items() if name in names}
        for queue in snapshot.queues:
            self._past.setdefault(queue.queue_name, deque(maxlen=_KEPT)).append(queue.ready)
        queues = {queue.queue_name: queue for queue in snapshot.queues}
        self._throughput.note(snapshot.at, queues, by_queue(snapshot.workers))

    def ready_so_far(self, queue_name: str) -> Sequence[int]:
        """Return how many messages were ready at each look, the oldest first."""
        return list(self._past.get(queue_name, ()))

    def rates(self, queue_name: str) -> Rates:
        """Return how many messages a second come into a queue, leave it, and fail."""
        return self._throughput.of(queue_name)

    def ordered(self, queues: Sequence[QueueStats]) -> list[QueueStats]:
        """Return queues in the chosen order; what is more comes first."""
        if self.order == "name":
            return sorted(queues, key=lambda queue: queue.queue_name)
        attribute = {"age": "oldest_ready_seconds"}.get(self.order, self.order)
        return sorted(
            queues, key=lambda queue: (-(getattr(queue, attribute) or 0), queue.queue_name)
        )

    def press(self, key: str, queues: Sequence[QueueStats]) -> None:
        """Do what a key asks for; `queues` are those on the screen."""
        last = max(len(queues) - 1, 0)
        match key:
            case "p":
                self.is_paused = not self.is_paused
            case "s":
                self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
            case "up" | "k":
                self.chosen = max(self.chosen - 1, 0)
            case "down" | "j":
                self.chosen = min(self.chosen + 1, last)
            case "escape":
                self.entered, self.shows_dead = None, False
            case "enter" | "d":
                self._enter(queues, dead=key == "d")

    def _enter(self, queues: Sequence[QueueStats], *, dead: bool) -> None:
        if self.entered is not None:
            self.shows_dead = self.shows_dead is not dead
        elif queues:
            chosen = self.ordered(queues)[min(self.chosen, len(queues) - 1)]
            self.entered, self.shows_dead = chosen.queue_name, dead


def frame(view: View, snapshot: Snapshot, *, width: int, height: int | None) -> RenderableType:
    """Return a look as rich draws it, in no more than so many lines; None is as many as there are.

    Raises nothing: what has no room is counted.
    """
    queues = view.ordered(snapshot.queues)
    checks = [check for check in snapshot.checks if view.entered in (None, check.queue_name)]
    tables = (queues, snapshot.workers, snapshot.claims, snapshot.dead)
    rooms = _rooms(height, [*map(len, tables)], len(checks))
    chosen = min(view.chosen, max(len(queues) - 1, 0))
    first = min(max(chosen - rooms[0] + 1, 0), max(len(queues) - rooms[0], 0))
    shown = queues[first : first + rooms[0]]
    parts: list[RenderableType] = [
        _head(view, snapshot),
        _queues(view, shown, chosen - first, width),
    ]
    left_out = len(queues) - len(shown)
    if left_out:
        parts.append(_line(f"{left_out} more queues", "dim"))
    if snapshot.workers:
        parts.append(_workers(snapshot.workers[: rooms[1]]))
    if snapshot.claims:
        parts.append(_claims(snapshot.claims[: rooms[2]]))
    if snapshot.dead:
        parts.append(_dead(snapshot.dead[: rooms[3]]))
    parts += [_check(check) for check in checks[: rooms[4]]]
    if height is not None:
        keys = _KEYS if view.entered is None else _KEYS_OF_ONE
        parts.append(_line(keys.format(order=view.order), "reverse"))
    return Group(*parts)


def _rooms(height: int | None, tables: Sequence[int], checks: int) -> list[int]:
    """Return the lines for each of these; what one does not need is the next one's.

    tables: how many rows each would have. Queues have a table even where there is none.
    """
    wanted = [*tables, checks]
    if height is None:
        return wanted
    # Take off the head, the keys, a line for what is left out, and what is around the tables.
    left = height - 3 - _AROUND * (1 + sum(map(bool, tables[1:])))
    rooms = [min(count, max(left // len(wanted), 1)) for count in wanted]
    for place, count in enumerate(wanted):
        rooms[place] += max(min(left - sum(rooms), count - rooms[place]), 0)
    return rooms


def _head(view: View, snapshot: Snapshot) -> Text:
    now = datetime.now(UTC).strftime("%H:%M:%S UTC")
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append("rowq top", "bold").append(f"  {now}")
    if view.is_paused:
        head.append("  paused", "bold yellow")
    if view.shows_dead and not snapshot.dead:
        head.append("  no dead messages", "yellow")
    if view.error is not None:
        head.append(f"  {printable(view.error)}", "bold red")
    return head.append(f"  {printable(snapshot.server)}")


def _queues(view: View, queues: Sequence[QueueStats], chosen: int, width: int) -> Table:
    heads = [*_COUNTS, "oldest", "in/s", "out/s"]
    table = _table(["queue"], [*heads, "failed/s"] if width >= _WIDE else heads)
    if width >= _WIDEST:
        table.add_column("ready so far", no_wrap=True)
    for place, queue in enumerate(queues):
        rates = view.rates(queue.queue_name)
        cells = [
            Text(printable(queue.queue_name) + (" (paused)" if queue.is_paused else "")),
            *(_count(getattr(queue, name), view.max_count) for name in _COUNTS),
            Text("-" if queue.oldest_ready_seconds is None else _span(queue.oldest_ready_seconds)),
            *map(_rate, (rates.arrived, rates.completed)),
        ]
        if width >= _WIDE:
            cells.append(_rate(rates.failed))
        if width >= _WIDEST:
            cells.append(Text(_bars(view.ready_so_far(queue.queue_name))))
        is_marked = view.entered is None and place == chosen
        table.add_row(*cells, style="reverse" if is_marked else "")
    return table


def _workers(workers: Sequence[WorkerReport]) -> Table:
    table = _table(["worker", "queue", "host", "version"], ["threads", "out/s", "last seen"])
    for worker in workers:
        texts = (worker.worker_name, worker.queue_name, worker.host_name, worker.worker_version)
        table.add_row(
            *(Text(printable(text or "-")) for text in texts),
            Text(f"{worker.threads:,}"),
            _rate(worker.completed_per_second),
            Text(_span(worker.last_seen_seconds)),
            style="" if is_live(worker) else LEVEL_STYLES["warning"],
        )
    return table


def _claims(claims: Sequence[Claim]) -> Table:
    table = _table(["at work", "queue"], ["claim", "messages", "lease left"])
    for claim in claims:
        left = claim.lease_left_seconds
        table.add_row(
            Text(printable(claim.worker_name or "-")),
            Text(printable(claim.queue_name)),
            Text(str(claim.claim_id)),
            Text(f"{claim.message_count:,}"),
            Text(_span(left)),
            style=LEVEL_STYLES["warning"] if left < 0 else "",
        )
    return table


def _dead(messages: Sequence[DeadMessage]) -> Table:
    table = _table(["last error", "type"], ["dead message", "attempt"])
    for message in messages:
        table.add_row(
            Text(printable(cause_of(message.last_error))),
            Text(printable(message.message_type or "-")),
            Text(str(message.message_id)),
            Text(str(message.attempt)),
        )
    return table


def _check(check: HealthCheck) -> Text:
    place = check.queue_name or check.check_name.replace("_", " ")
    words = printable(f"{place}: {check.finding}")
    return _line(f"{check.status:<8}  {words}", LEVEL_STYLES.get(check.status, ""))


def _table(texts: Iterable[str], numbers: Iterable[str]) -> Table:
    """Return a table of columns of text, which give way, and of numbers, which do not."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True, expand=True)
    for head in texts:
        table.add_column(head, no_wrap=True, overflow="ellipsis", ratio=1)
    for head in numbers:
        table.add_column(head, justify="right", no_wrap=True, min_width=min(len(head), 7))
    return table


def _line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _count(number: int | None, max_count: int) -> Text:
    if number is None:
        return Text("-")
    return Text(f"{number:,}+" if number >= max_count else f"{number:,}")


def _rate(a_second: float | None) -> Text:
    return Text("-" if a_second is None else f"{a_second:,.1f}")


def _span(seconds: float) -> str:
    """Return a length of time in its largest unit that is at least 2."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _bars(counts: Sequence[int]) -> str:
    """Return counts as bars, of which the greatest has the whole height."""
    greatest = max(counts, default=0) or 1
    return "".join(_BARS[count * (len(_BARS) - 1) // greatest] for count in counts)
