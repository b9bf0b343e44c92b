"""Write sql/contract.toml into the files of routines: signatures and headers.

The signature and four header lines (routine, purpose, promise, errors) are generated; the rest is
written by hand. Files of PostgreSQL's overloads are generated completely.
"""

import re
import textwrap
from pathlib import Path

from rowq.contract import Overload, Parameter, Routine, load_contract, sql_directory
from rowq.engines.sqlserver.calls import procedure_name

_WIDTH = 100
_LONG_TEXTS = {"body", "error", "header_value", "progress"}
"""Texts that may exceed Oracle's varchar2."""
_BITS = {"true": "1", "false": "0"}
_PASSED = re.compile(r"(?<=\n)(    enqueue\(\n).*?(\n    \);)", re.DOTALL)
_SIGNATURES = {
    "mysql": re.compile(
        r"(?<=^create )procedure rowq\.\w+\(.*?\)(?=\nsql security )", re.MULTILINE | re.DOTALL
    ),
    "oracle": re.compile(r"\A\w+ \w+\(.*?\)(?=\n(?:is|return)\b)", re.DOTALL),
    "postgres": re.compile(
        r"(?<=^create or replace )\w+ rowq\.\w+\(.*?\)(?=\nlanguage )", re.MULTILINE | re.DOTALL
    ),
    "sqlserver": re.compile(
        r"(?<=^create or alter )procedure rowq\.\w+.*?(?=\n(?:with execute as owner\n)?as\n)",
        re.MULTILINE | re.DOTALL,
    ),
}


def files() -> list[Path]:
    """Return the files of all public routines."""
    return [
        sql_directory() / engine / "routines" / f"{name}.sql"
        for engine in _SIGNATURES
        for name in load_contract().of(engine)
    ]


def signed(engine: str, name: str, text: str) -> str:
    """Return a routine's file with current signature and header; raise ValueError without one."""
    routine = load_contract().of(engine)[name]
    signature = _WRITERS[engine](routine)
    text, count = _SIGNATURES[engine].subn(lambda _: signature, text)
    if count != 1:
        raise ValueError(f"{name} on {engine} has {count} signatures")
    for field, value in _header(engine, routine).items():
        text = _in_header(text, field, value)
    return text


def _in_header(text: str, field: str, value: str) -> str:
    line = f"-- {field:<9} {value}\n"
    return re.sub(rf"^-- {field} .*\n", lambda _: line, text, count=1, flags=re.MULTILINE)


def overload(path: Path) -> str:
    """Return the text of a PostgreSQL overload."""
    return _overload(*overloads()[path])


def overloads() -> dict[Path, tuple[Routine, Overload]]:
    """Return PostgreSQL's overloads and their routines by file."""
    folder = sql_directory() / "postgres" / "overloads"
    return {
        folder / f"{name}_{other.type}.sql": (routine, other)
        for name, routine in load_contract().of("postgres").items()
        for other in routine.overloads_on("postgres")
    }


def _overload(routine: Routine, other: Overload) -> str:
    header = _header("postgres", routine)
    columns = ", ".join(f"e.{column.name}" for column in routine.columns)
    passed = [
        f"p_{one.name}::text" if one.name == other.parameter else f"p_{one.name}"
        for one in routine.parameters
    ]
    return f"""\
create or replace {_postgres(routine, other)}
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   {routine.name}
-- version   1
-- purpose   {header["purpose"]}
-- promise   {header["promise"]}
-- locks     as {routine.name} with a text {other.parameter}, which it calls
-- commits   never; the caller owns the transaction
-- errors    {header["errors"]}
-- differs   PostgreSQL only: the {other.parameter} is {other.type}; its text is stored
begin
    return query
    select {columns}
    from rowq.{routine.name}(
{_wrapped(passed, 8)}
    ) e;
end;
$$;
"""  # noqa: S608 - from the contract


def put_on_oracle(path: Path) -> str:
    """Return the text of Oracle's function put, which passes its arguments to enqueue."""
    inputs = _inputs(load_contract().of("oracle")["enqueue"])
    head = _oracle_head("function put", [(f"p_{one.name}", _in_oracle(one)) for one in inputs])
    passed = _wrapped([*(f"p_{one.name}" for one in inputs), "v_rows"], 8)
    text = _SIGNATURES["oracle"].sub(lambda _: head, path.read_text(encoding="utf-8"))
    return _PASSED.sub(lambda found: f"{found[1]}{passed}{found[2]}", text)


