"""Makes many queues, and many connections, and returns what they cost as JSON data."""

import contextlib
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.engines.postgres.lab import SETTINGS, open_lab
from benchmarks.engines.postgres.session import Libpq
from benchmarks.harness.bodies import body
from benchmarks.harness.host import running_seconds
from benchmarks.harness.runner import run_facts
from benchmarks.studies.queues.systems import rowq
from tests.engines.postgres.pgbouncer import PROGRAM, TO_RUN, pooled

POOL = 20
"""Sessions that PgBouncer has with the server."""
MANY = 10
"""Queues that clients enqueue into where they are not all at one."""
DIRECT = 100
"""Connections without a pooler whose memory is looked at, in the whole run."""
_SETTINGS = SETTINGS | {"max_connections": "150"}
_CHUNK = 1000
_WARM_UP = 5
# The least of so many rounds counts: what else the machine does only adds to processor time.
_ROUNDS = 10
_CREATE = (
    "select count(*) from generate_series($1::integer, $2::integer) n,"
    " rowq.create_queue('queue/' || n)"
)
_CALLS = {
    "enqueue": "select message_id from rowq.enqueue($1::text, $2::text)",
    "dequeue": "select claim_id, message_id from rowq.dequeue_fast($1::text)",
    "complete": "select outcome from rowq.complete($1::text, $2::bigint)",
}
_BUFFERS = re.compile(r"shared (?:hit=(\d+))? ?(?:read=(\d+))?")
_MEASURED = "queue/1"


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """The settings of a run.

    queues: how many there are, size by size. calls: of each kind in a round. clients: connections
    through PgBouncer. messages: that each of them enqueues. home: the private server's directory.
    root: the checkout. command, note: for the report.
    """

    queues: Sequence[int]
    calls: int
    clients: int
    messages: int
    home: Path
    root: Path
    command: str
    note: str


def run_scale(plan: ScalePlan) -> dict[str, Any]:
    """Measure all sizes and both ways to connect; return the results as JSON data."""
    if PROGRAM is None:
        raise RuntimeError(TO_RUN)
    began = time.monotonic()
    with open_lab(None, plan.home, _SETTINGS) as lab:
        facts = run_facts(lab, plan.root, plan.command, plan.note)
        system = rowq()
        lab.prepare(system)
        with lab.database(system) as url:
            sizes = list(_sizes(plan, url))
            connections = [_direct(plan, url, 1), _direct(plan, url, MANY), _pooled(plan, url)]
    return facts | {
        "minutes": round((time.monotonic() - began) / 60, 1),
        "settings": {"calls": plan.calls, "messages": plan.messages, "pool": POOL},
        "sizes": sizes,
        "connections": connections,
    }


def _sizes(plan: ScalePlan, url: str) -> Iterator[dict[str, Any]]:
    """Yield what calls cost at each number of queues; they are added to those that there are."""
    there = 0
    for queues in plan.queues:
        created = _create(url, there + 1, queues)
        added, there = queues - there, queues
        with contextlib.closing(Libpq(url)) as session:
            session.connection.execute("analyze rowq.queue")
            memory = private_kib(session.backend)
            figures = _calls(session, plan.calls)
            after = private_kib(session.backend)
            yield {
                "queues": queues,
                "create_us": round(created / added * 1e6, 1),
                "database_mib": round(_bytes(session) / 2**20, 1),
                **figures,
                **_over_all(session),
                "session_new_kib": memory,
                "session_used_kib": after,
            }


def _create(url: str, first: int, last: int) -> float:
    """Make queues, and return the processor seconds that it took the server process."""
    with contextlib.closing(Libpq(url)) as session:
        session.prepare("create", _CREATE)
        begun = running_seconds(session.backend)
        for start in range(first, last + 1, _CHUNK):
            end = min(start + _CHUNK - 1, last)
            session.call("create", [str(start).encode(), str(end).encode()])
        return running_seconds(session.backend) - begun


