"""What the demo found out, and whether it agrees with the file."""

from collections.abc import Mapping
from dataclasses import dataclass

from rowq.tools.demo.killer import Killed


@dataclass(frozen=True, slots=True)
class Report:
    """The demo's result; money in cents, times in seconds."""

    orders_in: int
    orders_done: int
    orders_redelivered: int
    orders_left: int
    expected_cents: Mapping[str, int]
    booked_cents: Mapping[str, int]
    enqueue_seconds: float
    drain_seconds: float
    killed: Killed | None

    @property
    def enqueued_per_second(self) -> float:
        """Messages enqueued per second."""
        return self.orders_in / self.enqueue_seconds

    @property
    def drained_per_second(self) -> float:
        """Orders booked per second, the killed worker's lease and the workers' start included."""
        return self.orders_done / self.drain_seconds

    def faults(self) -> list[str]:
        """Return everything that is not as it must be; nothing when all is well."""
        if self.orders_left:
            done = f"{self.orders_done} of {self.orders_in} orders are done"
            return [f"{done}, {self.orders_left} are still in the queue or dead"]
        found = different_months(self.expected_cents, self.booked_cents)
        if self.orders_done != self.orders_in:
            found.append(f"{self.orders_in} orders in, but {self.orders_done} done")
        if self.killed is None:
            found.append("no worker was killed")
        elif not self.orders_redelivered:
            found.append("a worker was killed, but no order was redelivered")
        return found


def different_months(expected: Mapping[str, int], booked: Mapping[str, int]) -> list[str]:
    """Return a sentence for every month whose sums differ."""
    return [
        f"{month}: {dollars(expected.get(month, 0))} in the file,"
        f" {dollars(booked.get(month, 0))} booked"
        for month in sorted(expected.keys() | booked.keys())
        if expected.get(month) != booked.get(month)
    ]


def dollars(cents: int) -> str:
    """Return cents as dollars for people, such as 1,234.50."""
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100:,}.{abs(cents) % 100:02}"
