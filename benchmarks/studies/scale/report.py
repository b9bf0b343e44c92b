"""Writes RESULTS-scale.md from the results and nothing else."""

from typing import Any

from benchmarks.harness.report import facts, generated_from, notes, table

_HEAD = """\
Made by `make bench ARGS="--set scale"` from [results/scale.json](results/scale.json), in one run on
one PostgreSQL server. What it means for a plan is in [SCALE.md](SCALE.md)."""

_QUEUES = """\
Queues are added to those that there are, and one of them is worked at by one session: messages of
200 bytes, one at a time. CPU is that of the session's server process, so that other programs on the
machine count little, and the least of ten rounds; buffers are those that `explain (analyze,
buffers)` counts for one dequeue with all statements in it. All queues but this one are empty. A
call of `maintain` without a name takes 1,000 queues, at random where there are more. Memory is the
session process's own, without the server's buffers: new, and after the calls of the table."""

_CONNECTIONS = """\
Each client has one call of `enqueue` under way all the time, and all wait for the disk. Direct
clients have a session of the server each; PgBouncer, in transaction mode, gives them {pool}
sessions in turn. Statements are not prepared."""

_CLUSTER = """\
Made by `make bench ARGS="--set scale --citus-url ..."` from
[results/scale_citus.json](results/scale_citus.json), in one run on {nodes} nodes on one machine;
[the page on clusters](../sql/postgres/citus/README.md) says how rowq works there. One session works
at one queue: messages of 200 bytes, {calls} calls of each kind in a round one by one, and a fifth
as many with {batch} messages at once. CPU is that of all server processes of all nodes, and with
the times it is the least of {rounds} rounds. The first line is a database without Citus on the
server of the queue's node."""

_COSTS = {
    "create_us": "create a queue, CPU µs",
    "database_mib": "database, MiB",
    "enqueue_us": "enqueue, CPU µs",
    "dequeue_us": "dequeue, CPU µs",
    "complete_us": "complete, CPU µs",
    "empty_dequeue_us": "dequeue that finds nothing, CPU µs",
    "dequeue_buffers": "dequeue, buffers",
    "maintain_one_ms": "maintain of one queue, CPU ms",
    "maintain_ms": "maintain without a name, CPU ms",
    "maintained_queues": "queues that such a call takes",
    "queue_stats_ms": "queue_stats of all queues, CPU ms",
    "session_new_kib": "memory of a new session, KiB",
    "session_used_kib": "the same after these calls, KiB",
}
_CLIENTS = {
    "queues": "queues enqueued into",
    "clients": "clients",
    "messages": "messages",
    "sessions": "sessions of the server",
    "sessions_mib": "memory of these, MiB",
    "server_us": "server CPU a message, µs",
    "pooler_us": "PgBouncer's CPU a message, µs",
    "pooler_kib": "memory of PgBouncer, KiB",
    "messages_per_second": "messages/s",
}


def render(data: dict[str, Any], cluster: dict[str, Any] | None = None) -> str:
    """Return the whole page; cluster: what was measured on one, if anything was."""
    sizes, ways = data["sizes"], data["connections"]
    parts = [
        generated_from("results/scale.json", *(["results/scale_citus.json"] if cluster else [])),
        "# Many queues, and many connections, on one PostgreSQL",
        _HEAD,
        *notes(data),
        "## What it says",
        _said(data),
        "## Queues",
        _QUEUES,
        f"{data['settings']['calls']} calls of each kind in a round.",
        table(
            ["", *(f"{size['queues']:,} queues" for size in sizes)],
            ([title, *(_number(size[key]) for size in sizes)] for key, title in _COSTS.items()),
        ),
        "## Connections",
        _CONNECTIONS.format(pool=data["settings"]["pool"]),
        table(
            ["", *(way["way"] for way in ways)],
            ([title, *(_number(way.get(key)) for way in ways)] for key, title in _CLIENTS.items()),
        ),
        "## Machine and server",
        facts(data, "PostgreSQL", "psycopg's libpq calls"),
        *(_on_cluster(cluster) if cluster else []),
    ]
    return "\n\n".join(parts) + "\n"


def cluster_costs(data: dict[str, Any]) -> str:
    """Return the table of what calls cost on a cluster."""
    batch = data["settings"]["batch"]
    alone = data["ways"][0]
    return table(
        [
            "",
            "enqueue, dequeue, complete, ms",
            "CPU µs a message",
            "times",
            f"{batch} at once, ms",
            "CPU µs a message",
            "times",
        ],
        (
            [
                way["way"],
                _milliseconds(way["single"]),
                _number(way["single"]["cpu_us"]),
                f"{way['single']['cpu_us'] / alone['single']['cpu_us']:.1f}",
                _milliseconds(way["batch"]),
                _number(way["batch"]["cpu_us"]),
                f"{way['batch']['cpu_us'] / alone['batch']['cpu_us']:.1f}",
            ]
            for way in data["ways"]
        ),
    )


def _milliseconds(figures: dict[str, float]) -> str:
    return ", ".join(f"{figures[f'{name}_ms']:.2f}" for name in ("enqueue", "dequeue", "complete"))


def _on_cluster(data: dict[str, Any]) -> list[str]:
    return [
        "## One queue on a Citus cluster",
        _CLUSTER.format(**data["settings"], nodes=data["nodes"]),
        *notes(data),
        cluster_costs(data),
        facts(data, "PostgreSQL", "psycopg's libpq calls"),
    ]


def _said(data: dict[str, Any]) -> str:
    """Return what the figures say, whatever they are."""
    few, many = data["sizes"][0], data["sizes"][-1]
    hot, direct, pooled = data["connections"]
    buffers = many["dequeue_buffers"] - few["dequeue_buffers"]
    same = (
        "as many buffers as"
        if not buffers
        else f"{abs(buffers):g} buffers " + ("more than" if buffers > 0 else "fewer than")
    )
    sessions = direct["sessions_mib"] / direct["sessions"]
    return (
        f"- With {many['queues']:,} queues a dequeue of one of them reads {same} with"
        f" {few['queues']:,} ({many['dequeue_buffers']:g}), and takes"
        f" {many['dequeue_us']:.0f} µs of CPU where it took {few['dequeue_us']:.0f}.\n"
        f"- `maintain` without a name takes {many['maintained_queues']:,} of them in"
        f" {many['maintain_ms']:,.0f} ms of CPU; of one queue by its name"
        f" {many['maintain_one_ms']:.2f} ms.\n"
        f"- {hot['clients']} sessions took {hot['server_us']:.0f} µs of CPU a message at"
        f" {hot['queues']} queue, and {direct['server_us']:.0f} at {direct['queues']}.\n"
        f"- {pooled['clients']:,} clients have worked through {pooled['sessions']} sessions with"
        f" {pooled['sessions_mib']:,.0f} MiB; a session each, of {sessions:.1f} MiB, would be"
        f" {sessions * pooled['clients'] / 1024:.1f} GiB. PgBouncer took"
        f" {pooled['pooler_us']:.0f} µs of CPU a message, and the server {pooled['server_us']:.0f}."
    )


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:,.2f}"
