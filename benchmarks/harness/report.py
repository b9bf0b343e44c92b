"""Tables of the report: figures, targets, machines and servers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.harness.measure import Spread, Target
from benchmarks.harness.results import Results

_SETTING = {
    "sessions": "sessions",
    "producers": "producers",
    "rounds": "rounds",
    "messages": "backlog",
    "delayed": "delayed",
    "calm": "seconds before the snapshot",
    "seconds": "seconds at most",
    "preload": "waiting all the time",
    "samples": "samples",
    "every": "seconds from call to call",
    "queues": "queues",
    "schedules": "schedules",
    "due": "due at each call",
}
MISSED = "**not met**"
_VERDICTS = {True: "met", False: MISSED}


def targets_table(page: Mapping[str, Iterable[Target]]) -> str:
    """Return a row per target with each engine's result, missed targets first.

    A line below names the targets whose scenarios are newer than the last run.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    unmeasured = []
    for engine, targets in page.items():
        for target in targets:
            if target.is_met is None:
                unmeasured.append(f"{target.what} ({engine})")
                continue
            bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
            row = rows.setdefault((target.what, bound), {"pgmq": spread_text(target.peer)})
            row[engine] = f"{spread_text(target.found)} {_VERDICTS[target.is_met]}"
    columns = [*page, "pgmq"]
    missed_first = sorted(rows.items(), key=lambda row: MISSED not in str(row[1]))
    measured = table(
        ["", "target", *columns],
        ([*key, *(row.get(name, "") for name in columns)] for key, row in missed_first),
    )
    if unmeasured:
        measured += f"\n\nNewer than the last run, without figures: {'; '.join(unmeasured)}."
    return measured


def settings(results: Results, kinds: Iterable[str]) -> list[str]:
    """Return a description of each scenario of these kinds."""
    return [
        f"`{name}`: {scenario['title']}; {_setting(scenario)}."
        for name, scenario in results.scenarios.items()
        if scenario["kind"] in kinds
    ]


def bullets(lines: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def figures_table(results: Results, kinds: Iterable[str], columns: Mapping[str, str]) -> str:
    """Return a table with the figures of the scenarios of these kinds, a row per system.

    It has no column without a figure; "" if there are no rows.
    """
    rows = [*figures_rows(results, kinds, columns)]
    if not rows:
        return ""
    head = ["scenario", "system", *columns.values()]
    kept = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    head, *rows = ([*row] for row in zip(*kept, strict=True))
    return table(head, rows)


def figures_rows(
    results: Results, kinds: Iterable[str], columns: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield scenario, system and figures; "" if a round lacks the figure."""
    for name, scenario in results.scenarios.items():
        for system in results.systems(name) if scenario["kind"] in kinds else ():
            rounds = results.rounds(name, system)
            yield [
                name,
                system,
                *(
                    spread_text(results.figure(name, system, key))
                    if all(key in figures for figures in rounds)
                    else ""
                    for key in columns
                ),
            ]


def facts(runs: Sequence[tuple[str, str, dict[str, Any]]]) -> str:
    """Return a table of machines and servers; runs: product, client and results."""
    columns = [_facts(*run) for run in runs]
    return table(
        ["", *(product for product, _, _ in runs)],
        ([name, *(column[name] for column in columns)] for name in columns[0]),
    )


def _facts(_product: str, client: str, data: dict[str, Any]) -> dict[str, str]:
    host, server = data["host"], dict(data["server"])
    sync = host["fdatasync_us"]
    return {
        "command": f"`{data['command']}`, {data['minutes']} minutes",
        "commit, time": f"{data['commit']}, {data['made_at']}",
        "hardware": f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB,"
        f" {host['kernel']}; load average before {host['load_average']:g}",
        "disk": "not measured" if sync is None else f"8 KiB write and fdatasync {sync:g} µs",
        "client": f"Python {host['python']}, {data.get('client', client)}",
        "server": f"{server.pop('version')}, {server.pop('origin')}",
        "settings": ", ".join(f"{name} {value}" for name, value in server.items()),
    }


def spread_text(values: Spread | None) -> str:
    """Return a median with its range; "" if not measured."""
    if values is None:
        return ""
    if values.least == values.greatest:
        return _number(values.median)
    return f"{_number(values.median)} ({_number(values.least)} to {_number(values.greatest)})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _setting(scenario: dict[str, Any]) -> str:
    # A scenario with a snapshot starts with few messages and adds as many as it handles.
    words = _SETTING | ({"messages": "handled"} if scenario["kind"] == "snapshot" else {})
    parts = [f"{word} {scenario[key]:,}" for key, word in words.items() if scenario.get(key)]
    return ", ".join([*parts, f"commits {'durable' if scenario['durable'] else 'not durable'}"])


def _number(value: float) -> str:
    digits = 0 if value >= 100 or value == int(value) else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"
