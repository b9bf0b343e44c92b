"""Writes SCALE.md: what nodes would take, reckoned from the figures of other pages."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.report import generated_from, table
from benchmarks.harness.results import Results

SOURCES = ("postgres", "floor", "mariadb", "scale")
CORES = 16
"""The cores of the node that is reckoned with."""
BUSY = 0.5
"""The share of them that is planned for, so that a node can take over what another one did."""
RATES = (10_000, 100_000, 1_000_000)
_DAY = 86_400
_POLLS = 10
"""An idle process of workers asks so many times a second at most."""

_HEAD = f"""\
How far does it go, and what gives out first? Reckoned from measured processor time and log bytes a
message ([RESULTS.md](RESULTS.md), [RESULTS-floor.md](RESULTS-floor.md),
[RESULTS-mariadb.md](RESULTS-mariadb.md), [RESULTS-scale.md](RESULTS-scale.md)); nothing here was
run at these rates. A message is enqueued, dequeued and completed, durably, with a body of 200
bytes. Those figures are of machines with 2 cores; that {CORES} cores do {CORES} times the work of
one is an **assumption**, and it ends where cores wait for each other. A node here has {CORES} cores
and is planned to keep half of them busy: the rest is for peaks, and for what another node did that
is away."""

_NODES = """\
Log is what each replica receives and each backup of the log keeps. Nodes are independent servers,
each with stripes of the queue ([Striped queues](../python_client/README.md#striped-queues)); they
share nothing, so that twice the nodes take twice the messages, as long as producers and workers
spread over them. Replicas come on top: one or two for each node."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a message costs, one way: µs of server CPU, and bytes of log."""

    way: str
    cpu_us: float
    log_bytes: float

    @property
    def rate(self) -> float:
        """Messages a second that a node is planned for."""
        return CORES * BUSY * 1e6 / self.cpu_us


def costs(found: Mapping[str, dict[str, Any]]) -> list[Cost]:
    """Return what a message costs, by engine and size of batch."""
    postgres, mariadb = Results(found["postgres"]), Results(found["mariadb"])
    put_us = statistics.median(
        turn["enqueue_batch"] for turn in found["floor"]["rounds"] if turn["form"] == "rowq"
    )
    cpu, wal, redo = (
        "server_cpu_us_per_message", "wal_bytes_per_message", "redo_bytes_per_message"
    )  # fmt: skip
    return [
        Cost(
            "PostgreSQL, one by one",
            _median(postgres, "one_by_one_16", cpu),
            _median(postgres, "one_by_one_16", wal),
        ),
        Cost(
            "PostgreSQL, batches",
            put_us + _median(postgres, "drain_durable", cpu),
            _median(postgres, "drain_durable", wal)
            + _median(postgres, "drain_durable", "fill_wal_bytes_per_message"),
        ),
        *(
            Cost(
                f"MariaDB, {way}",
                sum(_median(mariadb, scenario, cpu) for scenario in scenarios),
                sum(_median(mariadb, scenario, redo) for scenario in scenarios),
            )
            for way, scenarios in (
                ("one by one", ("enqueue_1", "drain_1")),
                ("batches", ("enqueue_100", "drain_100")),
            )
        ),
    ]


def render(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the whole page."""
    reckoned = costs(found)
    parts = [
        generated_from(*(f"results/{source}.json" for source in SOURCES)),
        "# At scale, on paper",
        _HEAD,
        "## A node",
        table(
            ["", "CPU a message, µs", "log a message, bytes", "messages/s", "log, MB/s",
             "log, TB a day"],
            (
                [
                    cost.way,
                    f"{cost.cpu_us:,.0f}",
                    f"{cost.log_bytes:,.0f}",
                    f"{cost.rate:,.0f}",
                    f"{cost.rate * cost.log_bytes / 1e6:,.1f}",
                    f"{cost.rate * cost.log_bytes * _DAY / 1e12:,.2f}",
                ]
                for cost in reckoned
            ),
        ),
        "## Nodes",
        _NODES,
        table(
            ["", *(f"{rate:,} messages/s" for rate in RATES)],
            ([cost.way, *(nodes_text(cost, rate) for rate in RATES)] for cost in reckoned),
        ),
        "## What gives out first, and what to do",
        table(["what", "when", "what to do"], _limits(found["scale"], reckoned)),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def nodes_text(cost: Cost, rate: int) -> str:
    """Return how many nodes a rate takes, and how much log it makes."""
    nodes = math.ceil(rate / cost.rate)
    terabytes = rate * cost.log_bytes * _DAY / 1e12
    return f"{nodes:,} node{'' if nodes == 1 else 's'}, {terabytes:,.1f} TB of log a day"


def _limits(scale: dict[str, Any], reckoned: list[Cost]) -> list[tuple[str, str, str]]:
    """Return what gives out, when, and what to do then."""
    single, batch = reckoned[:2]
    many = scale["sizes"][-1]
    hot, direct, pooled = scale["connections"]
    session = direct["sessions_mib"] / direct["sessions"]
    calls = math.ceil(many["queues"] / many["maintained_queues"])
    pollers = BUSY * CORES * 1e6 / (_POLLS * many["empty_dequeue_us"])
    gain = single.cpu_us / batch.cpu_us
    return [
        (
            "calls for one message each",
            f"at {single.rate:,.0f} messages/s on a node; a batch takes 1/{gain:.0f} of the CPU",
            "`enqueue_batch` and a `batch_size`, before any second node",
        ),
        (
            "waiting for the disk",
            "each call is a commit, and sessions that commit together share a wait: one session"
            " does no more calls a second than the disk syncs",
            "batches; more sessions; a disk that answers faster",
        ),
        (
            "connections",
            f"a session is a process with {session:.1f} MiB: 1,000 of them are"
            f" {session * 1000 / 1024:.1f} GiB",
            f"PgBouncer in transaction mode: {pooled['clients']:,} clients through"
            f" {pooled['sessions']} sessions for {pooled['pooler_us']:.0f} µs of its CPU a message."
            " It has one thread: another one, on the same port, for each full core",
        ),
        (
            "idle workers",
            f"a process that polls {_POLLS} times a second: {pollers:,.0f} of them fill what is"
            " planned for of a node",
            "listening workers, more threads in fewer processes, longer `idle_max_seconds`",
        ),
        (
            "one hot queue",
            f"{hot['clients']} sessions took {hot['server_us']:.0f} µs of CPU a message at"
            f" {hot['queues']} queue, and {direct['server_us']:.0f} at {direct['queues']}, on"
            f" {scale['host']['cores']} cores. On many cores they may wait for the last page of an"
            " index",
            "stripes on one server; then on several",
        ),
        (
            "the log",
            f"{batch.rate * batch.log_bytes / 1e6:,.0f} MB/s for a node in batches, to each replica"
            " and to the archive; the network or a replica that replays with one process may be"
            " less",
            "more and smaller nodes; small bodies, large ones in a store of their own",
        ),
        (
            "maintain over many queues",
            f"{many['queues']:,} queues: a call without a name takes {many['maintained_queues']:,},"
            f" drawn at random, in {many['maintain_ms']:,.0f} ms of CPU. Called once a second, a"
            f" queue has its turn every {calls:,} s on average, and may wait several times that",
            "workers, who call `maintain` for their own queue each second; for queues that need it"
            " by name; not one queue for each of a site's users, but group keys",
        ),
        (
            "queue_stats, health and metrics over many queues",
            f"{many['queue_stats_ms']:,.0f} ms of CPU for {many['queues']:,} queues",
            "ask by name, and let Prometheus scrape seldom",
        ),
        (
            "a node that is away",
            "its messages wait until it is back; new ones go to the others",
            "a replica to fail over to for each node; no message is on two nodes",
        ),
    ]


def _median(results: Results, scenario: str, figure: str) -> float:
    found = results.figure(scenario, "rowq", figure)
    assert found is not None
    return found.median
