"""The screen of rowq top: the user's choices, and how they are drawn."""

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
"""Number of snapshots in a trend."""

_BARS = "▁▂▃▄▅▆▇█"
_WIDE = 90
"""Width from which failures are shown."""
_WIDEST = 120
"""Width from which a trend is shown."""
_AROUND = 4
"""Lines of a table besides its rows: the header, a rule and two empty lines."""
_COUNTS = ("ready", "delayed", "blocked", "leased", "dead")
_KEYS = "q quit  p pause  s order: {order}  arrows, Enter one queue  d dead"
_KEYS_OF_ONE = "q quit  p pause  d dead  Escape all queues"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of the queues at the monotonic time `at`; `server` is a name and a version."""

    at: float
    server: str
    queues: Sequence[QueueStats] = ()
    workers: Sequence[WorkerReport] = ()
    claims: Sequence[Claim] = ()
    checks: Sequence[HealthCheck] = ()
    dead: Sequence[DeadMessage] = ()


@dataclass(slots=True)
class View:
    """The user's choices.

    entered: the only queue shown. chosen: the selected row of all queues, from 0. max_count: the
    limit of counts. error: why the last snapshot failed.
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
        """Add a snapshot to trends and rates."""
        names = {queue.queue_name for queue in snapshot.queues}
        self._past = {name: past for name, past in self._past.items() if name in names}
        for queue in snapshot.queues:
            self._past.setdefault(queue.queue_name, deque(maxlen=_KEPT)).append(queue.ready)
        queues = {queue.queue_name: queue for queue in snapshot.queues}
        self._throughput.record(snapshot.at, queues, by_queue(snapshot.workers))

    def ready_trend(self, queue_name: str) -> Sequence[int]:
        """Return the number of ready messages in each snapshot, oldest first."""
        return list(self._past.get(queue_name, ()))

    def rates(self, queue_name: str) -> Rates:
        """Return a queue's rates of arrivals, completions and failures."""
        return self._throughput.of(queue_name)

    def ordered(self, queues: Sequence[QueueStats]) -> list[QueueStats]:
        """Return queues in the chosen order, larger numbers first."""
        if self.order == "name":
            return sorted(queues, key=lambda queue: queue.queue_name)
        attribute = {"age": "oldest_ready_seconds"}.get(self.order, self.order)
        return sorted(
            queues, key=lambda queue: (-(getattr(queue, attribute) or 0), queue.queue_name)
        )

    def press(self, key: str, queues: Sequence[QueueStats]) -> None:
        """Handle a key; `queues` are those on the screen."""
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
    """Draw a snapshot in at most `height` lines, None for no limit; count the queues left out."""
    queues = view.ordered(snapshot.queues)
    checks = [check for check in snapshot.checks if view.entered in (None, check.queue_name)]
    tables = (queues, snapshot.workers, snapshot.claims, snapshot.dead)
    limits = _limits(height, [*map(len, tables)], len(checks))
    chosen = min(view.chosen, max(len(queues) - 1, 0))
    first = min(max(chosen - limits[0] + 1, 0), max(len(queues) - limits[0], 0))
    shown = queues[first : first + limits[0]]
    parts: list[RenderableType] = [
        _head(view, snapshot),
        _queues(view, shown, chosen - first, width),
    ]
    left_out = len(queues) - len(shown)
    if left_out:
        parts.append(_line(f"{left_out} more queues", "dim"))
    if snapshot.workers:
        parts.append(_workers(snapshot.workers[: limits[1]]))
    if snapshot.claims:
        parts.append(_claims(snapshot.claims[: limits[2]]))
    if snapshot.dead:
        parts.append(_dead(snapshot.dead[: limits[3]]))
    parts += [_check(check) for check in checks[: limits[4]]]
    if height is not None:
        keys = _KEYS if view.entered is None else _KEYS_OF_ONE
        parts.append(_line(keys.format(order=view.order), "reverse"))
    return Group(*parts)


def _limits(height: int | None, tables: Sequence[int], checks: int) -> list[int]:
    """Divide the lines among tables of these numbers of rows and the checks.

    Lines that one does not need go to the next. The table of queues is shown even if empty.
    """
    wanted = [*tables, checks]
    if height is None:
        return wanted
    # Subtract the header, the keys, the line for queues left out, and the lines around the tables.
    left = height - 3 - _AROUND * (1 + sum(map(bool, tables[1:])))
    limits = [min(count, max(left // len(wanted), 1)) for count in wanted]
    for index, count in enumerate(wanted):
        limits[index] += max(min(left - sum(limits), count - limits[index]), 0)
    return limits


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
        table.add_column("ready, trend", no_wrap=True)
    for index, queue in enumerate(queues):
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
            cells.append(Text(_bars(view.ready_trend(queue.queue_name))))
        is_selected = view.entered is None and index == chosen
        table.add_row(*cells, style="reverse" if is_selected else "")
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
    table = _table(["claimed by", "queue"], ["claim", "messages", "lease left"])
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
    subject = check.queue_name or check.check_name.replace("_", " ")
    text = printable(f"{subject}: {check.finding}")
    return _line(f"{check.status:<8}  {text}", LEVEL_STYLES.get(check.status, ""))


def _table(texts: Iterable[str], numbers: Iterable[str]) -> Table:
    """Return a table with columns of text, which shrink, and of numbers, which do not."""
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
    """Return a duration in the largest unit of which it has at least 2."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if abs(seconds) >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _bars(counts: Sequence[int]) -> str:
    """Return counts as bars, the greatest with full height."""
    greatest = max(counts, default=0) or 1
    return "".join(_BARS[count * (len(_BARS) - 1) // greatest] for count in counts)
