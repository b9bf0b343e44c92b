"""The sections of RESULTS.md about other queues."""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness.measure import Target, spread
from benchmarks.harness.report import spread_text, table
from benchmarks.harness.results import Results
from benchmarks.studies.peers.results import COMPARED, FLOOR, OWN, PeerResults

_BY_SYSTEM = {
    ("steady", "latency_ms_p50"): "steady load: p50 ms",
    ("steady", "latency_ms_p99"): "p99 ms",
    ("steady", "server_cpu_us_per_message"): "server CPU µs / message",
    ("burst", "latency_ms_p99"): "burst: p99 ms",
    ("batch_50", "messages_per_second"): "batches of 50: messages/s",
    ("batch_50", "server_cpu_us_per_message"): "server CPU µs / message",
    ("batch_50", "wal_bytes_per_message"): "WAL bytes / message",
    ("workers_1", "messages_per_second"): "one worker, batches of 10: messages/s",
    ("workers_1", "client_cpu_us_per_message"): "client CPU µs / message",
    ("idle", "connections"): "50 idle workers in 5 processes: connections",
    ("idle", "queries_per_second"): "queries/s",
    ("idle", "server_cpu_ms_per_second"): "server CPU ms/s",
    ("idle_10", "connections"): "10 idle processes: connections",
    ("idle_10", "queries_per_second"): "queries/s",
}


def check_peers(results: Results) -> list[Target]:
    """Return all targets with their results."""
    found = PeerResults(results.data)
    return [
        Target(
            "A worker's thread, batches of 10: rate, rowq / a loop of the same calls",
            0.9,
            True,
            found.between("workers_1", "messages_per_second", OWN, "rowq_loop"),
        ),
        *(
            Target(
                f"10 idle worker processes, {how}: connections",
                10,
                False,
                found.figure("idle_10", system, "connections"),
            )
            for system, how in ((OWN, "listening"), ("rowq_poll", "polling"))
        ),
    ]


def beaten(data: dict[str, Any]) -> Iterator[str]:
    """Yield the section about figures in which another queue is better than rowq."""
    results = PeerResults(data)
    cells: dict[str, dict[str, list[str]]] = {}
    for win in results.beaten():
        row = cells.setdefault(win.scenario, {})
        row.setdefault(win.measure.words, []).append(f"{win.system} {win.ratio.median:,.2f}")
    columns = list(dict.fromkeys(m.words for measures in COMPARED.values() for m in measures))
    yield "## Where another queue is better than rowq"
    yield "Better by more than 2 % in the median; the number is rowq's figure divided by theirs."
    yield table(
        ["", *columns],
        (
            [results.scenarios[name]["title"], *("; ".join(row.get(c, [])) for c in columns)]
            for name, row in cells.items()
        ),
    )


def peers_section(data: dict[str, Any]) -> Iterator[str]:
    """Yield the section that compares rowq with other queues."""
    results = PeerResults(data)
    yield "## Beside other queues, on PostgreSQL"
    yield " ".join(_notes(data))
    others = [*results.queues, FLOOR]
    yield (
        "rowq's rate divided by theirs; `bare` is a table without a queue, as above. The backlog is"
        " what the systems had put in when the clock started:"
    )
    yield table(
        ["", "backlog", "workers", "batch", *others],
        (
            [
                scenario["title"],
                _backlog(data, name),
                *(f"{scenario[key]:,}" for key in ("workers", "batch")),
                *(_ratio(results, name, system) for system in others),
            ]
            for name, scenario in results.scenarios.items()
            if scenario["kind"] in {"drain", "burst"}
        ),
    )
    yield "Under steady load, in the burst and while idle, no message waits at the start:"
    yield table(
        ["", *_BY_SYSTEM.values()],
        (
            [system, *(spread_text(results.figure(name, system, key)) for name, key in _BY_SYSTEM)]
            for system in results.systems
        ),
    )
    reasons = dict.fromkeys((run["system"], run["reason"]) for run in data["not_run"])
    yield "Not run: " + "; ".join(
        f"{system} ({reason}): {', '.join(_names(data, system, reason))}"
        for system, reason in reasons
    )


def _notes(data: dict[str, Any]) -> Iterator[str]:
    yield "[peers.json](results/peers.json) has all figures of each queue."
    if data["size"] != "full":
        yield f"Size {data['size']}: fewer rounds and messages than the full size."
    for again in data.get("again", []):
        names = ", ".join(again["scenarios"])
        yield f"Run again at {again['made_at']}, {again['commit']}: {names}."
    for system in data["systems"]:
        if "absent" in system:
            yield f"{system['name']} is absent: {system['absent']}."


def _names(data: dict[str, Any], system: str, reason: str) -> list[str]:
    found = (
        run["scenario"]
        for run in data["not_run"]
        if (run["system"], run["reason"]) == (system, reason)
    )
    return list(dict.fromkeys(f"`{name}`" for name in found))


def _backlog(data: dict[str, Any], name: str) -> str:
    """Return the messages put in before a drain by all systems; a burst meets an empty queue."""
    depths = [run["figures"].get("depth", 0) for run in data["runs"] if run["scenario"] == name]
    return spread_text(spread(depths)) if depths else ""


def _ratio(results: PeerResults, name: str, system: str) -> str:
    ratio = results.between(name, "messages_per_second", OWN, system)
    return spread_text(ratio) if ratio else "-"
