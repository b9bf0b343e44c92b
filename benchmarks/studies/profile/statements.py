"""The statements inside a call: who runs them, and what each of them costs.

Two of the server's modules tell. auto_explain reports every statement with the line of the function
that runs it, so the tree of a call is known; it slows a call down several times. pg_stat_statements
adds up what each statement took, and slows it down little.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import psycopg

# The functions and lines that a statement runs in, the innermost first.
Frames = tuple[tuple[str, int], ...]

SETTINGS = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "none",
    "pg_stat_statements.max": "5000",
    "compute_query_id": "on",
    "autovacuum": "off",
}
"""What the server is started with, besides the benchmarks' own."""

_EXPLAIN = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_timing": "off",
    "log_verbose": "on",
    "log_format": "json",
    "log_level": "notice",
}
_FRAME = re.compile(r"^PL/pgSQL function (?:rowq\.)?(\w+)\(.*?\) line (\d+) at ", re.MULTILINE)
_TOTALS = """
    select queryid, toplevel, query, calls, total_exec_time, shared_blks_hit + shared_blks_read,
           wal_records, wal_bytes::bigint
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
"""


@dataclass(slots=True)
class Place:
    """A statement as auto_explain shows it: its text, and the lines that it runs in."""

    text: str
    frames: Frames


class Watcher:
    """Collects the places of the statements of a session, while it is on."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.places: dict[int, Place] = {}
        connection.execute("load 'auto_explain'")
        connection.add_notice_handler(self._note)

    def __enter__(self) -> Watcher:
        for name, value in _EXPLAIN.items():
            self._connection.execute(f"set auto_explain.{name} = '{value}'")
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.execute("set auto_explain.log_min_duration = '-1'")

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        _, mark, plan = (notice.message_primary or "").partition("plan:\n")
        if not mark:
            return
        shown = json.loads(plan)
        frames = tuple((name, int(line)) for name, line in _FRAME.findall(notice.context or ""))
        if "Query Identifier" in shown:
            text = " ".join(shown["Query Text"].split())
            self.places.setdefault(shown["Query Identifier"], Place(text, frames))


@dataclass(slots=True)
class Statement:
    """One statement, or what a function does besides its statements; all for one call.

    depth: how far inside. where: function and line. milliseconds, buffers, wal_bytes: of its own,
    without the statements inside it. calls: of it.
    """

    depth: int
    where: str
    text: str
    calls: float
    milliseconds: float
    buffers: float
    wal_bytes: float


@dataclass(slots=True)
class _Node:
    place: Place
    totals: list[float]
    inside: list[_Node] = field(default_factory=list)


def start(connection: psycopg.Connection) -> None:
    """Note statements from now on, from nothing."""
    connection.execute("select pg_stat_statements_reset()")
    connection.execute("set pg_stat_statements.track = 'all'")


def stop(connection: psycopg.Connection, places: dict[int, Place], calls: int) -> list[Statement]:
    """Stop noting and return the tree of the call that was made so often, outermost first.

    A statement that the watcher never saw is taken as part of what surrounds it.
    """
    connection.execute("set pg_stat_statements.track = 'none'")
    roots: list[_Node] = []
    nodes: list[_Node] = []
    for queryid, toplevel, query, *totals in connection.execute(_TOTALS).fetchall():
        if toplevel and "pg_stat_statements" not in query and not query.startswith("set "):
            place = places.get(queryid, Place(" ".join(query.split()), ()))
            roots.append(_Node(Place(place.text, ()), totals))
        elif not toplevel and queryid in places:
            nodes.append(_Node(places[queryid], totals))
    roots = [root for root in roots if root.totals[0] == calls]
    for node in nodes:
        _parent(node, roots[0], nodes).inside.append(node)
    return [statement for root in roots for statement in _flatten(root, calls, 0)]


def _parent(node: _Node, root: _Node, nodes: Iterable[_Node]) -> _Node:
    """Return the statement whose lines are the surrounding ones; plain expressions are none."""
    outer = node.place.frames[1:]
    while outer:
        for other in nodes:
            if other.place.frames == outer:
                return other
        outer = outer[1:]
    return root


def _flatten(node: _Node, calls: int, depth: int) -> Iterator[Statement]:
    own = [total - sum(x.totals[i] for x in node.inside) for i, total in enumerate(node.totals)]
    where = "{}:{}".format(*node.place.frames[0]) if node.place.frames else ""
    yield Statement(
        depth=depth,
        where=where,
        text=node.place.text,
        calls=node.totals[0] / calls,
        milliseconds=own[1] / calls,
        buffers=own[2] / calls,
        wal_bytes=own[4] / calls,
    )
    for inner in sorted(node.inside, key=_order):
        yield from _flatten(inner, calls, depth + 1)


def _order(node: _Node) -> list[int]:
    """Order statements as they stand in the functions."""
    return [line for _, line in reversed(node.place.frames)]
