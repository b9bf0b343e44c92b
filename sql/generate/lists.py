"""Add a new option of a message wherever the SQL only passes or lists it.

An option after expire_seconds among enqueue's parameters is stored unchanged in `message`, and
get_message returns it. Its checks, its form in a batch and its insert are in store.sql, by hand.
Everywhere else it follows the option before it: in calls of the helpers of store.sql, in lists of
options, and in the columns of get_message.
"""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rowq.contract import load_contract, sql_directory

_LAST_BY_HAND = "expire_seconds"
_FEWEST = 5
"""Minimum length of a list of options."""
_WIDTH = 100
_HELPERS = {
    "mysql": ("internal_message_error", "internal_store"),
    "oracle": ("internal_message_error", "internal_new_message"),
    "postgres": ("internal_message_error",),
    "sqlserver": ("InternalCheckMessage", "InternalStore"),
}
_MARKS = {"mysql": "p_", "oracle": "p_", "postgres": "p_", "sqlserver": "@"}
_CALLERS = ("internal/predecessors", "internal/schedules", "routines/enqueue", "routines/publish")
_OF_ENQUEUE = {"mysql/routines/put", "postgres/routines/publish"}
"""Files that call enqueue."""
_LISTS: dict[str, tuple[str, ...]] = {
    "mysql/routines/enqueue": ("p_{0}",),
    "oracle/internal/types": ("{0:<21} rowq_message.{0}%type",),
    "postgres/routines/enqueue": ("{0}", "p_{0}"),
    "sqlserver/routines/enqueue": ("{0}", "@{0}"),
}
"""By file, the forms of an option in its lists."""
_TABLES = {
    "mysql": ("rowq.message m ", "rowq.archive a "),
    "oracle": ("rowq_message m\n", "rowq_archive a\n"),
    "postgres": ("rowq.message m\n", "rowq.archive a\n"),
    "sqlserver": ("rowq.message m ", "rowq.archived a\n"),
}
"""The tables of get_message: messages and ended messages."""
_NULLS = {
    ("mysql", "int32"): "signed",
    ("mysql", "int64"): "signed",
    ("mysql", "text"): "char",
    ("oracle", "text"): "varchar2(200 char)",
}
"""Types of nulls that differ from the parameter's type."""


def added() -> list[str]:
    """Return the options that this module adds."""
    names = [one.name for one in load_contract().routine("enqueue").parameters]
    return names[names.index(_LAST_BY_HAND) + 1 :]


def files() -> dict[Path, Callable[[str], str]]:
    """Return the functions that complete the calls and lists of each file."""
    found: dict[Path, Callable[[str], str]] = {}
    for engine in _HELPERS:
        of_engine = (name.partition("/")[::2] for name in {*_LISTS, *_OF_ENQUEUE})
        names = {*_CALLERS, *(rest for first, rest in of_engine if first == engine)}
        for name in sorted(names):
            path = sql_directory() / engine / f"{name}.sql"
            found[path] = partial(completed, engine, name)
        shown = sql_directory() / engine / "routines" / "get_message.sql"
        found[shown] = partial(_with_columns, engine)
    # Elsewhere it returns the rows of get_message.
    found[sql_directory() / "postgres" / "routines" / "find_message.sql"] = _with_found_columns
    return found


def completed(engine: str, name: str, text: str) -> str:
    """Return the text of a file with the missing options in its calls and lists."""
    for helper in _HELPERS[engine]:
        text = _with_arguments(engine, name, text, helper, helper_parameters(engine, helper))
    if f"{engine}/{name}" in _OF_ENQUEUE:
        parameters = [f"p_{one.name}" for one in load_contract().routine("enqueue").parameters]
        text = _with_arguments(engine, name, text, "enqueue", parameters)
    for item in _LISTS.get(f"{engine}/{name}", ()):
        text = _with_items(text, item)
    return text


