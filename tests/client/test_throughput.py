"""Inflow, outflow and failures per second, from samples and reports."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

import rowq
from rowq.messages import QueueStats, WorkerReport
from rowq.tools.throughput import Rates, Throughput, by_queue, listed_workers

Look = tuple[float, QueueStats, list[WorkerReport]]
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def stats(**counts: int) -> QueueStats:
    """Return a queue's stats with these counts."""
    nothing: dict[str, Any] = {field.name: None for field in fields(QueueStats)}
    nothing |= dict.fromkeys(("ready", "delayed", "leased", "dead"), 0)
    return QueueStats(**(nothing | {"queue_name": "q"} | counts))


def worker(completed: float, failed: float = 0.0, seen: float = 5.0) -> WorkerReport:
    """Return a worker's report with its rate and age."""
    return WorkerReport("q", "id", "w", "h", "v", 1, NOW, NOW, seen, 0, 0, completed, failed)


def rates(*looks: Look, max_count: int = 1000) -> Rates:
    """Return the rates after samples with times."""
    throughput: Throughput[str] = Throughput(max_count)
    for at, found, workers in looks:
        throughput.note(at, {"q": found}, {"q": workers})
    return throughput.of("q")


def test_rates_of_live_workers_are_summed() -> None:
    found = rates((0, stats(), [worker(2, 1), worker(3, 0.5, seen=29), worker(9, 9, seen=31)]))
    assert found == Rates(2, None, 5, 1.5)


def test_outflow_is_unknown_without_live_workers() -> None:
    assert rates((0, stats(), [worker(9, seen=31)])) == Rates()
    assert Throughput[str](10).of("nowhere") == Rates()


@pytest.mark.parametrize("state", ["ready", "delayed", "leased", "blocked", "dead"])
def test_inflow_is_growth_plus_completions(state: str) -> None:
    looks = [(at, stats(**{state: 10 * at}), [worker(3)]) for at in range(3)]
    assert rates(*looks).arrived == 13


def test_state_changes_are_not_inflow() -> None:
    looks = [(0, stats(ready=8), [worker(0)]), (2, stats(leased=5, dead=3), [worker(0)])]
    assert rates(*looks).arrived == 0


def test_inflow_is_never_negative() -> None:
    assert rates((0, stats(ready=90), [worker(1)]), (1, stats(), [worker(1)])).arrived == 0


def test_inflow_without_reports_is_growth() -> None:
    assert rates((0, stats(), []), (2, stats(ready=8), [])) == Rates(arrived=4)
    assert rates((0, stats(ready=8), []), (2, stats(), [])) == Rates()


def test_inflow_is_unknown_if_a_count_was_cut_off() -> None:
    looks: list[Look] = [(0, stats(ready=5), []), (1, stats(ready=10), [])]
    assert rates(*looks, max_count=11).arrived == 5
    assert rates(*looks, max_count=10).arrived is None


def test_inflow_uses_samples_of_ten_seconds() -> None:
    looks: list[Look] = [(at, stats(ready=at * at), []) for at in range(0, 40, 2)]
    assert rates(*looks, max_count=10_000).arrived == (38**2 - 28**2) / 10
    assert rates((0, stats(), []), (15, stats(), []), (30, stats(ready=30), [])).arrived == 2


def test_sample_older_than_a_minute_is_ignored() -> None:
    assert rates((0, stats(), []), (61, stats(ready=610), [])).arrived is None
    assert rates((0, stats(), []), (60, stats(ready=600), [])).arrived == 10


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
    throughput.note(0, found, by_queue(workers))
    assert throughput.of(queue_name) == Rates(1, None, 0, 0)
