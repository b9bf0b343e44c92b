"""Writes RESULTS-floor.md from the results and nothing else."""

import statistics
from typing import Any

from benchmarks.harness.measure import spread
from benchmarks.harness.report import facts, generated_from, notes, spread_text, table
from benchmarks.studies.floor.forms import BATCH

SINGLE = ("enqueue", "dequeue", "complete")
CYCLE = "all three"
PUT = "enqueue_batch"
RATE = 1.25
"""The target one by one, as a rate beside pgmq's; its inverse is the cost. Putting in it is 1."""
_LIKE = 0.05
"""Medians that are no further apart count as alike: those of whole runs vary by as much."""

_HEAD = """\
Made by `make bench ARGS="--set floor"` from [results/floor.json](results/floor.json). How much of
what rowq costs beside pgmq is rows that a promise needs, and how much is checks? Four forms of
the same calls take turns, each in a database of its own on one server:

- **rowq**: its calls as they are.
- **rowq's rows alone**: the inserts and deletes in rowq's own tables, with their indexes, one
  plain function a call ([rowq_rows.sql](studies/floor/rowq_rows.sql)). No check, no queue's name,
  no pause, no floor of a lane, no archive, no dedup key, no listener, no owner's rights. It is no
  queue; it is the floor, below which no function goes that writes these rows.
- **pgmq's rows alone**: pgmq's one table with its two indexes, and its statements, written the
  same way ([pgmq_rows.sql](studies/floor/pgmq_rows.sql)).
- **pgmq**: its own functions, which find the table of the queue by dynamic SQL."""

_HOW = """\
µs of the session's server process on a processor, a message, without waiting for the disk and for
others: the median of the rounds, the least and the greatest in brackets. A ratio is made in each
round, so that what else the machine does falls out of it as far as it can. Rates of several
sessions, in which every message of either system waits for three commits, are in
[RESULTS.md](RESULTS.md)."""

_ROWS = (
    (
        "insert into `message`, delete from it",
        "the same in pgmq's table",
        "P01, P02, P20: what was handed over, whole",
    ),
    (
        "insert into `ready`",
        "an index on the time of visibility",
        "P05, P11, P13: the order with priorities is the key of a table of what is ready alone, so"
        " that no dequeue sorts, and none walks over leased, delayed or finished messages",
    ),
    (
        "pick and delete in `ready`",
        "pick and update, which writes the row and both index entries anew",
        "P03, P06, P13: taken once; others pass by",
    ),
    (
        "insert into `claim`, delete from it",
        "none: the message's number finishes it, whoever has it by now",
        "P08: only the claim that holds a message finishes it; P04, P09",
    ),
    ("read `message`", "none: the update returns it", "follows from two tables"),
)


_BETWEEN = """\
Promises are told in [PROMISES.md](../sql/PROMISES.md). Between the rows alone and rowq lie the
checks of P15, the queue's name and settings (P18), the floor of the lane (P13), the owner's
rights and pinned settings (P16, P13), a look for listeners, and a result with the columns of the
contract."""


def render(data: dict[str, Any]) -> str:
    """Return the whole page."""
    costs = figures(data)
    names = [form["name"] for form in data["forms"]]
    beside = names[-1]
    title = {form["name"]: form["title"] for form in data["forms"]}
    kinds = [*SINGLE, CYCLE, PUT]
    rows = [
        [
            f"**{title[name]}**" if name == "rowq" else title[name],
            *(spread_text(spread(costs[name, kind])) for kind in kinds),
        ]
        for name in names
    ]
    shares = [
        [
            f"{title[name]} / {title[beside]}",
            *(spread_text(spread(ratios(costs, kind, name, beside))) for kind in kinds),
        ]
        for name in names
        if name != beside
    ]
    setting = data["settings"]
    parts = [
        generated_from("results/floor.json"),
        "# The floor on PostgreSQL",
        _HEAD,
        *notes(data),
        "## What it says",
        *(_verdict(costs, beside, kind) for kind in (CYCLE, PUT)),
        "## Figures",
        _HOW,
        f"{setting['rounds']} rounds; a turn is {setting['calls']} calls of each kind one by one,"
        f" and {setting['batches']} calls that put in {BATCH}; bodies of 200 bytes.",
        table(["", *(f"`{kind}`" if kind != CYCLE else kind for kind in kinds)], [*rows, *shares]),
        "## Which rows, and for which promise",
        table(["rowq", "pgmq", "promise"], _ROWS),
        _BETWEEN,
        "## Machine and server",
        facts(data, "PostgreSQL", "prepared statements by psycopg's libpq calls"),
    ]
    return "\n\n".join(parts) + "\n"


def figures(data: dict[str, Any]) -> dict[tuple[str, str], list[float]]:
    """Return the µs of each form and kind of call by round, those of a whole cycle added."""
    found: dict[tuple[str, str], list[float]] = {}
    for turn in sorted(data["rounds"], key=lambda turn: turn["round"]):
        costs = {kind: turn[kind] for kind in (*SINGLE, PUT)}
        costs[CYCLE] = sum(turn[kind] for kind in SINGLE)
        for kind, cost in costs.items():
            found.setdefault((turn["form"], kind), []).append(cost)
    return found


def ratios(
    costs: dict[tuple[str, str], list[float]], kind: str, name: str, below: str
) -> list[float]:
    """Return the ratio of two forms in each round."""
    return [x / y for x, y in zip(costs[name, kind], costs[below, kind], strict=True)]


def _verdict(costs: dict[tuple[str, str], list[float]], beside: str, kind: str) -> str:
    """Return what the figures say of a target, whatever they are."""
    median = {name: statistics.median(values) for (name, of), values in costs.items() if of == kind}
    own, floor = (
        statistics.median(ratios(costs, kind, name, beside)) for name in ("rowq", "rowq_rows")
    )
    bound = 1 / RATE if kind == CYCLE else 1.0
    what, target = (
        ("One by one", f"A rate of {RATE} times pgmq's is a cost of {bound:.2f} of it")
        if kind == CYCLE
        else (
            f"Putting in, {BATCH} in a call",
            "To be level with pgmq is a cost of 1.00 of it at most",
        )
    )
    if own <= bound:
        said = f"rowq costs {own:.2f}: **the target is met in server CPU.**"
    elif abs(floor / bound - 1) <= _LIKE:
        said = (
            f"rowq costs {own:.2f}, and its rows alone {floor:.2f}: **the rows alone take all that"
            " the target leaves in server CPU**, within the twentieth by which such medians vary,"
            " so a call that also checks cannot reach it."
        )
    elif floor > bound:
        said = (
            f"rowq costs {own:.2f}, and its rows alone {floor:.2f}: **the target is out of reach in"
            f" server CPU**, as the floor is {floor / bound - 1:.0%} above it."
        )
    else:
        said = (
            f"rowq costs {own:.2f}, and its rows alone {floor:.2f}: **the floor leaves room for the"
            f" target in server CPU**, if {1 - bound / own:.0%} of what rowq costs could go, which"
            f" is {(own - bound) / (own - floor):.0%} of all that is not rows."
        )
    around = median["rowq"] - median["rowq_rows"]
    rows = median["rowq_rows"] - median["pgmq_rows"]
    than = "more" if rows >= 0 else "less"
    return (
        f"**{what}.** {target}, where the processor decides. {said} Of rowq's"
        f" {median['rowq']:.1f} µs, {median['rowq_rows']:.1f} are rows, and {around:.1f} what is"
        f" around them; its rows take {abs(rows):.1f} µs {than} than pgmq's rows alone."
    )
