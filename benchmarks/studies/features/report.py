"""Writes RESULTS-features.md from the results and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.harness.measure import Spread, spread
from benchmarks.harness.report import (
    facts,
    generated_from,
    notes,
    spread_text,
    table,
    target_row,
)
from benchmarks.harness.targets import Target
from benchmarks.studies.features.courses import PUT, STEPS, TAKE
from benchmarks.studies.features.features import (
    BATCHES,
    PLAIN,
    RESULT,
    RESULT_BYTES,
    SCHEDULE,
    SCHEDULES,
)
from benchmarks.studies.features.houses import AT_ONCE, EACH_SECOND, TARGET
from benchmarks.studies.features.recurring import PG_BOSS_OUTPUT, PG_BOSS_PLAIN

PRODUCTS = {"features": "PostgreSQL", "features_mariadb": "MariaDB"}
SOURCES = tuple(PRODUCTS)
BOUND = 2.0
"""The most of a core, in per cent, that one maintain a second may take where nothing is due."""

_FIGURES = {
    "statements": "statements",
    "buffers": "buffers",
    "wal_bytes": "WAL bytes",
    "cpu_us": "CPU µs",
}
_HEAD = """\
Made by `make bench ARGS="--set features"` and the same with `--engine mariadb` from
[results/features.json](results/features.json) and
[results/features_mariadb.json](results/features_mariadb.json). What each feature of rowq costs
while it is on, beside a message that uses none; what maintain costs where nothing is due; and what
other queues spend where they have the like. Figures of different runs do not compare."""

_HOW = """\
Each feature has a queue of its own in one database, and the features take turns in each round. A
turn puts messages in, dequeues and completes them, and calls `maintain` once for each of its
queues, twice over: against the clock, and counted. Before each there are no dead rows, and some
messages pass so that plans are made. Commits do not wait for the disk, and autovacuum is off, so
that nothing but the work itself is in it.

- **statements**: all that `pg_stat_statements` counts: the client's, those inside functions, checks
  of foreign keys.
- **buffers**: hit or read, the same way. **WAL bytes**: how far the log's position moved.
- **CPU µs**: of the session's server process on a processor, by `/proc`.

Figures are of one message: the median of the rounds, the least and the greatest in brackets."""

_SHAPES = """\
What a feature costs depends on how much of it is used; these are the shapes measured here.
`max_leased` and `rate_limit` count what is leased or has begun lately, so they cost more the more
that is. Every figure of predecessors is the mean of a message that waits and of one that does not;
those of a topic are of one delivery. A schedule's messages are put in by `maintain`, which finds
one schedule due in batch 1 and fifty in batch 50; their clocks are set back by hand."""

_IDLE = """\
Queues that have had a message, cron schedules that are due next year, and `maintain()` for all of
them, which finds nothing to do. "One a second" are single calls with a second between them, when
other work has had the processor's caches; "one after the other" are calls in a row. Per cent of a
core is CPU at one call a second. On PostgreSQL CPU is that of the session's process, on MariaDB
that of the whole server while the call runs; its buffers are `Innodb_buffer_pool_read_requests`,
and its log is the redo log."""

_WHY = """\
Where the target is missed: `maintain` looks for a due schedule among all of the queue's, as
`rowq.schedule` has no index on the time, so what it costs grows with the schedules. On PostgreSQL a
look that takes long is taken for one over dead rows, so that the steps of every queue follow."""

_TICKS = f"""\
{SCHEDULES} schedules fall due at once; each makes one message, with a body of 200 bytes, which is
then taken and completed. One session of each, in turns with the features above.

- **rowq**: one `maintain` for all; one call that dequeues all, and one that completes them.
- **procrastinate**: its SQL `defer_periodic_job`, `fetch_job` and `finish_job`, prepared, a call
  for each. The schedules are in the program, which works out the times. Every worker makes the call
  for every tick and one of them makes the job: what the others' calls cost is not here. Finished
  jobs stay.
- **pg-boss**: its own client. A pass finds what is due and forwards it to a queue of its own, from
  which a worker sends each job; Node.js works out the times. One pass is measured; by default there
  are two a minute, of which the second one's jobs are refused. Finished jobs stay.
