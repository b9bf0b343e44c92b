"""Writes the parts of all reports: tables, spreads, targets, the machine and the server."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.harness.measure import Spread
from benchmarks.harness.results import Results
from benchmarks.harness.targets import Target

_SETTING = {
    "sessions": "sessions",
    "rounds": "rounds",
    "messages": "messages",
    "delayed": "delayed",
    "calm": "seconds before the snapshot",
    "seconds": "seconds at most",
    "preload": "waiting all the time",
    "samples": "samples",
}


def generated_from(*sources: str) -> str:
    """Return the first line of a report, which is not shown."""
    return f"<!-- Generated from {', '.join(sources)} by make generate. Do not edit. -->"


def picture(name: str) -> str:
    """Return what shows a plot."""
    return f"![{name.replace('_', ' ')}](results/{name}.svg)"


def notes(data: dict[str, Any], *more: str) -> list[str]:
    """Return the sentences at the head of a report, as paragraphs."""
    return [f"**{note}**" for note in [data["note"], *more] if note]


def target_row(target: Target) -> list[str]:
    """Return what, bound, found, verdict, and what the peer reached."""
    verdict = {True: "met", False: "**not met**", None: "not measured"}[target.is_met]
    bound = f"{'≥' if target.at_least else '≤'} {target.bound:g}"
    return [target.what, bound, spread_text(target.found), verdict, spread_text(target.peer)]


def figures_row(
    results: Results, scenario: str, system: str, columns: Mapping[str, str]
) -> list[str]:
    """Return a system's name and its figures, "" for one that a round of it has not.

    columns: headings by the figures' names.
    """
    rounds = results.rounds(scenario, system)
    return [
        system,
        *(
            spread_text(results.figure(scenario, system, key))
            if all(key in figures for figures in rounds)
            else ""
            for key in columns
        ),
    ]


def figures_table(results: Results, scenario: str, columns: Mapping[str, str]) -> str:
    """Return a scenario's figures, with a row for each system."""
    systems = results.systems(scenario)
    return table(
        ["", *columns.values()],
        (figures_row(results, scenario, system, columns) for system in systems),
    )


def systems_table(data: dict[str, Any]) -> str:
    """Return the systems that took part, with where they come from."""
    return table(
        ["system", "version", "origin"],
        ([system["name"], system["version"], system["origin"]] for system in data["systems"]),
    )


def setting(scenario: dict[str, Any], words: Mapping[str, str] = _SETTING) -> str:
    """Say what the numbers of a scenario are; words: their names in the report."""
    said = [f"{word}: {scenario[key]:,}" for key, word in words.items() if scenario.get(key)]
    return ", ".join(said)


def facts(data: dict[str, Any], product: str, client: str) -> str:
    """Return the machine and the server as a table; client: how the sessions talk to it."""
    host, server = data["host"], dict(data["server"])
    sync = host["fdatasync_us"]
    lines = {
        "made at": data["made_at"],
        "commit": data["commit"],
        "command": f"`{data['command']}`, {data['minutes']} minutes",
        "processor": f"{host['cpu']}, {host['cores']} cores",
        "memory": f"{host['memory_gib']} GiB",
        "kernel": host["kernel"],
        "disk": "not measured" if sync is None else f"8 KiB write and fdatasync {sync:g} µs",
        "load average before": f"{host['load_average']:g}",
        "client": f"Python {host['python']}, {client}",
        product: f"{server.pop('version')}, {server.pop('origin')}",
        "settings": ", ".join(f"{name} {value}" for name, value in server.items()),
    }
    return table(["", ""], ([name, str(value)] for name, value in lines.items()))


def spread_text(values: Spread | None) -> str:
    """Return a median with its range, "" if nothing was measured."""
    if values is None:
        return ""
    if values.least == values.greatest:
        return _number(values.median)
    return f"{_number(values.median)} ({_number(values.least)} to {_number(values.greatest)})"


def _number(value: float) -> str:
    digits = 0 if value >= 100 or value == int(value) else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
