"""Build the scripts that forward calls between the nodes of a Citus cluster.

The files *.sql in this folder have placeholders `{{ name }}`, filled from rowq's contract and
nodes.toml. Each forwarded routine has up to five functions:

    rowq.X                the wrapper that callers call, with the signature and rights of X
    rowq_citus.to_X_N     calls at_X_N as rowq_citus, which may connect to the other nodes
    rowq_citus.at_X_N     is forwarded by Citus to the queue's node
    rowq_citus.each_X_N   calls on_X_N for every node
    rowq_citus.on_X_N     is forwarded by Citus to the node of a key

The routine itself is in the schema rowq_node. N is the newest migration's number: during an upgrade
the functions of two releases exist.
"""

# ruff: noqa: S608 - the names come from the contract

import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rowq.contract import Routine, load_contract, migrations_directory, raw_contract
from rowq.tools.migrate.frozen import migration_files, number_of
from rowq.tools.migrate.sources import filled, read
from sql.generate.markers import Parts, fresh

HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
BUILT = HERE.parents[3] / "build" / "citus"
"""The folder of the scripts for psql."""
FORWARDER = "rowq_citus"
"""The role of calls between nodes."""

_ENGINE = "postgres"
_QUEUE = "queue_name"
_KEYWORDS = {"position"}
"""Column names that PostgreSQL requires to be quoted."""
_PINNED = "set search_path = pg_catalog, pg_temp"
_PLANNED = "set plan_cache_mode = force_custom_plan"
"""Citus forwards by the argument's value, which a generic plan does not have."""
_AWAY = {
    "warning": "raise warning 'node % is left out: SQLSTATE %', v_node_name, sqlstate;",
    "unreachable_node": (
        "return query\n"
        "                select 'unreachable_node', null::pg_catalog.text, 'critical',"
        " 1::double precision,\n"
        "                       pg_catalog.concat(\n"
        "                           v_node_name, ': does not answer, SQLSTATE ', sqlstate);"
    ),
}
"""The answer for an unreachable node, instead of Citus' text with account and address."""
_IS_AWAY = ("08000", "57P01", "57P02", "57P03", "57P04", "57P05", "RQ706")
"""The node is unreachable, stopping, crashed or starting; has lost its database; is out of sync."""
_READS = {"inspect", "maintenance"}
"""Groups of routines that are harmless on another node than the queue's."""
_FORWARDER = re.compile(r"create or replace function rowq_citus\.(\w+)\(")
_CALLER = "    perform rowq_citus.require_caller();\n"
_ERRORS = {"RQ706", "RQ711"}
"""A wrapper's own errors: a wrong node, and a call by Citus."""


@dataclass(frozen=True, slots=True)
class Forwarded:
    """How several nodes answer a routine.

    Attributes:
        routine: the routine as PostgreSQL has it.
        by_name: whether a call with a queue's name goes to its node.
        by_node: the entry of nodes.toml if every node answers, or None.
        why_here: why the connected node answers, or empty.
        is_read: whether it is allowed for another node's queue.
    """

    routine: Routine
    by_name: bool
    by_node: Mapping[str, str] | None
    why_here: str
    is_read: bool

    def forwarder(self, prefix: str) -> str:
        """Return the name of a function of the schema rowq_citus."""
        return f"{prefix}_{self.routine.name}_{number()}"


@cache
def number() -> int:
    """Return the newest migration's number, with which forwarders' names end."""
    return number_of(migration_files(migrations_directory() / _ENGINE)[-1])


@cache
def _nodes() -> dict[str, Any]:
    return tomllib.loads((HERE / "nodes.toml").read_text(encoding="utf-8"))


def forwarded(routine: Routine, nodes: Mapping[str, str]) -> Forwarded:
    """Return how several nodes answer a routine.

    Args:
        routine: the routine as PostgreSQL has it.
        nodes: its entry of nodes.toml.

    Raises:
        ValueError: nodes.toml does not specify the node.
    """
    first = routine.parameters[0] if routine.parameters else None
    has_queue = first is not None and first.name == _QUEUE
    may_be_null = has_queue and first is not None and first.default is not None
    asked = nodes.get("asked")
    is_decided = asked == "here" or (has_queue if asked is None else asked == "each")
    if not is_decided or (may_be_null and asked is None):
        raise ValueError(f"nodes.toml does not say which node answers {routine.name}")
    if has_queue and asked == "each" and not may_be_null:
        raise ValueError(f"{routine.name} goes to its queue's node and cannot ask each")
    return Forwarded(
        routine=routine,
        by_name=has_queue and asked != "here",
        by_node=nodes if asked == "each" else None,
        why_here=nodes["why"] if asked == "here" else "",
        is_read=routine.group in _READS or may_be_null,
    )


