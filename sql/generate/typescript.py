"""docs/examples/typescript/rowq.ts: PostgreSQL's routines as types, for the driver pg."""

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap
from typing import Any

from rowq.contract import Column, Routine, load_contract, raw_contract

_ENGINE = "postgres"
_WIDTH = 100
_GIVEN = {
    "binary": "Uint8Array",
    "boolean": "boolean",
    "float": "number",
    "int32": "number",
    "int64": "string | number | bigint",
    "int64s": "readonly (string | number | bigint)[]",
    "json": "string | { readonly [name: string]: unknown }",
    "text": "string",
    "timestamp": "Date | string",
}
_RETURNED = {
    **_GIVEN,
    "int64": "string",
    "int64s": "string[]",
    "json": "unknown",
    "timestamp": "Date",
}
_NEVER_NULL = {"queue_name", "message_id", "claim_id", "attempt", "position", "outcome"}
"""Columns that are never null, except in inspecting routines."""
_PARAMETERS = """\
/**
 * The parameters of routines. The driver sends an array as a PostgreSQL array, so pass JSON arrays
 * as a string: JSON.stringify(messages).
 */"""
_COLUMNS = """\
/** The columns of routines; 64-bit integers are strings, because a number would lose digits. */"""
_TYPES = """\
type Given<Required extends keyof Parameters, Optional extends keyof Parameters = never> = {
    [Name in Required]: Parameters[Name];
} & { [Name in Optional]?: Parameters[Name] | null };
/** Columns that are never null, and columns that may be null. */
type Row<Known extends keyof Columns, Nullable extends keyof Columns = never> = {
    [Name in Known]: Columns[Name];
} & { [Name in Nullable]: Columns[Name] | null };"""
_CALL = """\
/** A client or a pool of pg. */
export interface Database {
    query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Call a routine with parameters by name and return its rows; omitted ones have their default. */
export async function call<Name extends keyof Routines>(
    database: Database,
    routine: Name,
    given: Routines[Name]["given"],
): Promise<Routines[Name]["row"][]> {
    const names = Object.keys(given).map((name, index) => `p_${name} => $${index + 1}`);
    const verb = procedures.has(routine) ? "call" : "select * from";
    const text = `${verb} rowq.${routine}(${names.join(", ")})`;
    return (await database.query(text, Object.values(given))).rows as Routines[Name]["row"][];
}

/** Return whether rowq refused the call, with this number if set, such as RQ721. */
export function isRefused(error: unknown, number?: string): boolean {
    const code = (error as { code?: unknown } | null)?.code;
    return typeof code === "string" && (number ? code === number : code.startsWith("RQ"));
}"""


def types() -> str:
    """Return the text of rowq.ts."""
    raw = raw_contract()
    routines = load_contract().of(_ENGINE)
    given = {one.name: one.type for entry in routines.values() for one in entry.parameters}
    returned = {one.name: one.type for entry in routines.values() for one in entry.columns}
    procedures = [name for name, entry in routines.items() if entry.kind == "procedure"]
    parts = [
        "// Generated from sql/contract.toml by make generate. Do not edit.\n",
        _PARAMETERS,
        *_described("Parameters", given, _GIVEN, raw["parameters"]),
        _COLUMNS,
        *_described("Columns", returned, _RETURNED, raw["columns"]),
        _TYPES,
        "\nexport interface Routines {",
        *(line for entry in routines.values() for line in _routine(entry)),
        "}\n",
        f"const procedures: ReadonlySet<string> = new Set([{_words(procedures, ', ')}]);\n",
        _CALL,
    ]
    return "\n".join(parts) + "\n"


def _described(
    name: str, types_: Mapping[str, str], spelled: Mapping[str, str], known: Mapping[str, Any]
) -> Iterator[str]:
    yield f"export interface {name} {{"
    for entry, type_ in types_.items():
        yield from _comment(known[entry]["meaning"])
        yield f"    {entry}: {spelled[type_]};"
    yield "}\n"


def _routine(routine: Routine) -> Iterator[str]:
    yield from _comment(routine.purpose)
    inputs = [one for one in routine.parameters if one.direction == "in"]
    required = [one.name for one in inputs if one.default is None]
    optional = [one.name for one in inputs if one.default is not None]
    yield f"    {routine.name}: {{"
    yield from _type("given", "Given", required, optional)
    known = [one.name for one in routine.columns if _is_known(routine, one)]
    nullable = [one.name for one in routine.columns if not _is_known(routine, one)]
    outcomes = f" & {{ outcome: {_words(routine.outcomes)} }}" if routine.outcomes else ""
    yield from _type("row", "Row", known, nullable, outcomes if "outcome" in known else "")
    yield "    };"


def _is_known(routine: Routine, column: Column) -> bool:
    return column.name in _NEVER_NULL and routine.group != "inspect"


def _type(
    name: str, type_: str, first: Iterable[str], second: Iterable[str], more: str = ""
) -> Iterator[str]:
    """Yield the lines of a property, whose type has one list of names or two."""
    lists = [_words(first) or "never"] + ([_words(second)] if _words(second) else [])
    line = f"        {name}: {type_}<{', '.join(lists)}>{more};"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"        {name}: {type_}<"
    for at, names in enumerate(lists, start=1):
        comma = "," if at < len(lists) else ""
        indent = " " * 12
        yield from wrap(names + comma, _WIDTH, initial_indent=indent, subsequent_indent=indent)
    yield f"        >{more};"


def _words(names: Iterable[str], mark: str = " | ") -> str:
    return mark.join(f'"{name}"' for name in names)


def _comment(text: str) -> Iterator[str]:
    lines = wrap(text.replace("*/", "* /"), _WIDTH - 7)
    if len(lines) == 1 and len(lines[0]) <= _WIDTH - 11:
        yield f"    /** {lines[0]} */"
        return
    yield "    /**"
    yield from (f"     * {line}" for line in lines)
    yield "     */"
