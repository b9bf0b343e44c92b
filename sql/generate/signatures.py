"""What sql/contract.toml says of a routine, in the file of that routine: signature and header.

The signature and four lines of the header (routine, purpose, promise, errors) are the contract's;
everything else of the file is written by hand. A file of PostgreSQL's overloads is the contract's
as a whole.
"""

import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rowq.engines.sqlserver.calls import procedure_name
from rowq.resources import sql_directory

_WIDTH = 100
_LONG_TEXTS = {"body", "error", "header_value", "progress"}
"""Texts that may be longer than Oracle's varchar2."""
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
    """Return the files of all routines that are called."""
    return [
        sql_directory() / engine / "routines" / f"{name}.sql"
        for engine in _SIGNATURES
        for name in _routines(engine)
    ]


def signed(engine: str, name: str, text: str) -> str:
    """Return the text of a routine's file with the signature and the header that it should have.

    Raises:
        ValueError: it has not one signature.
    """
    entry = _routines(engine)[name]
    signature = _WRITERS[engine](name, entry)
    text, count = _SIGNATURES[engine].subn(lambda _: signature, text)
    if count != 1:
        raise ValueError(f"{name} on {engine} has {count} signatures")
    for field, value in _header(engine, name, entry).items():
        text = _in_header(text, field, value)
    return text


def _in_header(text: str, field: str, value: str) -> str:
    line = f"-- {field:<9} {value}\n"
    return re.sub(rf"^-- {field} .*\n", lambda _: line, text, count=1, flags=re.MULTILINE)


def overload(path: Path) -> str:
    """Return the text of the file of one of PostgreSQL's overloads."""
    return _overload(*overloads()[path])


def overloads() -> dict[Path, tuple[str, str, str]]:
    """Return by file the routine, the parameter and its other type of PostgreSQL's overloads."""
    folder = sql_directory() / "postgres" / "overloads"
    return {
        folder / f"{name}_{kind}.sql": (name, parameter, kind)
        for name, entry in _routines("postgres").items()
        for parameter, kinds in entry.get("overloads", {}).get("postgres", {}).items()
        for kind in kinds
    }


def _overload(name: str, parameter: str, kind: str) -> str:
    entry = _routines("postgres")[name]
    header = _header("postgres", name, entry)
    columns = ", ".join(f"e.{column}" for column in entry["columns"])
    passed = [
        f"p_{one['name']}::text" if one["name"] == parameter else f"p_{one['name']}"
        for one in entry["parameters"]
    ]
    return f"""\
create or replace {_postgres(name, entry, {parameter: kind})}
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   {name}
-- version   1
-- purpose   {header["purpose"]}
-- promise   {header["promise"]}
-- locks     as {name} with a text {parameter}, which it calls
-- commits   never; the caller owns the transaction
-- errors    {header["errors"]}
-- differs   PostgreSQL only: the {parameter} is {kind}, and its text is kept
begin
    return query
    select {columns}
    from rowq.{name}(
{_wrapped(passed, 8)}
    ) e;
end;
$$;
"""  # noqa: S608 - from the contract


def put_on_oracle(path: Path) -> str:
    """Return the text of Oracle's function put, which takes what enqueue takes and passes it on."""
    inputs = list(_inputs(_routines("oracle")["enqueue"]))
    head = _oracle_head("function put", [(f"p_{one['name']}", _in_oracle(one)) for one in inputs])
    passed = _wrapped([*(f"p_{one['name']}" for one in inputs), "v_rows"], 8)
    text = _SIGNATURES["oracle"].sub(lambda _: head, path.read_text(encoding="utf-8"))
    return _PASSED.sub(lambda found: f"{found[1]}{passed}{found[2]}", text)


def _wrapped(items: list[str], indent: int) -> str:
    lines = textwrap.wrap(", ".join(items), _WIDTH - indent)
    return textwrap.indent("\n".join(lines), " " * indent)