def every() -> list[Forwarded]:
    """Return all routines of PostgreSQL, in the contract's order."""
    routines = load_contract().of(_ENGINE)
    names = [name for name in raw_contract()["routine"] if name in routines]
    return [forwarded(routines[name], _nodes().get(name, {})) for name in names]


def _moved() -> list[Forwarded]:
    return [one for one in every() if not one.why_here]


@cache
def script(name: str) -> str:
    """Return the text of a script, such as route.sql."""
    return filled(read(HERE / name), _FILLED)


@cache
def forwarders() -> tuple[str, ...]:
    """Return the names of rowq_citus' functions."""
    made = _FORWARDER.findall(script("forward.sql") + script("distribute.sql"))
    return tuple(dict.fromkeys(made))


@cache
def wrappers() -> dict[str, str]:
    """Return each wrapper's text by file name."""
    return {f"citus/{one.routine.name}.sql": _wrapper(one) for one in _moved()}


def signatures() -> dict[str, tuple[str, str]]:
    """Return each wrapper's parameters and columns as in PostgreSQL's catalog."""
    return {
        one.routine.name: (
            ", ".join(_types_of_inputs(one.routine)),
            _listed("TABLE", _types_of_columns(one.routine)),
        )
        for one in _moved()
    }


def write_scripts(folder: Path = BUILT) -> list[Path]:
    """Write all scripts into a folder and the table of answering nodes into README.md."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / path.name for path in sorted(HERE.glob("*.sql"))]
    for path in paths:
        path.write_text(script(path.name), encoding="utf-8", newline="\n")
    README.write_text(fresh(README, GENERATED), encoding="utf-8", newline="\n")
    return paths


def _answers() -> str:
    """Return the table of answering nodes."""
    said: dict[str, list[str]] = {}
    for one in every():
        said.setdefault(_in_words(one), []).append(f"`{one.routine.name}`")
    rows = "".join(f"| {words} | {', '.join(names)} |\n" for words, names in said.items())
    return f"\n| Answered by | Routines |\n| --- | --- |\n{rows}\n"


def _in_words(one: Forwarded) -> str:
    if one.why_here:
        return f"the connected node: {one.why_here}"
    words = ["the queue's node"] if one.by_name else []
    if one.by_node is not None:
        without = "without a name " if one.by_name else ""
        away = {None: "fails if one is unreachable", "warning": "warns if one is unreachable"}.get(
            one.by_node.get("when_away"), "has a row for an unreachable one"
        )
        words.append(f"{without}every node; {away}")
    return "; ".join(words)


def _forwarder_texts() -> str:
    return "\n".join(text for one in _moved() for text in _forwarders(one))


def _names_of_forwarders() -> str:
    """Return the names of forward.sql's functions, the handwritten ones first."""
    by_hand = _FORWARDER.findall((HERE / "forward.sql").read_text(encoding="utf-8"))
    return _quoted_names([*sorted(by_hand), *_FORWARDER.findall(_forwarder_texts())])


def _names_of_distributed() -> str:
    """Return the names of the distributed functions."""
    names = _FORWARDER.findall(_forwarder_texts())
    return _quoted_names([name for name in names if name.startswith(("at_", "on_"))])


def _names_of_routines() -> str:
    return _quoted_names([one.routine.name for one in _moved()])


def _quoted_names(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) + "\n"


def _type(kind: str) -> str:
    return load_contract().types[kind][_ENGINE]


def _inputs(routine: Routine) -> list[str]:
    return [f"p_{parameter.name}" for parameter in routine.parameters]


def _columns(routine: Routine) -> list[str]:
    return [_quoted(column.name) for column in routine.columns]


def _quoted(name: str) -> str:
    return f'"{name}"' if name in _KEYWORDS else name


def _types_of_columns(routine: Routine) -> list[str]:
    return [f"{_quoted(column.name)} {_type(column.type)}" for column in routine.columns]