def _wrapped(items: list[str], indent: int) -> str:
    lines = textwrap.wrap(", ".join(items), _WIDTH - indent)
    return textwrap.indent("\n".join(lines), " " * indent)


def _header(engine: str, routine: Routine) -> dict[str, str]:
    name = routine.name
    return {
        "routine": procedure_name(name) if engine == "sqlserver" else name,
        "purpose": routine.purpose,
        "promise": " ".join(routine.promises) or "none",
        "errors": " ".join(routine.errors) or "none",
    }


def _type(engine: str, kind: str) -> str:
    return load_contract().types[kind][engine]


def _parameter_type(engine: str, one: Parameter) -> str:
    if engine == "oracle" and one.name in _LONG_TEXTS:
        return "clob"
    return _type(engine, one.type)


def _listed(head: str, items: list[str]) -> str:
    """Return a list in parentheses, in one line if it fits."""
    line = f"{head}({', '.join(' '.join(item.split()) for item in items)})"
    if len(line) <= _WIDTH:
        return line
    inner = ",\n".join(f"    {item}" for item in items)
    return f"{head}(\n{inner}\n)"


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}} {rest}" for name, rest in rows]


def _default(engine: str, one: Parameter) -> str | None:
    if one.default is None or engine not in {"oracle", "sqlserver"}:
        return one.default
    return _BITS.get(one.default, one.default)


def _postgres(routine: Routine, other: Overload | None = None) -> str:
    """Return the signature; an overload has another type for one parameter."""
    rows = []
    for one in routine.parameters:
        if other and one.name == other.parameter:
            rest = other.type
        else:
            rest = _parameter_type("postgres", one)
            rest += "" if one.default is None else f" default {one.default}"
        direction = "" if one.direction == "in" else f"{one.direction} "
        rows.append((f"{direction}p_{one.name}", rest))
    head = _listed(f"create or replace {routine.kind} rowq.{routine.name}", _aligned(rows))
    head = head.removeprefix("create or replace ")
    if routine.kind == "procedure":
        return head
    columns = [
        ('"position"' if column.name == "position" else column.name, _type("postgres", column.type))
        for column in routine.columns
    ]
    return f"{head}\n" + _listed("returns table ", _aligned(columns))


def _mysql(routine: Routine) -> str:
    items = [f"p_{one.name} {_parameter_type('mysql', one)}" for one in _inputs(routine)]
    return _listed(f"create procedure rowq.{routine.name}", items).removeprefix("create ")


def _sqlserver(routine: Routine) -> str:
    lines = []
    for one in _inputs(routine):
        default = _default("sqlserver", one)
        given = "" if default is None else f" = {default}"
        lines.append(f"    @{one.name} {_parameter_type('sqlserver', one)}{given}")
    return "\n".join([f"procedure rowq.{procedure_name(routine.name)}", ",\n".join(lines)]).rstrip()


def _oracle(routine: Routine) -> str:
    rows = [(f"p_{one.name}", _in_oracle(one)) for one in _inputs(routine)]
    return _oracle_head(f"procedure {routine.name}", [*rows, ("p_rows", "out sys_refcursor")])


def _oracle_head(head: str, rows: list[tuple[str, str]]) -> str:
    if len(rows) == 1:
        return _listed(head, _aligned(rows))
    inner = ",\n".join(f"    {line}" for line in _aligned(rows))
    return f"{head}(\n{inner}\n)"


def _in_oracle(one: Parameter) -> str:
    default = _default("oracle", one)
    given = "" if default is None else f" default {default}"
    return f"in {_parameter_type('oracle', one)}{given}"


def _inputs(routine: Routine) -> list[Parameter]:
    """Return the input parameters."""
    return [one for one in routine.parameters if one.direction == "in"]


_WRITERS = {"mysql": _mysql, "oracle": _oracle, "postgres": _postgres, "sqlserver": _sqlserver}
