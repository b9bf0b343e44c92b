"""Writes RESULTS-peers.md from the results and nothing else."""

from collections.abc import Iterator
from typing import Any

from benchmarks.harness.report import (
    facts,
    generated_from,
    notes,
    picture,
    setting,
    spread_text,
    table,
)
from benchmarks.studies.peers.plots import plots
from benchmarks.studies.peers.results import (
    BUFFERS,
    COMPARED,
    FILL,
    FLOOR,
    OWN,
    RATE,
    SERVER_CPU,
    WAL,
    PeerResults,
)

_SHOWN = {
    "steady": {
        "messages_per_second": "messages/s",
        "latency_ms_p50": "latency p50 ms",
        "latency_ms_p99": "p99 ms",
        "latency_ms_max": "max ms",
    },
    "burst": {
        "messages_per_second": "messages/s",
        "sent_per_second": "sent/s",
        "latency_ms_p50": "latency p50 ms",
        "latency_ms_p99": "p99 ms",
        "latency_ms_max": "max ms",
    },
    "drain": {"depth": "put in", "fill_per_second": "put in / s", "messages": "handled"}
    | {"messages_per_second": "messages/s"},
    "idle": {
        "queries_per_second": "queries/s",
        "transactions_per_second": "transactions/s",
        "server_cpu_ms_per_second": "server CPU ms/s",
        "client_cpu_ms_per_second": "client CPU ms/s",
        "wal_bytes_per_second": "WAL bytes/s",
    },
}
_WITHIN = {"rate_start": "messages/s, first fifth", "rate_end": "last fifth"}
_ORDER = {"out_of_order": "out of order"}
_COSTS = {
    "server_cpu_us_per_message": "server CPU µs",
    "client_cpu_us_per_message": "client CPU µs",
    "buffers_per_message": "buffers",
    "wal_bytes_per_message": "WAL bytes",
    "queries_per_message": "queries",
    "table_bytes_per_message": "tables grew bytes",
    "index_bytes_per_message": "indexes grew bytes",
}
_FILL_COSTS = {
    "fill_wal_bytes_per_message": "WAL bytes to put in",
    "fill_table_bytes_per_message": "table bytes put in",
    "fill_index_bytes_per_message": "index bytes put in",
}
_WORDS = {
    "rounds": "rounds",
    "processes": "processes",
    "workers": "workers",
    "batch": "batch",
    "messages": "messages",
    "keys": "groups",
    "delayed": "delayed",
    "rate": "a second",
    "bulk": "a call to put them in",
    "seconds": "seconds at most",
    "fill_seconds": "seconds at most to put them in",
}
_MARKS = {"capped": "¹", "one_worker": "²", "cold": "³"}
_FOOTNOTES = (
    "Marks below: ¹ The time cap came first: the figures are of the messages handled until then."
    " ² With one worker, see the table of systems."
    " ³ The time in which its processes got going is part of the figures."
)
_LIMIT = (RATE, SERVER_CPU, BUFFERS, WAL, FILL)