def _types_of_inputs(routine: Routine) -> list[str]:
    return [f"p_{parameter.name} {_type(parameter.type)}" for parameter in routine.parameters]


def _listed(before: str, words: Iterable[str], after: str = "") -> str:
    return f"{before}({', '.join(words)}){after}"


def _function(inputs: str, columns: str, settings: Sequence[str], body: str) -> str:
    head = [inputs, columns, "language plpgsql", *settings]
    return "\n".join(head) + f"\nas $$\n{body}$$;\n"


def _helper(
    one: Forwarded,
    prefix: str,
    purpose: str,
    settings: Sequence[str],
    first: Sequence[str],
    body: str,
) -> str:
    """Return a function of rowq_citus without defaults; `first` are its first parameters."""
    name = one.forwarder(prefix)
    inputs = [*first, *_types_of_inputs(one.routine)]
    return _function(
        _listed(f"create or replace function rowq_citus.{name}", inputs),
        _listed("returns table ", _types_of_columns(one.routine)),
        settings,
        f"-- routine   {name}\n-- purpose   {purpose}\n{body}",
    )


def _forwarders(one: Forwarded) -> Iterator[str]:
    name, inputs = one.routine.name, _inputs(one.routine)
    forwarder = one.forwarder("at")
    as_other = ("security definer", _PINNED, _PLANNED)
    on_node = (_PINNED, "set rowq.here = 'forwarded'")
    itself = _itself(one, "    ")
    if one.by_name:
        to_node = _query(one, f"rowq_citus.{forwarder}", inputs, "        ")
        yield _helper(
            one, "at", f"Call {name} on the queue's node.",
            on_node, (),
            f"begin\n    perform rowq_citus.require_arrival(p_queue_name);\n{itself}end;\n",
        )  # fmt: skip
        # A null would crash the server: Citus reads the distribution value.
        yield _helper(
            one, "to", f"Call {forwarder} as rowq_citus; never with a null name.",
            as_other, (),
            f"begin\n{_CALLER}    if p_queue_name is not null then\n{to_node}    end if;\nend;\n",
        )  # fmt: skip
    if one.by_node is not None:
        yield _helper(
            one, "on", f"Call {name} on the node of a key.",
            on_node, ("p_node_key text", "p_node_groups integer[]"),
            "begin\n    perform rowq_citus.require_node(p_node_key, p_node_groups);\n"
            f"{itself}end;\n",
        )  # fmt: skip
        yield _helper(
            one, "each", f"Call {one.forwarder('on')} for every node as rowq_citus.",
            as_other, (), _each(one, one.by_node),
        )  # fmt: skip


def _query(
    one: Forwarded,
    called: str,
    inputs: Sequence[str],
    indent: str,
    said: Mapping[str, str] | None = None,
    more: Iterable[str] = (),
) -> str:
    """Return the statement that returns a function's rows.

    said: replacement expressions by column. more: clauses after the call.
    """
    columns = [(said or {}).get(name, f"r.{name}") for name in _columns(one.routine)]
    source = _listed(f"from {called}", inputs, " r")
    lines = ["return query", f"select {', '.join(columns)}", source, *more]
    return textwrap.indent("\n".join(lines) + ";\n", indent)


def _itself(one: Forwarded, indent: str) -> str:
    """Return the statement that calls a routine on this node.

    Name the arguments, so that it also fits a later release's routine.
    """
    named = [f"{word} => {word}" for word in _inputs(one.routine)]
    return _query(one, f"rowq_node.{one.routine.name}", named, indent)


def _each(one: Forwarded, nodes: Mapping[str, str]) -> str:
    away = nodes.get("when_away")
    indent = "            " if away else "        "
    inputs = ["v_node_key", "v_groups", *_inputs(one.routine)]
    says_node = nodes.get("says_node")
    said = (
        {says_node: f"pg_catalog.concat(v_node_name, ': ', r.{says_node})"} if says_node else None
    )
    inner = _query(one, f"rowq_citus.{one.forwarder('on')}", inputs, indent, said)
    if away:
        states = " or ".join(f"sqlstate '{state}'" for state in _IS_AWAY)
        inner = (
            f"        begin\n{inner}        exception\n"
            f"            when {states}\n            then\n"
            f"                {_AWAY[away]}\n        end;\n"
        )
    return (
        "#variable_conflict use_column\n"
        "declare\n    v_node_key  pg_catalog.text;\n    v_node_name pg_catalog.text;\n"
        f"    v_groups    integer[];\nbegin\n{_CALLER}"
        "    for v_node_key, v_node_name, v_groups in\n"
        "        select n.node_key, n.node_name, n.node_groups\n"
        "        from rowq_citus.nodes() n\n"
        "        order by n.node_group\n"
        f"    loop\n{inner}    end loop;\nend;\n"
    )