def _calls(session: Libpq, calls: int) -> dict[str, float]:
    """Return µs of the server process's processor, and buffers, a call at one queue."""
    for name, statement in _CALLS.items():
        session.prepare(name, statement)
    queue = _MEASURED.encode()
    _cycle(session, queue, _WARM_UP)
    rounds = [_cycle(session, queue, calls) for _ in range(_ROUNDS)]
    figures = {name: min(costs[name] for costs in rounds) for name in rounds[0]}
    buffers = []
    for number in range(max(calls // 10, 3)):
        session.call("enqueue", [queue, body(number)])
        with session.connection.transaction(force_rollback=True):
            buffers.append(_buffers(session))
    _cycle(session, queue, len(buffers), enqueues=False)
    figures["dequeue_buffers"] = statistics.median(buffers)
    return {name: round(value, 1) for name, value in figures.items()}


def _cycle(session: Libpq, queue: bytes, calls: int, *, enqueues: bool = True) -> dict[str, float]:
    start = running_seconds(session.backend)
    for number in range(calls if enqueues else 0):
        session.call("enqueue", [queue, body(number)])
    put = running_seconds(session.backend)
    claims = [session.call("dequeue", [queue]).get_value(0, 0) or b"" for _ in range(calls)]
    took = running_seconds(session.backend)
    for claim in claims:
        session.call("complete", [queue, claim])
    done = running_seconds(session.backend)
    for _ in range(calls if enqueues else 0):
        session.call("dequeue", [queue])
    spent = {
        "enqueue_us": put - start,
        "dequeue_us": took - put,
        "complete_us": done - took,
        "empty_dequeue_us": running_seconds(session.backend) - done,
    }
    return {name: seconds / calls * 1e6 for name, seconds in spent.items()}


def _buffers(session: Libpq) -> int:
    """Return the buffers of one dequeue with all statements in it."""
    statement = f"explain (analyze, buffers) select * from rowq.dequeue_fast('{_MEASURED}')"
    for (line,) in session.connection.execute(statement.encode()).fetchall():
        if "Buffers: " in line and (found := _BUFFERS.search(line)):
            return sum(int(part or 0) for part in found.groups())
    raise RuntimeError("explain has shown no buffers")


def _over_all(session: Libpq) -> dict[str, float]:
    """Return ms of the server process's processor for calls about all queues, nothing to do."""
    spent: dict[str, list[float]] = {"maintain": [], "queue_stats": [], "maintain_one": []}
    statements = {
        "maintain": "select count(*) from rowq.maintain()",
        "maintain_one": f"select count(*) from rowq.maintain('{_MEASURED}')",
        "queue_stats": "select count(*) from rowq.queue_stats(p_max_count => 1)",
    }
    rows = 0
    for name, statement in statements.items():
        for _ in range(_ROUNDS if name != "queue_stats" else 3):
            start = running_seconds(session.backend)
            ((found,),) = session.connection.execute(statement.encode()).fetchall()
            spent[name].append((running_seconds(session.backend) - start) * 1e3)
            rows = found if name == "maintain" else rows
    figures = {f"{name}_ms": round(min(all_), 2) for name, all_ in spent.items()}
    return figures | {"maintained_queues": rows}


def _bytes(session: Libpq) -> int:
    ((found,),) = session.connection.execute(
        "select pg_database_size(current_database())"
    ).fetchall()
    return int(found)


def _direct(plan: ScalePlan, url: str, queues: int) -> dict[str, Any]:
    """Return what clients of so many queues cost with a session each."""
    clients = min(DIRECT, plan.clients)
    with contextlib.ExitStack() as stack:
        found = _connected(plan, url, url, clients, queues, stack)
        return {"way": "direct", **found, "pooler_us": None}


def _pooled(plan: ScalePlan, url: str) -> dict[str, Any]:
    """Return what clients cost that share the sessions of PgBouncer."""
    with contextlib.ExitStack() as stack:
        pooled_url, pid = stack.enter_context(pooled(url, POOL, clients=plan.clients + 10))
        # What libpq does not know is for rowq's own client.
        target = pooled_url.partition("?")[0]
        begun = running_seconds(pid)
        found = _connected(plan, target, url, plan.clients, MANY, stack)
        spent = running_seconds(pid) - begun
        return {
            "way": "PgBouncer",
            **found,
            "pooler_us": round(spent / found["messages"] * 1e6, 1),
            "pooler_kib": private_kib(pid),
        }


def _connected(
    plan: ScalePlan,
    target: str,
    url: str,
    clients: int,
    queues: int,
    stack: contextlib.ExitStack,
) -> dict[str, Any]:
    """Connect clients, let each have a call under way at all times, and look at the server."""
    observer = stack.enter_context(contextlib.closing(Libpq(url)))
    opened = [
        stack.enter_context(contextlib.closing(psycopg.connect(target, autocommit=True)))
        for _ in range(clients)
    ]
    _round(opened, queues, 0)
    before = _server_seconds(observer)
    began = time.monotonic()
    for number in range(plan.messages):
        _round(opened, queues, number)
    seconds = time.monotonic() - began
    after = _server_seconds(observer)
    messages = clients * plan.messages
    spent = sum(after[pid] - before.get(pid, 0.0) for pid in after)
    return {
        "queues": queues,
        "clients": clients,
        "messages": messages,
        "messages_per_second": round(messages / seconds, 1),
        "server_us": round(spent / messages * 1e6, 1),
        "sessions": len(after),
        "sessions_mib": round(sum(map(private_kib, after)) / 1024, 1),
    }


def _round(opened: Sequence[psycopg.Connection], queues: int, number: int) -> None:
    """Have every client enqueue a message, all at once; raises RuntimeError where one did not."""
    for place, connection in enumerate(opened):
        values = [f"queue/{place % queues + 1}".encode(), body(number)]
        connection.pgconn.send_query_params(_CALLS["enqueue"].encode(), values)
    for connection in opened:
        while result := connection.pgconn.get_result():
            if result.error_message:
                raise RuntimeError(result.error_message.decode())


def _server_seconds(observer: Libpq) -> dict[int, float]:
    """Return the processor seconds of each session of the database but the observer's."""
    rows = observer.connection.execute(
        "select pid from pg_stat_activity where datname = current_database()"
        " and backend_type = 'client backend' and pid <> pg_backend_pid()"
    ).fetchall()
    return {pid: running_seconds(pid) for (pid,) in rows}


def private_kib(pid: int) -> int:
    """Return the memory of a process's own, in KiB: neither files nor the server's buffers."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii")
    return sum(map(int, re.findall(r"Anonymous:\s+(\d+)", text)))
