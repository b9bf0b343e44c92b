"""Writes RESULTS-profile.md from the results and nothing else."""

import statistics
from collections.abc import Iterator
from typing import Any

from benchmarks.harness.report import facts, generated_from, notes, table

_TEXT = 100
_LEAST = 0.005
_WORDS = {"enqueue": "Enqueue", "dequeue": "Dequeue", "complete": "Complete"}

_HEAD = """\
Made by `make bench ARGS="--set profile"` from [results/profile.json](results/profile.json). One
session that has its plans makes each call some hundred times, first all enqueues, then all
dequeues, then all completes, with `vacuum (analyze)` in between and autovacuum off; the bodies are
JSON texts of 200 bytes. The floor, **bare**, is an insert of the same rows in one statement (or one
COPY), and a `delete ... returning` that takes them: no queue at all."""

_SHARE_HEAD = """\
µs per message, from the median call of each round: the median of the rounds, the least and the
greatest in brackets. A share is the floor's figure divided by rowq's, so 50 % means that rowq costs
twice the floor. Take is dequeue and complete. Durable: each call waits for the disk. For rates of
several sessions at once see [RESULTS.md](RESULTS.md)."""

_INSIDE_HEAD = """\
Per call, by pg_stat_statements with all nested statements (noting them costs time too, so a sum is
more than the clock showed) and auto_explain for the place of each. µs, buffers and WAL bytes are
those of the statement alone, without what runs inside it. The first line is the call itself: what
the function does besides its statements, and its result on the way out. Lines below half a per cent
are left out. Of the rounds, the one is shown in which the statements took the least."""

_WAL_HEAD = """\
Per message, by pg_waldump; `images` are whole pages, from the first change of a page after a
checkpoint."""


def render(data: dict[str, Any]) -> str:
    """Return the whole page."""
    own = [course for course in data["courses"] if course["system"] == "rowq"]
    parts = [
        generated_from("results/profile.json"),
        "# What one call is spent on",
        _HEAD,
        *notes(data),
        "## Share of the floor",
        _SHARE_HEAD,
        *(_shares(data, course) for course in own),
        "## Statement by statement",
        _INSIDE_HEAD,
        *(part for course in own for part in _inside(course)),
        "## The log, record by record",
        _WAL_HEAD,
        *(part for course in data["courses"] for part in _log(course)),
        "## Machine and server",
        facts(data, "PostgreSQL", "prepared statements by psycopg's libpq calls"),
    ]
    return "\n\n".join(parts) + "\n"


def _shares(data: dict[str, Any], own: dict[str, Any]) -> str:
    """Return rowq beside its floors, action by action, at one batch size."""
    floors = [c for c in data["courses"] if c["system"] == "bare" and c["batch"] == own["batch"]]
    head = [f"batch {own['batch']}", "", "µs", "µs, durable", "server CPU µs", "WAL bytes"]
    rows = []
    for what, names, names_below in (
        ("enqueue", ("enqueue",), ("enqueue",)),
        ("take", ("dequeue", "complete"), ("dequeue",)),
        ("all", ("enqueue", "dequeue", "complete"), ("enqueue", "dequeue")),
    ):
        mine = _per_message(own, names)
        rows.append([what, "rowq", *map(_spread, mine)])
        for floor in floors:
            if what == "take" and floor is not floors[0]:
                continue
            below = _per_message(floor, names_below)
            rows.append(["", floor["title"], *map(_spread, below)])
            shares = map(_share, mine, below)
            rows.append(["", f"share of {floor['title']}", *shares])
    return table(head, rows)


def _per_message(course: dict[str, Any], names: tuple[str, ...]) -> list[list[float]]:
    """Return µs, durable µs, server CPU µs and WAL bytes of some actions, each by round."""
    chosen = [action for action in course["actions"] if action["action"] in names]
    times = [
        [sum(turn) * 1e3 / course["batch"] for turn in zip(*(a[key] for a in chosen), strict=True)]
        for key in ("ms", "durable_ms", "cpu_ms")
    ]
    written = sum(wal["bytes"] for action in chosen for wal in action["wal"])
    return [*times, [written / _messages(course)]]


def _spread(values: list[float]) -> str:
    """Return the median, and the least and the greatest if there are several."""
    shown = _number(statistics.median(values))
    return f"{shown} ({_number(min(values))} to {_number(max(values))})" if values[1:] else shown


def _share(mine: list[float], below: list[float]) -> str:
    """Return the median of the rounds' shares, "" if nothing could be measured."""
    shares = [y / x for x, y in zip(mine, below, strict=True) if x]
    return f"{statistics.median(shares):.0%}" if shares else ""


def _inside(course: dict[str, Any]) -> Iterator[str]:
    for action in course["actions"]:
        yield f"### {_WORDS[action['action']]}, batch {course['batch']}"
        lines = action["statements"]
        whole = sum(line["milliseconds"] for line in lines)
        rows = [
            [
                "&nbsp;&nbsp;" * max(line["depth"] - 1, 0) + line["where"],
                f"`{_short(line['text'])}`" if line["depth"] else "the call itself",
                _number(line["calls"]),
                _number(line["milliseconds"] * 1e3),
                f"{line['milliseconds'] / whole:.0%}",
                _number(line["buffers"]),
                _number(line["wal_bytes"]),
            ]
            for line in lines
            if line["milliseconds"] >= _LEAST * whole
        ]
        total = [sum(line[key] for line in lines) for key in ("buffers", "wal_bytes")]
        rows.append(["", "**all**", "", _number(whole * 1e3), "", *map(_number, total)])
        rows.append(
            [
                "",
                "by the clock, nothing noted",
                "",
                _number(statistics.median(action["ms"]) * 1e3),
                "",
                "",
                "",
            ]
        )
        yield table(["function:line", "statement", "runs", "µs", "", "buffers", "WAL bytes"], rows)


def _log(course: dict[str, Any]) -> Iterator[str]:
    yield f"### {course['title']}, batch {course['batch']}"
    messages = _messages(course)
    rows = []
    for action in course["actions"]:
        whole = sum(wal["bytes"] for wal in action["wal"])
        for wal in action["wal"]:
            if wal["bytes"] >= 2 * _LEAST * whole:
                name = "" if wal is not action["wal"][0] else action["action"]
                counts = [wal[key] / messages for key in ("records", "bytes", "image_bytes")]
                rows.append([name, wal["kind"], wal["relation"], *map(_number, counts)])
        rows.append(["", "**all**", "", "", _number(whole / messages), ""])
    yield table(["", "record", "of", "records", "bytes", "images"], rows)


def _messages(course: dict[str, Any]) -> int:
    return int(course["batch"] * course["calls"])


def _short(text: str) -> str:
    text = text.replace("|", "\\|")
    return text if len(text) <= _TEXT else text[: _TEXT - 2] + " …"


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    shown = f"{value:,.{digits}f}"
    return "0" if not float(shown.replace(",", "")) else shown