def _move(routine: Routine) -> str:
    types = [_type(parameter.type) for parameter in routine.parameters]
    return _listed(f"alter function rowq.{routine.name}", types, " set schema rowq_node;") + "\n"


def _wrapper(one: Forwarded) -> str:
    routine = one.routine
    inputs = [
        f"{name}{'' if one.default is None else f' default {one.default}'}"
        for name, one in zip(_types_of_inputs(routine), routine.parameters, strict=True)
    ]
    return _function(
        _listed(f"create or replace function rowq.{routine.name}", inputs),
        _listed("returns table ", _types_of_columns(routine)),
        ("security definer", _PINNED),
        _header(one) + _choice(one),
    )


def _header(one: Forwarded) -> str:
    routine = one.routine
    where = "forwarded to the queue's node" if one.by_name else "calls every node"
    fields = {
        "routine": routine.name,
        "version": "1",
        "purpose": routine.purpose,
        "promise": " ".join(routine.promises) or "none",
        "locks": f"as rowq_node.{routine.name}, on the answering node",
        "commits": "never; the caller owns the transaction",
        "errors": " ".join(sorted({*routine.errors, *_ERRORS})),
        "differs": where,
    }
    return "".join(f"-- {name:9} {text}\n" for name, text in fields.items())


def _choice(one: Forwarded) -> str:
    """Return a wrapper's body: call this node, every node, or the queue's node."""
    inputs = _inputs(one.routine)
    itself = _itself(one, "        ")
    to_node = _query(one, f"rowq_citus.{one.forwarder('to')}", inputs, "        ")
    is_here = "current_setting('rowq.here', true) in ('on', 'forwarded')"
    if not one.is_read and one.by_name:
        itself = f"        perform rowq_citus.require_own(p_queue_name);\n{itself}"
    elif not one.is_read:
        itself = (
            "        raise exception 'RQ711 invalid_argument: rowq.here is on;"
            f" {one.routine.name} asks every node'\n"
            "            using errcode = 'RQ711', hint = 'Run: reset rowq.here';\n"
        )
    if one.by_node is None:
        return (
            f"begin\n    if p_queue_name is null or {is_here} then\n{itself}"
            f"    else\n{to_node}    end if;\nend;\n"
        )
    more = _together(one.by_node)
    each = _query(one, f"rowq_citus.{one.forwarder('each')}", inputs, "        ", None, more)
    if not one.by_name:
        return f"begin\n    if {is_here} then\n{itself}    else\n{each}    end if;\nend;\n"
    return (
        f"begin\n    if {is_here} then\n{itself}    elsif p_queue_name is null then\n{each}"
        f"    else\n{to_node}    end if;\nend;\n"
    )


def _together(nodes: Mapping[str, str]) -> Iterator[str]:
    """Yield the clauses that order and limit all nodes' rows."""
    if order := nodes.get("order"):
        yield "order by " + ", ".join(f"r.{word}" for word in order.split(", "))
    if most := nodes.get("most"):
        # Ids of several nodes may be equal, so the next page begins after all of them. The first
        # node refuses a value out of range, or takes null for all rows.
        yield f"fetch first (greatest(coalesce(p_{most}, 2147483647), 1)) rows with ties"


_FILLED: dict[str, Callable[[], str]] = {
    "forwarders": _forwarder_texts,
    "wrappers": lambda: "\n".join(_wrapper(one) for one in _moved()),
    "moves": lambda: "".join(_move(one.routine) for one in _moved()),
    "routines": _names_of_routines,
    "forwarder_names": _names_of_forwarders,
    "distributed_names": _names_of_distributed,
}
"""Functions that return a script's placeholder text, by name."""
GENERATED: Parts = {"answers": _answers}
"""The same for README.md."""