def render_peers(data: dict[str, Any]) -> str:
    """Return the whole report."""
    results = PeerResults(data)
    parts = [
        generated_from("results/peers.json"),
        "# Beside other queues",
        'Made by `make bench ARGS="--set peers"` from [results/peers.json](results/peers.json).'
        " What is measured and how: [README.md](README.md#beside-other-queues).",
        *notes(data, *_size(data), *_again(data), *_absent(data)),
        "## Where another queue is better than rowq",
        *_beaten(results),
        "## rowq's rate, divided by theirs",
        *_ratios(results),
        "## The limit",
        *_limit(results),
        _FOOTNOTES,
        *(part for name in results.scenarios for part in _scenario(results, name)),
        *_not_run(results),
        "## Machine, server, systems",
        facts(data, "PostgreSQL", "each system's own client, in processes of its own"),
        table(
            ["system", "version", "from", "settings"],
            (
                [s["name"], s["version"] or "absent", s["origin"], s["settings"]]
                for s in data["systems"]
            ),
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _size(data: dict[str, Any]) -> list[str]:
    if data["size"] == "full":
        return []
    return [f"This is a run of the size {data['size']}: fewer rounds and messages than in full."]


def _again(data: dict[str, Any]) -> list[str]:
    return [
        f"Run again by itself at {again['made_at']}, commit {again['commit']}:"
        f" {', '.join(again['scenarios'])}."
        for again in data.get("again", [])
    ]


def _absent(data: dict[str, Any]) -> list[str]:
    return [f"{s['name']} is absent: {s['absent']}." for s in data["systems"] if "absent" in s]


def _beaten(results: PeerResults) -> Iterator[str]:
    cells: dict[str, dict[str, list[str]]] = {}
    for win in results.beaten():
        row = cells.setdefault(win.scenario, {})
        row.setdefault(win.measure.words, []).append(f"{win.system} {win.ratio.median:,.2f}")
    if not cells:
        yield "Nowhere in this run."
        return
    yield (
        "By more than two per cent, in the median of the rounds; behind each name rowq's figure"
        " divided by theirs. The figures themselves are in the tables of the scenarios."
    )
    columns = list(dict.fromkeys(m.words for measures in COMPARED.values() for m in measures))
    yield table(
        ["", *columns],
        (
            [results.scenarios[name]["title"], *("; ".join(row.get(c, [])) for c in columns)]
            for name, row in cells.items()
        ),
    )


def _ratios(results: PeerResults) -> Iterator[str]:
    names = [name for name, s in results.scenarios.items() if s["kind"] in {"drain", "burst"}]
    yield "More than 1: rowq is faster. Median over the rounds, least and greatest in brackets."
    yield table(
        ["", *results.queues],
        (
            [
                results.scenarios[name]["title"],
                *(_times_of(results, name, system) for system in results.queues),
            ]
            for name in names
        ),
    )
    yield from map(picture, plots(results.data))


def _times_of(results: PeerResults, name: str, system: str) -> str:
    ratio = results.between(name, "messages_per_second", OWN, system)
    return spread_text(ratio) if ratio else "-"


def _limit(results: PeerResults) -> Iterator[str]:
    names = [name for name, s in results.scenarios.items() if s["kind"] in {"drain", "burst"}]
    yield (
        "What rowq reaches of the bare statements (insert or COPY, `delete ... returning`): 1 is"
        " the floor itself; of costs it is the floor's share of rowq's."
    )
    yield table(
        ["", *(measure.words for measure in _LIMIT)],
        (
            [
                results.scenarios[name]["title"],
                *(spread_text(results.share(name, measure)) for measure in _LIMIT),
            ]
            for name in names
            if results.figure(name, FLOOR, "messages")
        ),
    )


def _scenario(results: PeerResults, name: str) -> list[str]:
    scenario = results.scenarios[name]
    kind = scenario["kind"]
    columns = dict(_SHOWN[kind])
    if kind == "drain":
        columns |= _WITHIN if scenario["holder"] else {}
        columns |= _ORDER if scenario.get("keys") else {}
    costs = {} if kind == "idle" else _COSTS | (_FILL_COSTS if kind == "drain" else {})
    shown = [system for system in results.systems if results.rounds(name, system)]
    parts = [
        f"## {scenario['title']}",
        _setting(scenario),
        _table(results, name, shown, columns),
    ]
    if costs:
        parts += ["Of each handled message:", _table(results, name, shown, costs)]
    return parts


def _not_run(results: PeerResults) -> Iterator[str]:
    """Yield a table of who did not run, why, and in which scenarios; nothing if all ran."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, scenario in results.scenarios.items():
        for system in results.systems:
            if reason := results.reason(name, system):
                found.setdefault((system, reason), []).append(scenario["title"])
    if found:
        yield "## Not run"
        rows = ([system, reason, "; ".join(titles)] for (system, reason), titles in found.items())
        yield table(["system", "why", "scenarios"], rows)


def _table(results: PeerResults, name: str, shown: list[str], columns: dict[str, str]) -> str:
    return table(
        ["", *columns.values()],
        (
            [
                system + _marked(results, name, system),
                *(spread_text(results.figure(name, system, key)) for key in columns),
            ]
            for system in shown
        ),
    )


def _marked(results: PeerResults, name: str, system: str) -> str:
    rounds = results.rounds(name, system).values()
    return "".join(
        mark for key, mark in _MARKS.items() if any(figures.get(key) for figures in rounds)
    )


def _setting(scenario: dict[str, Any]) -> str:
    """Say what the numbers of a scenario are."""
    bodies = " and ".join(f"{length:,} bytes ({count})" for length, count in scenario["bodies"])
    return f"{setting(scenario, _WORDS)}; bodies of {bodies}."
