"""Counts agree in the SQL of PostgreSQL, MariaDB and MySQL.

test_plsql.py checks Oracle's, test_tsql.py SQL Server's.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from tests.static.each import for_each
from tests.static.shapes import (
    Fault,
    Signature,
    blanked,
    inside,
    misfilled,
    misfits,
    misread,
    misunited,
    parameters,
    split,
    ungrouped,
)
from tests.static.sources import SQL, migration_scripts, sql_files, sql_units, unit_text

ENGINES = ("mysql", "postgres")


def texts(engine: str) -> dict[str, str]:
    """Return all SQL of an engine by name: units, and files without units."""
    of_units = {*sql_files(engine)}
    beside = [
        path
        for path in [*sorted((SQL / engine).rglob("*.sql")), *migration_scripts(engine)]
        if path not in of_units
    ]
    return {str(unit): unit.text for unit in sql_units(engine)} | {
        path.relative_to(SQL.parent).as_posix(): path.read_text("utf-8") for path in beside
    }


TEXTS = [(engine, name, text) for engine in ENGINES for name, text in texts(engine).items()]
_TABLE = re.compile(r"\bcreate table (?:if not exists )?(rowq\.\w+) (\()")
_NO_COLUMN = {"check", "constraint", "foreign", "key", "primary", "unique"}
_ROUTINE = re.compile(r"\bcreate (?:or replace )?(?:function|procedure) rowq\.(\w+)\s*(\()")
_CALL = re.compile(
    r"(?<!into )(?<!exists )(?<!on )(?<!function )(?<!procedure )\browq\.(\w+)\s*(\()"
)
_DECLARED = re.compile(
    r"^\s+(?:out |inout )?([vpo]_\w+)\s+(?:constant )?([\w.]+(?:\[\])?)", re.MULTILINE
)
_VARIABLE = re.compile(r"(?:@|[vp]_)\w+")


@cache
def tables(engine: str) -> dict[str, list[str]]:
    """Return the columns of an engine's tables by table."""
    codes = (blanked(text) for known, _, text in TEXTS if known == engine)
    return {
        match[1]: [
            part.split()[0]
            for part in split(inside(code, match.start(2)))
            if part.split()[0] not in _NO_COLUMN
        ]
        for code in codes
        for match in _TABLE.finditer(code)
    }


@cache
def signatures(engine: str) -> dict[str, list[Signature]]:
    """Return the signatures of each routine; `out` parameters of a function are its result."""
    found: dict[str, list[Signature]] = {}
    for code in (blanked(text) for known, _, text in TEXTS if known == engine):
        for match in _ROUTINE.finditer(code):
            given = parameters(inside(code, match.start(2)))
            if engine == "postgres":
                # A function reads an inout argument and returns its new value.
                given = tuple(
                    replace(parameter, direction="in")
                    for parameter in given
                    if parameter.direction != "out"
                )
            found.setdefault(match[1], []).append(Signature(match[1], given))
    return found


def faults(engine: str, text: str) -> Iterator[Fault]:
    """Yield position and error of every mismatch in a file."""
    code = blanked(text)
    kinds = dict(_DECLARED.findall(code))

    def width(target: str) -> int | None:
        kind = kinds.get(target, "")
        return len(tables(engine).get(kind, ["a scalar"])) if kind != "record" else None

    yield from misread(code, width)
    yield from misfilled(code, tables(engine))
    yield from misunited(code)
    yield from ungrouped(code, allows_subqueries=True)
    for match in _CALL.finditer(code):
        given = split(inside(code, match.start(2)))
        known = signatures(engine).get(match[1])
        if known is None:
            yield match.start(), f"unknown routine {match[1]}"
            continue
        wrong = [[*misfits(entry, given), *misdirected(entry, given)] for entry in known]
        yield from ((match.start(), words) for words in min(wrong, key=len))


def misdirected(entry: Signature, given: list[str]) -> Iterator[str]:
    """Yield output arguments other than variables."""
    for parameter, value in zip(entry.parameters, given, strict=False):
        if parameter.direction != "in" and not _VARIABLE.fullmatch(value):
            yield f"{parameter.name} of {entry.name} needs a variable, not {value}"


@for_each(TEXTS)
def test_columns_targets_values_and_arguments_agree(engine: str, name: str, text: str) -> None:
    found = [
        f"{name}, line {text.count(chr(10), 0, at) + 1}: {words}"
        for at, words in faults(engine, text)
    ]
    assert not found


PLANTED = {
    "mysql": (
        ("internal/pass_group_slot", "select max(q.group_limit), max", "select max"),
        ("internal/pass_group_slot", "select max(q.group_limit)", "select q.group_limit"),
        ("routines/enqueue.sql", "into v_queue_id, v_max_body_length, ", "into v_queue_id, "),
        ("routines/dequeue_fast.sql", "into v_seq, v_message_id,", "into v_seq,"),
        ("routines/dequeue_fast.sql", "fetch each_ready into", "fetch each_message into"),
        (
            "routines/enqueue.sql",
            "values (v_queue_id, v_now, p_body)",
            "values (v_queue_id, p_body)",
        ),
        ("routines/enqueue.sql", "(queue_id, enqueued_at, body)", "(queue_id, enqueued, body)"),
        ("internal/store", "(p_queue_id, v_lane);", "(p_queue_id);"),
        ("internal/store", "(p_queue_id, v_lane);", "(p_queue_id, v_lane, 1);"),
        ("internal/store", "call rowq.internal_open_lane(", "call rowq.internal_open_one("),
        ("routines/complete.sql", "begin_work(v_owns_transaction)", "begin_work(true)"),
    ),
    "postgres": (
        ("routines/enqueue.sql", "into v_queue_id, v_max_body_length, ", "into v_queue_id, "),
        ("internal/pop_claimed", "o_cancel_ids, o_worker_name, o_leased_at;", "o_cancel_ids;"),
        (
            "routines/enqueue.sql",
            "select max(d.message_id) into",
            "select max(d.message_id), 1 into",
        ),
        (
            "routines/enqueue.sql",
            "select max(d.message_id) into",
            "select max(d.message_id) + d.queue_id into",
        ),
        (
            "routines/enqueue.sql",
            "values (v_queue_id, v_message_id, p_dedup",
            "values (v_queue_id, p_dedup",
        ),
        (
            "routines/enqueue.sql",
            "select f.queue_id, f.lane, v_message_id,",
            "select f.queue_id, f.lane,",
        ),
        (
            "routines/enqueue.sql",
            "(queue_id, lane, seq, message_id)",
            "(queue_id, lane, sequence, message_id)",
        ),
        ("routines/reap.sql", "v_queue.history_days, p_batch_size", "v_queue.history_days"),
        ("routines/reap.sql", "internal_require_queue(", "internal_require_a_queue("),
        ("internal/health_server", "format('prepared", "1, format('prepared"),
        (
            "internal/push_dead",
            "p_queue_id, null, p_message_ids, true)",
            "p_queue_id, null, p_message_ids, true, 1)",
        ),
    ),
}
"""By engine: file, right text, wrong text."""


@for_each([(engine, *planted) for engine in ENGINES for planted in PLANTED[engine]])
def test_planted_fault_is_found(engine: str, relative: str, right: str, wrong: str) -> None:
    text = unit_text(engine, relative)
    assert right in text, "nothing to plant the fault in"
    assert list(faults(engine, text.replace(right, wrong, 1)))
