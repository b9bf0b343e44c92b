"""RESULTS.md, generated from the files of results by make generate."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.measure import Target
from benchmarks.harness.report import bullets, facts, figures_table, settings, table, targets_table
from benchmarks.harness.results import Results, read_results
from benchmarks.studies.peers.report import beaten, check_peers, peers_section
from benchmarks.studies.queues.targets import check_targets
from benchmarks.studies.queues_mariadb.targets import check_targets as check_mariadb
from benchmarks.studies.seeds.report import check_seeds, seeds_section

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = "results", "RESULTS.md"
_COMMON = {
    "server_cpu_us_per_message": "server CPU µs / message",
    "client_cpu_us_per_message": "client CPU µs / message",
    "loop_ms_p50": "loop p50 ms",
    "loop_ms_p99": "p99 ms",
}
_RATE = {
    "waiting_start": "waiting, start",
    "waiting_end": "end",
    "calls": "calls / batch",
    "messages_per_second": "messages/s",
}
_WORK = _RATE | {"wal_bytes_per_message": "WAL bytes / message"} | _COMMON
_SNAPSHOT = {
    "messages": "messages passed",
    "seconds": "seconds",
    "buffers_start": "buffers / dequeue, start",
    "buffers_end": "buffers / dequeue, end",
    "dequeue_ms_start": "ms / dequeue, start",
    "dequeue_ms_end": "ms / dequeue, end",
}
_DEPTH = {
    f"{queue}_{batch}_{unit}": f"{unit}, batch {batch}, {queue}"
    for unit in ("buffers", "ms")
    for batch in (1, 50)
    for queue in ("small", "delayed", "backlog")
}
_MARIADB_WORK = (
    _RATE
    | {"redo_bytes_per_message": "redo bytes / message"}
    | _COMMON
    | {
        "dequeue_ms_start": "ms / dequeue, start",
        "dequeue_ms_end": "ms / dequeue, end",
        "deadlocks_reached": "deadlocks",
        "lock_waits": "lock waits",
        "lock_wait_seconds": "seconds waited",
    }
)
_IDLE = {
    "dequeue_ms": "ms / dequeue, median",
    "dequeue_ms_p95": "p95",
    "server_cpu_us": "server CPU µs",
    "redo_bytes": "redo bytes",
}
_CALLS = {
    "waiting_start": "waiting, start",
    "waiting_end": "end",
    "rows": "rows",
    "ms": "ms / call, median",
    "ms_worst": "worst",
    "server_cpu_ms": "server CPU ms / call, median",
    "server_cpu_ms_worst": "worst",
}
_FED = ("drain", "one_by_one", "enqueue")
_OF_ALL = ("maintain", "queue_stats")
_BUSY = ("drain", "flat", "flat_free", "enqueue")


def _pgmq(data: dict[str, Any]) -> Iterator[str]:
    results = Results(data)
    yield "## Beside pgmq, on PostgreSQL"
    if "pgmq" not in {system["name"] for system in data["systems"]}:
        yield "**pgmq was not installed: rowq was not compared with it.**"
    yield (
        "`bare` is an insert and a `delete ... returning` without a queue. A loop is a dequeue and"
        " a complete, in some scenarios after an enqueue. Waiting messages are counted when the"
        " clock starts and stops: rowq's share of `bare` depends on them."
    )
    yield bullets(settings(results, (*_FED, "snapshot", "depth", *_OF_ALL)))
    yield figures_table(results, _FED, _WORK)
    yield figures_table(results, ("snapshot",), _SNAPSHOT)
    yield figures_table(results, ("depth",), _DEPTH)
    yield figures_table(results, _OF_ALL, _CALLS)


def _mariadb(data: dict[str, Any]) -> Iterator[str]:
    results = Results(data)
    yield "## Beside two usual queue tables, on MariaDB"
    yield (
        "All use one table with a status and an owner. `select_update` selects for update, then"
        " updates; `skip_locked` does so and skips locked rows; `update_limit` updates with a"
        " limit, then selects its own rows. Start and end of a dequeue are the first and the last"
        " 5 % of the messages; waiting messages are counted when the clock starts and stops."
    )
    yield bullets(settings(results, (*_BUSY, "idle")))
    yield figures_table(results, _BUSY, _MARIADB_WORK)
    yield figures_table(results, ("idle",), _IDLE)


_LIBPQ, _PYTHON = "prepared statements by psycopg's libpq calls", "rowq's client, or the driver"
_STUDIES: dict[str, tuple[str, str, Callable[[Results], list[Target]]]] = {
    "postgres": ("PostgreSQL", _LIBPQ, check_targets),
    "mariadb": ("MariaDB", "plain texts by the C library libmariadb", check_mariadb),
    "seeds_postgres": ("PostgreSQL, seeds", _PYTHON, check_seeds),
    "seeds_mariadb": ("MariaDB, seeds", _PYTHON, check_seeds),
    "peers": ("PostgreSQL, other queues", "each queue's own client", check_peers),
}
"""Name, client and targets of each study, by its file of results."""


def render(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the page; found: results by the name of their file."""
    runs = [(*_STUDIES[name][:2], data) for name, data in found.items()]
    targets: dict[str, list[Target]] = {}
    for name, data in found.items():
        product, _, check = _STUDIES[name]
        targets.setdefault(product.partition(",")[0], []).extend(check(Results(data)))
    peers = found.get("peers")
    parts = [
        "<!-- Generated from results/*.json by make generate. Do not edit. -->",
        "# Results",
        "[README.md](README.md) describes the method and its limits. Figures are medians over the"
        " rounds, with minimum and maximum in parentheses. Figures of different runs are not"
        " comparable.",
        *(f"**{data['note']}**" for data in found.values() if data["note"]),
        "## Ratios and targets",
        targets_table(targets),
        *(beaten(peers) if peers else ()),
        *(part for name in ("postgres",) if name in found for part in _pgmq(found[name])),
        *(part for name in ("mariadb",) if name in found for part in _mariadb(found[name])),
        *seeds_section(
            {_STUDIES[name][0].partition(",")[0]: found[name] for name in found if "seeds" in name}
        ),
        *(peers_section(peers) if peers else ()),
        "## Machines, servers, systems",
        facts(runs),
        table(["system", "version", "origin"], _systems(found)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _systems(found: Mapping[str, dict[str, Any]]) -> Iterator[list[str]]:
    """Yield the systems, without rowq in the first sets and the forms of the seeds."""
    for name in ("postgres", "mariadb", "peers"):
        for system in found[name]["systems"] if name in found else ():
            if system["name"] == "rowq" and "settings" not in system:
                continue
            more = f"; {system['settings']}" if "settings" in system else ""
            version = "absent" if "absent" in system else system["version"]
            yield [system["name"], version, system["origin"] + more]


def write(to: Path) -> None:
    """Write the page into a directory from the results below it."""
    paths = [to / RESULTS / f"{name}.json" for name in _STUDIES]
    found = {path.stem: read_results(path) for path in paths if path.exists()}
    (to / PAGE).write_text(render(found), "utf-8")


if __name__ == "__main__":
    write(ROOT)
