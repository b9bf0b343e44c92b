"""Calls of one queue on a Citus cluster, beside the same calls on one of its servers by itself.

All nodes must be on this machine, because the processor time of every server process is read here.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.engines.postgres.session import Libpq
from benchmarks.harness.bodies import body
from benchmarks.harness.host import commit_of, host_facts, running_seconds
from rowq.migrate import migrate
from rowq.postgres.citus.install import install
from rowq.postgres.citus.nodes import Node
from tests.engines.postgres.citus import Cluster, on_node
from tests.engines.postgres.server import with_database

BATCH = 50
_QUEUE = "queue/1"
_WARM_UP = 5
_ROUNDS = 10
_HOME = """
    select p.groupid from pg_dist_placement p
    where p.shardid = get_shard_id_for_distribution_column('rowq_citus.route', %s::text)
"""
_BACKENDS = """
    select pid from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
      and pid <> pg_backend_pid()
"""
_CALLS = {
    "enqueue": "select message_id from rowq.enqueue($1::text, $2::text)",
    "enqueue_batch": "select count(*) from rowq.enqueue_batch($1::text, $2::jsonb)",
    "dequeue": "select claim_id from rowq.dequeue_fast($1::text, $2::integer)",
    "complete": "select count(*) from rowq.complete($1::text, $2::bigint)",
}


@dataclass(frozen=True, slots=True)
class _Way:
    """Where a session is, and whose processor time its calls take."""

    name: str
    url: str
    servers: tuple[str, ...]


def run_cluster(
    url: str, calls: int, *, home: Path, root: Path, command: str, note: str
) -> dict[str, Any]:
    """Measure each way to call a queue; return the results as JSON data.

    Args:
        url: a superuser's, of the coordinator; databases are made on every node, and dropped.
        calls: of each kind in a round.
        home: a directory whose disk is measured.
        root: the checkout.
        command: for the report.
        note: for the report.
    """
    began = time.monotonic()
    home.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(url, "a given cluster", None, lambda: None)
    with contextlib.closing(cluster), contextlib.ExitStack() as stack:
        facts = {
            "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": commit_of(root),
            "command": command,
            "note": note,
            "host": host_facts(home),
            "server": _server(url),
        }
        ways = [_measured(way, calls) for way in _ways(cluster, stack)]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "settings": {"calls": calls, "rounds": _ROUNDS, "batch": BATCH},
        "nodes": len(cluster.nodes),
        "ways": ways,
    }


def _server(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        (citus,) = connection.execute(
            "select extversion from pg_extension where extname = 'citus'"
        ).fetchone() or ("",)
        shown = connection.execute(
            "select name, current_setting(name) from pg_settings"
            " where name in ('fsync', 'synchronous_commit', 'shared_buffers') order by name"
        ).fetchall()
        version = str(connection.info.parameter_status("server_version")).split()[0]
    return {"version": version, "origin": f"a given cluster, Citus {citus}"} | dict(shown)


def _ways(cluster: Cluster, stack: contextlib.ExitStack) -> Iterator[_Way]:
    routed = cluster.fresh_database()
    install(routed)
    with psycopg.connect(routed, autocommit=True) as connection:
        connection.execute("select rowq.create_queue(%s)", [_QUEUE])
        (group,) = connection.execute(_HOME, [_QUEUE]).fetchone() or (0,)
    home = next(node for node in cluster.nodes if node.group == group)
    others = [node for node in cluster.nodes if node.group not in (0, group)]
    every = tuple(on_node(routed, node) for node in cluster.nodes)
    alone = stack.enter_context(_alone(home))
    yield _Way("one server", alone, (alone,))
    yield _Way("a session on the coordinator", routed, every)
    yield _Way("a session on the queue's node", on_node(routed, home), every)
    if others:
        yield _Way("a session on another worker", on_node(routed, others[0]), every)


@contextlib.contextmanager
def _alone(node: Node) -> Iterator[str]:
    """Make a database without Citus on a node's server, and return its URL."""
    name = sql.Identifier("rowq_bench_alone")
    with psycopg.connect(node.url, autocommit=True) as connection:
        connection.execute("set citus.enable_create_database_propagation to off")
        connection.execute(sql.SQL("create database {} template template0").format(name))
        try:
            url = with_database(node.url, "rowq_bench_alone")
            migrate(url)
            with psycopg.connect(url, autocommit=True) as made:
                made.execute("select rowq.create_queue(%s)", [_QUEUE])
            yield url
        finally:
            connection.execute(sql.SQL("drop database {} with (force)").format(name))


def _measured(way: _Way, calls: int) -> dict[str, Any]:
    """Return µs of all servers' processors a message, and ms a call, one by one and in batches."""
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(contextlib.closing(Libpq(way.url)))
        for name, statement in _CALLS.items():
            session.prepare(name, statement)
        lookers = [
            stack.enter_context(psycopg.connect(server, autocommit=True)) for server in way.servers
        ]

        def spent() -> float:
            pids = [pid for looker in lookers for (pid,) in looker.execute(_BACKENDS)]
            return sum(map(running_seconds, pids))

        return {
            "way": way.name,
            "single": _rounds(session, spent, calls, 1),
            "batch": _rounds(session, spent, max(calls // 5, 3), BATCH),
        }


def _rounds(session: Libpq, spent: Callable[[], float], calls: int, size: int) -> dict[str, float]:
    _cycle(session, spent, _WARM_UP, size)
    rounds = [_cycle(session, spent, calls, size) for _ in range(_ROUNDS)]
    return {name: round(min(one[name] for one in rounds), 3) for name in rounds[0]}


def _cycle(session: Libpq, spent: Callable[[], float], calls: int, size: int) -> dict[str, float]:
    """Let messages live; what else the machine does only adds, so the least round counts."""
    queue, count = _QUEUE.encode(), str(size).encode()
    bodies = [body(number) for number in range(size)]
    batch = json.dumps([{"body": text.decode()} for text in bodies]).encode()
    claims: list[bytes] = []

    def enqueue() -> None:
        if size == 1:
            session.call("enqueue", [queue, bodies[0]])
        else:
            session.call("enqueue_batch", [queue, batch])

    def dequeue() -> None:
        claims.append(session.call("dequeue", [queue, count]).get_value(0, 0) or b"")

    def complete() -> None:
        session.call("complete", [queue, claims.pop()])

    figures: dict[str, float] = {}
    before = spent()
    for name, act in (("enqueue", enqueue), ("dequeue", dequeue), ("complete", complete)):
        start = time.perf_counter()
        for _ in range(calls):
            act()
        figures[f"{name}_ms"] = (time.perf_counter() - start) / calls * 1000
    figures["cpu_us"] = (spent() - before) / (calls * size) * 1e6
    return figures
