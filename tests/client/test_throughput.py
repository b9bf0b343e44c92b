"""Inflow, outflow and failures per second, from samples and reports."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

import rowq
from rowq.messages import QueueStats, WorkerReport
from rowq.tools.throughput import Rates, Throughput, by_queue, listed_workers

Sample = tuple[float, QueueStats, list[WorkerReport]]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def stats(**counts: int) -> QueueStats:
    """Return a queue's stats with these counts."""
    nothing: dict[str, Any] = {field.name: None for field in fields(QueueStats)}
    nothing |= dict.fromkeys(("ready", "delayed", "leased", "dead"), 0)
    return QueueStats(**(nothing | {"queue_name": "q"} | counts))


def worker(completed: float, failed: float = 0.0, seen: float = 5.0) -> WorkerReport:
    """Return a worker's report with its rate and age."""
    return WorkerReport("q", "id", "w", "h", "v", 1, NOW, NOW, seen, 0, 0, completed, failed)


def rates(*samples: Sample, max_count: int = 1000) -> Rates:
    """Return the rates after samples with times."""
    throughput: Throughput[str] = Throughput(max_count)
    for at, found, workers in samples:
        throughput.record(at, {"q": found}, {"q": workers})
    return throughput.of("q")


def test_rates_of_live_workers_are_summed() -> None:
    found = rates((0, stats(), [worker(2, 1), worker(3, 0.5, seen=29), worker(9, 9, seen=31)]))
    assert found == Rates(2, None, 5, 1.5)


def test_outflow_is_unknown_without_live_workers() -> None:
    assert rates((0, stats(), [worker(9, seen=31)])) == Rates()
    assert Throughput[str](10).of("nowhere") == Rates()


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "blocked", "dead"])
def test_inflow_is_growth_plus_completions(state: str) -> None:
    samples = [(at, stats(**{state: 10 * at}), [worker(3)]) for at in range(3)]
    assert rates(*samples).arrived == 13


@pytest.mark.parametrize(
    ("samples", "arrived"),
    [
        # A change of state is not inflow, and inflow is never negative.
        ([(0, stats(ready=8), [worker(0)]), (2, stats(leased=5, dead=3), [worker(0)])], 0),
        ([(0, stats(ready=90), [worker(1)]), (1, stats(), [worker(1)])], 0),
        # Without reports it is at least the growth.
        ([(0, stats(), []), (2, stats(ready=8), [])], 4),
        ([(0, stats(ready=8), []), (2, stats(), [])], None),
        # The samples of 10 seconds count, or the last two; none older than a minute.
        ([(at, stats(ready=at * at), []) for at in range(0, 32, 2)], (30**2 - 20**2) / 10),
        ([(0, stats(), []), (15, stats(), []), (30, stats(ready=30), [])], 2),
        ([(0, stats(), []), (61, stats(ready=610), [])], None),
        ([(0, stats(), []), (60, stats(ready=600), [])], 10),
    ],
)
def test_inflow_of_samples(samples: list[Sample], arrived: float | None) -> None:
    assert rates(*samples).arrived == arrived


def test_inflow_is_unknown_if_a_count_was_cut_off() -> None:
    samples: list[Sample] = [(0, stats(ready=5), []), (1, stats(ready=10), [])]
    assert rates(*samples, max_count=11) == Rates(arrived=5)
    assert rates(*samples, max_count=10) == Rates()


def test_rates_are_rounded_to_a_tenth() -> None:
    assert Rates(1, 0.05001, None, 2.24).rounded() == Rates(1, 0.1, None, 2.2)


def test_workers_are_listed_by_queue_unless_denied() -> None:
    one = worker(1)
    assert by_queue([one, one]) == {"q": [one, one]}

    class Client:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def list_workers(self, _: str | None) -> list[WorkerReport]:
            raise self.error

    denied, other = PermissionError("denied"), ValueError("broken")
    denied.add_note('needs role rowq_monitor or rowq_admin: a DBA can run "..."')
    clients: list[Any] = [Client(denied), Client(other)]
    assert listed_workers(clients[0]) is None
    with pytest.raises(ValueError, match="broken"):
        listed_workers(clients[1])


def test_idle_reporting_worker_is_counted(connection: Any, queue_name: str) -> None:
    queue = rowq.Queue(connection)
    queue.create_queue(queue_name)
    queue.report_worker(queue_name, "w")
    workers = listed_workers(queue, queue_name)
    assert workers
    throughput: Throughput[str] = Throughput(100)
    found = {one.queue_name: one for one in queue.queue_stats(queue_name)}
    throughput.record(0, found, by_queue(workers))
    assert throughput.of(queue_name) == Rates(1, None, 0, 0)
