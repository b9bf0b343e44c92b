"""Plans that SQL Server ran, as returned by SET STATISTICS XML.

Statements inside a procedure also return their plans, each as a result set of one row and column
after the statement's results.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as ET

from tests.engines.base import Connection

_SPACE = "{http://schemas.microsoft.com/sqlserver/2004/07/showplan}"
_COLUMN = "Microsoft SQL Server 2005 XML Showplan"

STEPS = frozenset({"meta", "queue", "queue_lock", "lane"})
"""Tables of a few rows, which may be scanned."""

SOUGHT = {
    "blocked": ("queue_id", "message_id"),
    "dead": ("queue_id", "message_id"),
    "dedup": ("queue_id", "dedup_key"),
    "delayed": ("queue_id", "due_at"),
    "group_waiting": ("queue_id", "group_key"),
    "leased": ("queue_id", "claim_id"),
    "message": ("queue_id", "message_id"),
    "group_slot": ("queue_id", "group_key"),
    "ready": ("queue_id", "lane"),
    "successor": ("queue_id", "predecessor_id"),
}
"""The columns that a seek must compare; by queue_id alone it reads a whole queue."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Access:
    """One operator that reads or writes one of rowq's tables.

    seek: the columns of the seek, equal ones first. rows_read: None if the operator only writes.
    """

    operator: str
    table: str
    seek: tuple[str, ...]
    rows_read: int | None


@dataclass(frozen=True)
class Plan:
    """One statement: its text, operators, accesses to rowq's tables and granted memory.

    is_spilt: the memory was too small, so rows went to tempdb. conversions: conversions of columns
    that prevent a seek.
    """

    text: str
    operators: frozenset[str]
    accesses: tuple[Access, ...]
    conversions: tuple[str, ...]
    granted_kb: int
    is_parallel: bool
    is_spilt: bool


def run(connection: Connection, statement: str, *values: Any) -> tuple[list[Row], list[Plan]]:
    """Run a call; return its rows and the plans of its statements."""
    return run_by(connection, lambda cursor: cursor.execute(statement, *values))


def run_by(
    connection: Connection, execute: Callable[[Any], object]
) -> tuple[list[Row], list[Plan]]:
    """Execute a call on a cursor; return its rows and the plans of its statements."""
    rows: list[Row] = []
    plans: list[Plan] = []
    with closing(connection.cursor()) as cursor:
        cursor.execute("set statistics xml on")
        try:
            execute(cursor)
            while True:
                if cursor.description and cursor.description[0][0] == _COLUMN:
                    plans.extend(_plans(cursor.fetchone()[0]))
                elif cursor.description:
                    rows.extend(map(tuple, cursor.fetchall()))
                if not cursor.nextset():
                    break
        finally:
            cursor.execute("set statistics xml off")
    return rows, plans


def called(connection: Connection, routine: str, **arguments: object) -> list[Plan]:
    """Call a procedure; return the plans of its statements."""
    named = ", ".join(f"@{name} = ?" for name in arguments)
    return run(connection, f"exec rowq.{routine} {named}", *arguments.values())[1]


def tables(plans: list[Plan]) -> set[str]:
    """Return rowq's tables that plans read or write."""
    return {access.table for plan in plans for access in plan.accesses}


def logical_reads(connection: Connection) -> int:
    """Return the pages that a session has read, including LOBs."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(
            "select s.logical_reads from sys.dm_exec_sessions s where s.session_id = @@spid"
        )
        return int(cursor.fetchval())


def faults(
    plans: list[Plan],
    *,
    small: frozenset[str] = frozenset(),
    walked: frozenset[str] = frozenset(),
) -> list[str]:
    """Return the faults in plans of a hot routine.

    Stored tables are read by seeks on the columns of SOUGHT, never by scans. Without sorts, hashes
    and parallelism no memory is granted. small: tables of a few rows, which may be scanned.
    walked: tables of which the call reads a whole queue, or its first rows.
    """
    found = []
    for plan in plans:
        bad = [operator for operator in plan.operators if operator in {"Hash Match", "Sort"}]
        for access in plan.accesses:
            bad += _bad_access(access, small, walked)
        bad += [f"conversion {conversion}" for conversion in plan.conversions]
        if plan.is_parallel:
            bad.append("parallel")
        if plan.granted_kb:
            bad.append(f"{plan.granted_kb} kB of memory")
        found += [f"{fault}: {' '.join(plan.text.split())[:200]}" for fault in bad]
    return found


def _bad_access(access: Access, small: frozenset[str], walked: frozenset[str]) -> Iterator[str]:
    if access.table not in small and ("Scan" in access.operator or "Lookup" in access.operator):
        yield f"{access.operator} on {access.table}"
    needed = SOUGHT.get(access.table, ())
    is_short = "Seek" in access.operator and not set(needed) <= set(access.seek)
    if is_short and access.table not in walked:
        by = ", ".join(access.seek) or "nothing"
        yield f"{access.operator} on {access.table} by {by}, not by {', '.join(needed)}"


def _plans(xml: str) -> Iterator[Plan]:
    root = ET.fromstring(xml)  # noqa: S314 - from a server of the tests
    for statement in root.iter(f"{_SPACE}StmtSimple"):
        operators = list(statement.iter(f"{_SPACE}RelOp"))
        grants = statement.iter(f"{_SPACE}MemoryGrantInfo")
        yield Plan(
            text=statement.get("StatementText", ""),
            operators=frozenset(operator.get("PhysicalOp", "") for operator in operators),
            accesses=tuple(access for operator in operators for access in _accesses(operator)),
            conversions=tuple(
                conversion.get("Expression", "")
                for conversion in statement.iter(f"{_SPACE}PlanAffectingConvert")
                if conversion.get("ConvertIssue") == "Seek Plan"
            ),
            granted_kb=sum(int(grant.get("GrantedMemory", "0")) for grant in grants),
            is_parallel=any(operator.get("Parallel") == "1" for operator in operators),
            is_spilt=next(statement.iter(f"{_SPACE}SpillToTempDb"), None) is not None,
        )


def _accesses(operator: ET.Element) -> Iterator[Access]:
    for body in operator:
        for table in body.findall(f"{_SPACE}Object"):
            if table.get("Schema") == "[rowq]":
                yield Access(
                    operator=operator.get("PhysicalOp", ""),
                    table=table.get("Table", "").strip("[]"),
                    seek=tuple(_seek_columns(body)),
                    rows_read=_rows_read(operator),
                )


def _seek_columns(body: ET.Element) -> Iterator[str]:
    predicates = body.find(f"{_SPACE}SeekPredicates")
    if predicates is None:
        return
    for part in ("Prefix", "StartRange", "EndRange"):
        for ranges in predicates.iter(f"{_SPACE}{part}"):
            columns = ranges.find(f"{_SPACE}RangeColumns")
            if columns is not None:
                for column in columns.iter(f"{_SPACE}ColumnReference"):
                    yield column.get("Column", "")


def _rows_read(operator: ET.Element) -> int | None:
    counters = operator.find(f"{_SPACE}RunTimeInformation")
    if counters is None:
        return None
    read = [
        _attribute(counter, "ActualRowsRead", "ActualRows")
        for counter in counters.iter(f"{_SPACE}RunTimeCountersPerThread")
    ]
    return sum(read)


def _attribute(element: ET.Element, *names: str) -> int:
    values: Mapping[str, str] = element.attrib
    return int(next((values[name] for name in names if name in values), "0"))