def _with_arguments(engine: str, name: str, text: str, helper: str, parameters: list[str]) -> str:
    """Pass the caller's parameters to calls of a helper, or null if it has none."""
    folder, _, routine = name.partition("/")
    entry = load_contract().of(engine).get(routine) if folder == "routines" else None
    own = {one.name for one in entry.parameters} if entry else set()
    mark = _MARKS[engine]
    for call in reversed([found.end() for found in _calls(engine, helper).finditer(text)]):
        lacking = len(parameters) - len(_arguments(text, call))
        for option in added()[-lacking:] if lacking > 0 else ():
            before = _arguments(text, call)[parameters.index(f"{mark}{option}") - 1]
            text = _after(text, before, f"{mark}{option}" if option in own else "null")
    return text


def _calls(engine: str, helper: str) -> re.Pattern[str]:
    if engine == "sqlserver":
        return re.compile(rf"\bexec rowq\.{helper}(?=\s)")
    return re.compile(rf"\b(?<!procedure rowq\.)(?<!function rowq\.){helper}\(")


def helper_parameters(engine: str, helper: str) -> list[str]:
    """Return the names of a helper's parameters."""
    text = (sql_directory() / engine / "internal" / "store.sql").read_text(encoding="utf-8")
    head = re.search(
        rf"(?:function|procedure) (?:rowq\.)?{helper}\b.*?(?:\n\)|\nas\n)", text, re.DOTALL
    )
    if head is None:
        raise ValueError(f"store.sql of {engine} has no {helper}")
    return re.findall(r"^    (?:out |inout )?((?:p_|@)\w+)", head[0], re.MULTILINE)


def _arguments(text: str, start: int) -> list[int]:
    """Return the end positions of a call's arguments."""
    ends, depth = [], 0
    for at in range(start, len(text)):
        letter = text[at]
        if depth == 0 and letter in ",);":
            ends.append(len(text[:at].rstrip()))
            if letter != ",":
                break
        depth += (letter == "(") - (letter == ")")
    return ends


def _with_items(text: str, item: str) -> str:
    """Add options to the lists whose items have this form."""
    names = [one.name for one in load_contract().routine("enqueue").parameters]
    any_of = "|".join(re.escape(item.format(name)) for name in names)
    one = rf"(?<![\w.@])(?:{any_of})(?![\w ])"
    lists = re.compile(rf"{one}(?:,\s+{one}){{{_FEWEST - 1},}}")
    for found in reversed(list(lists.finditer(text))):
        end = found.end()
        for option in map(item.format, added()):
            if not _has(found[0], option):
                text = _after(text, end, option)
                end = text.index(option, end) + len(option)
    return text


def _with_columns(engine: str, text: str) -> str:
    """Add options to the select lists of get_message."""
    every = load_contract().routine("get_message").columns
    for column in (one for one in every if one.name in added()):
        if _has(text, f"m.{column.name}"):
            continue
        kind = _NULLS.get((engine, column.type), load_contract().types[column.type][engine])
        null = f"cast(null as {kind}) as {column.name}"
        if engine == "postgres":
            null = f"null::{kind}"
        for table, value in zip(_TABLES[engine], (f"m.{column.name}", null), strict=True):
            select = text.rindex(f"from {table}")
            text = _after(text, len(text[:select].rstrip()), value)
    return text


def _with_found_columns(text: str) -> str:
    """Add options to the select list of find_message on PostgreSQL."""
    for column in load_contract().routine("find_message").columns:
        if column.name in added() and not _has(text, f"g.{column.name}"):
            select = text.rindex("from rowq.get_message(")
            text = _after(text, len(text[:select].rstrip()), f"g.{column.name}")
    return text


def _has(text: str, item: str) -> bool:
    return re.search(rf"(?<![\w.@]){re.escape(item)}(?!\w)", text) is not None


def _after(text: str, end: int, item: str) -> str:
    """Insert an item of a list at the end of the previous item."""
    start = text.rindex("\n", 0, end) + 1
    line = text[start : text.index("\n", end)]
    indent = re.match(" *(?:select )?", line)
    joint = ", " if len(line) + len(item) + 2 <= _WIDTH and "%type" not in item else ",\n"
    if joint != ", ":
        joint += " " * (len(indent[0]) if indent else 0)
    return f"{text[:end]}{joint}{item}{text[end:]}"