- **scheduler**: the table of [seed 004](README.md#seeds), by lock and fetch. The row is at once the
  schedule and the work: nothing is put in, and there is no message to retry, to keep or to count;
  when the work is done an update moves the row to its next time, which the program works out."""

_OUTPUT = f"""\
{SCHEDULES} messages are taken in one call and completed in another, without a result and with one
of {RESULT_BYTES} bytes for each. pg-boss keeps it in the job's row; rowq in a row of its own, which
maintain removes when its time is over."""


def render(found: Mapping[str, dict[str, Any]]) -> str:
    """Return the whole page, of the results that are there."""
    data = found.get("features")
    parts = [
        generated_from(*(f"results/{name}.json" for name in found)),
        "# What features cost",
        _HEAD,
        *(paragraph for run in found.values() for paragraph in notes(run)),
        *_targets(found),
        *([] if data is None else _features(data)),
        "## Housekeeping where nothing is due",
        _IDLE,
        table(["", "queues", "schedules of each", "called", *_HEADS_IDLE], _idle_rows(found)),
        *([] if all(target.is_met for target in targets(found)) else [_WHY]),
        *([] if data is None else _others(data)),
        *_machines(found),
    ]
    return "\n\n".join(parts) + "\n"


def totals(data: dict[str, Any], name: str, batch: int, figure: str) -> list[float]:
    """Return a figure of a message's whole way in each round."""
    return [
        sum(costs[figure] for costs in turn["costs"].values()) for turn in _turns(data, name, batch)
    ]


def share_of_core(data: dict[str, Any], queues: int, schedules: int, pace: str) -> Spread | None:
    """Return the per cent of a core that one maintain a second takes."""
    values = _idle_values(data, queues, schedules, pace, "cpu_us")
    return spread([value / 1e4 for value in values]) if values else None


def targets(found: Mapping[str, dict[str, Any]]) -> Iterator[Target]:
    """Yield the targets of idle housekeeping."""
    for name, data in found.items():
        for house in TARGET:
            what = (
                f"{PRODUCTS[name]}: {house.queues} queues, {house.queues * house.schedules:,}"
                " schedules, nothing due: % of a core at one maintain a second"
            )
            share = share_of_core(data, house.queues, house.schedules, EACH_SECOND)
            yield Target(what, BOUND, False, share)


def _targets(found: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    yield "## Target"
    rows = [target_row(target)[:-1] for target in targets(found)]
    yield table(["", "target", "found", ""], rows)


def _turns(data: dict[str, Any], name: str, batch: int | None = None) -> list[dict[str, Any]]:
    turns = sorted(data["rounds"], key=lambda turn: turn["round"])
    return [t for t in turns if t["name"] == name and batch in (None, t["batch"])]


def _features(data: dict[str, Any]) -> Iterator[str]:
    setting = data["settings"]
    yield "## A message with a feature"
    yield _HOW
    turn = f"about {setting['messages']} messages"
    yield f"{setting['rounds']} rounds; a turn is of {turn}; bodies of 200 bytes."
    yield "### The whole way, times that of a plain message"
    heads = [f"{head}, batch {batch}" for batch in BATCHES for head in ("statements", *_HEADS)]
    yield table(["", "", *heads], (_ratios(data, feature) for feature in data["features"]))
    yield _SHAPES
    for batch in BATCHES:
        yield f"### Step by step, {_in_calls(batch)}"
        yield table(["", "step", *_FIGURES.values()], _steps(data, batch))


_HEADS = ("buffers", "WAL", "CPU")
_HEADS_IDLE = ("% of a core", *_FIGURES.values())


def _in_calls(batch: int) -> str:
    return "one message a call" if batch == 1 else f"{batch} messages a call"


def _ratios(data: dict[str, Any], feature: dict[str, str]) -> list[str]:
    """Return a feature's row: each figure by that of plain in the same round."""
    cells = []
    for batch in BATCHES:
        for figure in _FIGURES:
            pairs = zip(
                totals(data, feature["name"], batch, figure),
                totals(data, PLAIN, batch, figure),
                strict=True,
            )
            found = spread([own / plain for own, plain in pairs])
            cells.append(spread_text(found) if figure == "cpu_us" else f"{found.median:.2f}")
    return [f"**{feature['name']}**", feature["title"], *cells]


def _steps(data: dict[str, Any], batch: int) -> Iterator[list[str]]:
    for feature in data["features"]:
        turns = _turns(data, feature["name"], batch)
        for step in STEPS:
            name = f"**{feature['name']}**" if step == STEPS[0] else ""
            shown = f"{step} by maintain" if (step, feature["by"]) == (PUT, "maintain") else step
            yield [name, shown, *_cells([turn["costs"][step] for turn in turns])]


def _cells(costs: list[dict[str, float]]) -> Iterator[str]:
    for figure in _FIGURES:
        yield spread_text(spread([cost[figure] for cost in costs])) if costs else ""


def _idle_rows(found: Mapping[str, dict[str, Any]]) -> Iterator[list[str]]:
    for name, data in found.items():
        houses = dict.fromkeys((record["queues"], record["schedules"]) for record in data["idle"])
        for queues, schedules in houses:
            for pace in (EACH_SECOND, AT_ONCE):
                cells = [
                    spread_text(spread(values)) if values else "not measured"
                    for figure in _FIGURES
                    for values in [_idle_values(data, queues, schedules, pace, figure)]
                ]
                share = spread_text(share_of_core(data, queues, schedules, pace))
                yield [PRODUCTS[name], f"{queues}", f"{schedules:,}", pace, share, *cells]


def _idle_values(
    data: dict[str, Any], queues: int, schedules: int, pace: str, figure: str
) -> list[float]:
    return [
        record[figure]
        for record in data["idle"]
        if (record["queues"], record["schedules"], record["pace"]) == (queues, schedules, pace)
        and figure in record
    ]


def _others(data: dict[str, Any]) -> Iterator[str]:
    yield "## Beside other queues"
    absent = [f"{other['name']} is left out: {other['absent']}." for other in _absent(data)]
    yield from (f"**{sentence}**" for sentence in absent)
    yield "### A schedule's tick, and the work that it makes"
    yield _TICKS
    names = {"rowq": (SCHEDULE, SCHEDULES)}
    names |= {other["name"]: (other["name"], None) for other in data["others"]}
    yield table(["", "step", *_FIGURES.values()], _tick_rows(data, names))
    yield "### A result"
    yield _OUTPUT
    yield table(["", *_FIGURES.values()], _output_rows(data))
    versions = [[o["name"], o["version"], o["origin"]] for o in data["others"]]
    yield table(["", "version", "origin"], versions)


def _absent(data: dict[str, Any]) -> Iterable[dict[str, str]]:
    return [other for other in data["others"] if "absent" in other]


def _tick_rows(
    data: dict[str, Any], names: Mapping[str, tuple[str, int | None]]
) -> Iterator[list[str]]:
    for shown, (name, batch) in names.items():
        turns = _turns(data, name, batch)
        if not turns:
            continue
        steps = [step for step in (PUT, TAKE) if step in turns[0]["costs"]]
        for step in steps:
            title = f"**{shown}**" if step == steps[0] else ""
            yield [title, step, *_cells([turn["costs"][step] for turn in turns])]
        if len(steps) > 1:
            sums = [
                {f: sum(turn["costs"][step][f] for step in steps) for f in _FIGURES}
                for turn in turns
            ]
            yield ["", "both", *_cells(sums)]


def _output_rows(data: dict[str, Any]) -> Iterator[list[str]]:
    """Return what it costs to take and complete."""
    names = {"rowq, no result": PLAIN, "rowq, result": RESULT}
    names |= {name: name for name in (PG_BOSS_PLAIN, PG_BOSS_OUTPUT)}
    for shown, name in names.items():
        batch = SCHEDULES if shown != name else None
        if turns := _turns(data, name, batch):
            yield [f"**{shown}**", *_cells([turn["costs"][TAKE] for turn in turns])]


def _machines(found: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    yield "## Machine and server"
    clients = {"features": "prepared statements by psycopg's libpq calls"}
    for name, data in found.items():
        yield facts(data, PRODUCTS[name], clients.get(name, "texts through libmariadb"))
