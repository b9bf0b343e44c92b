"""Reference pages, from sql/contract.toml: one per routine, an index, errors and types."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from docs import commands
from docs.calls import by_engine, by_language
from rowq.contract import Routine, load_contract, raw_contract, sql_directory
from sql.generate.contract import details, errors, table, text_of, types

FOLDER = "docs/reference"
TABLES = {"errors": "errors", "types": "types", "promises": "../../sql/PROMISES"}
"""Pages by heading of CONTRACT.md; other headings are routines."""

_HEAD = """\
# Reference

For developers, operators and DBAs.
Every routine, from [the contract](../../sql/contract.toml), which is the same on every engine.

See also [errors](errors.md), [types](types.md), [commands](commands.md) and
[promises](../../sql/PROMISES.md).
"""
_ARGUMENTS = """\
Values begin with `:`. Parameters with a default are optional; on MariaDB and MySQL, where arguments
are positional, pass null.
"""
_LANGUAGES = """\
Required parameters only, on PostgreSQL; for another engine use its call from above. The
[examples](../examples/README.md) are whole programs.
"""


def pages() -> dict[str, str]:
    """Return the text of each page by its file's name."""
    contract = raw_contract()
    held = _tests_of_promises()
    made = {f"{name}.md": _page(name, contract, held) for name in contract["routine"]}
    return {
        "index.md": _index(contract),
        "errors.md": errors(contract)[1:],
        "types.md": types(contract)[1:],
        "commands.md": commands.page(),
        **made,
    }


def _tests_of_promises() -> dict[str, str]:
    """Return the test links of sql/PROMISES.md by promise."""
    listed = (sql_directory() / "PROMISES.md").read_text(encoding="utf-8")
    found = re.findall(r"^- \*\*(P\d+)\*\* .* \((\[.*\))\)$", listed, re.MULTILINE)
    return {number: links.replace("](../", "](../../") for number, links in found}


def _index(contract: Mapping[str, Any]) -> str:
    groups: dict[str, list[str]] = {}
    for name, entry in contract["routine"].items():
        groups.setdefault(entry["group"], []).append(name)
    parts = [_HEAD]
    for group, names in groups.items():
        rows = [(f"[{name}]({name}.md)", contract["routine"][name]["purpose"]) for name in names]
        parts.append(f"## {group.capitalize()}\n\n" + table(("Routine", "Purpose"), *rows))
    every = [name for names in groups.values() for name in names]
    contents = "\n".join(["commands", *every, "errors", "types"])
    parts.append(f"```{{toctree}}\n:hidden:\n\n{contents}\n```\n")
    return "\n".join(parts)


def _page(name: str, contract: Mapping[str, Any], held: Mapping[str, str]) -> str:
    entry = contract["routine"][name]
    routine = load_contract().routine(name)
    described = "\n".join(details(entry, contract))
    parts = [
        f"# {name}\n\n{text_of(entry)}\n",
        f"## Call\n\n{_ARGUMENTS}",
        _tabs(by_engine(routine), "engine"),
        *_in_languages(routine),
        "## Parameters and columns\n",
        re.sub(r"\]\(#(\w+)\)", r"](\1.md)", described),
        *_errors(entry, contract),
        *_promises(entry, contract, held),
    ]
    return "\n".join(parts)


def _in_languages(routine: Routine) -> Iterator[str]:
    if calls := list(by_language(routine)):
        yield f"## By language\n\n{_LANGUAGES}"
        yield _tabs(calls, "language")


def _tabs(items: Iterable[tuple[str, str]], kind: str) -> str:
    tabs = "".join(
        f":::{{tab-item}} {title}\n:sync: {title}\n\n{text}\n:::\n" for title, text in items
    )
    return f"::::{{tab-set}}\n:sync-group: {kind}\n\n{tabs}::::\n"


def _errors(entry: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[str]:
    if entry["errors"]:
        known = contract["errors"]
        numbers = entry["errors"]
        rows = [(number, known[number]["class"], known[number]["meaning"]) for number in numbers]
        yield "## Errors\n\n" + table(("Error", "Python", "Meaning"), *rows)


def _promises(
    entry: Mapping[str, Any], contract: Mapping[str, Any], held: Mapping[str, str]
) -> Iterator[str]:
    if entry["promises"]:
        lines = [
            f"- **{number}** {contract['promises'][number]} ({held[number]})"
            for number in entry["promises"]
        ]
        yield "## Promises, with tests\n\n" + "\n".join(lines) + "\n"