def _header(engine: str, name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    return {
        "routine": procedure_name(name) if engine == "sqlserver" else name,
        "purpose": entry["purpose"],
        "promise": " ".join(entry["promises"]) or "none",
        "errors": " ".join(entry["errors"]) or "none",
    }


@cache
def _contract() -> dict[str, Any]:
    with (sql_directory() / "contract.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def _routines(engine: str) -> dict[str, dict[str, Any]]:
    """Return the routines that an engine has, as it has them."""
    contract = _contract()
    return {
        name: _on(engine, entry, contract)
        for name, entry in contract["routine"].items()
        if engine in entry.get("engines", entry.get("engines_so_far", [engine]))
    }


def _on(engine: str, entry: Mapping[str, Any], contract: Mapping[str, Any]) -> dict[str, Any]:
    def is_there(known: Mapping[str, Any], name: str) -> bool:
        return engine in known[name].get("engines", [engine])

    return {
        **entry,
        "parameters": [
            one for one in entry["parameters"] if is_there(contract["parameters"], one["name"])
        ],
        "columns": [name for name in entry["columns"] if is_there(contract["columns"], name)],
        "errors": [
            number
            for number in entry["errors"]
            if engine in entry.get("error_engines", {}).get(number, [engine])
        ],
        "promises": [
            number
            for number in entry["promises"]
            if engine in contract["promise_engines"].get(number, [engine])
        ],
    }


def _type(engine: str, kind: str) -> str:
    return str(_contract()["types"][kind][engine])


def _parameter_type(engine: str, name: str) -> str:
    if engine == "oracle" and name in _LONG_TEXTS:
        return "clob"
    return _type(engine, _contract()["parameters"][name]["type"])


def _column_type(engine: str, name: str) -> str:
    return _type(engine, _contract()["columns"][name]["type"])


def _listed(head: str, items: list[str]) -> str:
    """Return a list in parentheses, in one line if that is short enough."""
    line = f"{head}({', '.join(' '.join(item.split()) for item in items)})"
    if len(line) <= _WIDTH:
        return line
    inner = ",\n".join(f"    {item}" for item in items)
    return f"{head}(\n{inner}\n)"


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}} {rest}" for name, rest in rows]


def _default(engine: str, one: Mapping[str, Any]) -> str | None:
    default: str | None = one.get("default")
    if default is None or engine not in {"oracle", "sqlserver"}:
        return default
    return _BITS.get(default, default)


def _postgres(name: str, entry: Mapping[str, Any], other: Mapping[str, str] | None = None) -> str:
    """Return the signature; `other` has the types of parameters that an overload takes instead."""
    rows = []
    for one in entry["parameters"]:
        kind = (other or {}).get(one["name"])
        rest = kind or _parameter_type("postgres", one["name"])
        if "default" in one and not kind:
            rest += f" default {one['default']}"
        direction = f"{one['direction']} " if "direction" in one else ""
        rows.append((f"{direction}p_{one['name']}", rest))
    kind = entry.get("kind", "function")
    head = _listed(f"create or replace {kind} rowq.{name}", _aligned(rows))
    head = head.removeprefix("create or replace ")
    if kind == "procedure":
        return head
    columns = [
        ('"position"' if column == "position" else column, _column_type("postgres", column))
        for column in entry["columns"]
    ]
    return f"{head}\n" + _listed("returns table ", _aligned(columns))


def _mysql(name: str, entry: Mapping[str, Any]) -> str:
    items = [f"p_{one['name']} {_parameter_type('mysql', one['name'])}" for one in _inputs(entry)]
    return _listed(f"create procedure rowq.{name}", items).removeprefix("create ")


def _sqlserver(name: str, entry: Mapping[str, Any]) -> str:
    lines = []
    for one in _inputs(entry):
        default = _default("sqlserver", one)
        given = "" if default is None else f" = {default}"
        lines.append(f"    @{one['name']} {_parameter_type('sqlserver', one['name'])}{given}")
    return "\n".join([f"procedure rowq.{procedure_name(name)}", ",\n".join(lines)]).rstrip()


def _oracle(name: str, entry: Mapping[str, Any]) -> str:
    rows = [(f"p_{one['name']}", _in_oracle(one)) for one in _inputs(entry)]
    return _oracle_head(f"procedure {name}", [*rows, ("p_rows", "out sys_refcursor")])


def _oracle_head(head: str, rows: list[tuple[str, str]]) -> str:
    if len(rows) == 1:
        return _listed(head, _aligned(rows))
    inner = ",\n".join(f"    {line}" for line in _aligned(rows))
    return f"{head}(\n{inner}\n)"


def _in_oracle(one: Mapping[str, Any]) -> str:
    default = _default("oracle", one)
    given = "" if default is None else f" default {default}"
    return f"in {_parameter_type('oracle', one['name'])}{given}"


def _inputs(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parameters, without what a procedure of PostgreSQL returns by one."""
    return (one for one in entry["parameters"] if "direction" not in one)


_WRITERS = {
    "mysql": _mysql,
    "oracle": _oracle,
    "postgres": _postgres,
    "sqlserver": _sqlserver,
}
