"""sql/CONTRACT.md, the reference made from sql/contract.toml."""

from collections.abc import Iterator, Mapping
from typing import Any

from rowq.contract import raw_contract

_HEAD = """\
<!-- Generated from contract.toml by make generate. Do not edit. -->

# The routines of rowq

For everyone who calls rowq: parameters, columns, errors and promises, the same on every engine.
The source is [contract.toml](contract.toml); tests compare every engine and client with it.
A parameter without a default is required. The default `null` means the queue's setting, or none.
The last table lists the types of each engine.
"""


def contract_md() -> str:
    """Return the text of CONTRACT.md."""
    contract = raw_contract()
    parts = [_HEAD, _summary(contract)]
    parts += [_routine(name, entry, contract) for name, entry in contract["routine"].items()]
    parts += [errors(contract), _promises(contract), types(contract)]
    return "\n".join(parts)


def table(*rows: tuple[str, ...]) -> str:
    """Return a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|" + " --- |" * len(rows[0]))
    return "\n".join(lines) + "\n"


def _summary(contract: Mapping[str, Any]) -> str:
    rows = [
        (entry["group"], f"[{name}](#{name})", entry["purpose"])
        for name, entry in contract["routine"].items()
    ]
    return table(("Group", "Routine", "Purpose"), *rows)


def _routine(name: str, entry: Mapping[str, Any], contract: Mapping[str, Any]) -> str:
    return "\n".join([f"## {name}\n\n{text_of(entry)}\n", *details(entry, contract)])


def text_of(routine: Mapping[str, Any]) -> str:
    """Return the purpose of a routine and its details."""
    return " ".join(filter(None, (routine["purpose"], routine.get("details"))))


def details(entry: Mapping[str, Any], contract: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tables of a routine and its list of facts."""
    if entry["parameters"]:
        yield table(
            ("Parameter", "Type", "Default", "Meaning"),
            *(_parameter(given, contract["parameters"]) for given in entry["parameters"]),
        )
    columns = contract["columns"]
    yield table(
        ("Column", "Type", "Meaning"),
        *(
            (f"`{name}`", columns[name]["type"], _meaning(columns[name]))
            for name in entry["columns"]
        ),
    )
    if full := entry.get("short_form_of"):
        yield f"- Short form of: [{full}](#{full})"
    for engine, parameters in entry.get("overloads", {}).items():
        for name, types in parameters.items():
            others = " or ".join(f"`{type_}`" for type_ in types)
            yield f"- On {engine} `{name}` may be {others}: required then, and stored as text"
    if engines := entry.get("engines"):
        yield f"- Only on: {', '.join(engines)}"
    if outcomes := entry.get("outcomes"):
        yield f"- Outcomes: {', '.join(outcomes)}"
    raised = [_error(number, entry, contract) for number in entry["errors"]]
    yield f"- Errors: {', '.join(raised) or 'none'}"
    yield f"- Promises: {', '.join(entry['promises']) or 'none'}"
    yield f"- Roles: {', '.join(entry['roles'])}"
    yield f"- Repeatable if the answer was lost: {'yes' if entry.get('repeatable') else 'no'}\n"


def _error(number: str, entry: Mapping[str, Any], contract: Mapping[str, Any]) -> str:
    engines = entry.get("error_engines", {}).get(number)
    return f"{number} {contract['errors'][number]['name']}" + (
        f" (only on: {', '.join(engines)})" if engines else ""
    )


def _parameter(given: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[str, ...]:
    meaning = known[given["name"]]
    default = f"`{given['default']}`" if "default" in given else "required"
    kind = f"{meaning['type']}, in and out" if "direction" in given else meaning["type"]
    return f"`{given['name']}`", kind, default, _meaning(meaning)


def _meaning(entry: Mapping[str, Any]) -> str:
    engines = entry.get("engines")
    return str(entry["meaning"]) + (f" Only on: {', '.join(engines)}." if engines else "")


def errors(contract: Mapping[str, Any]) -> str:
    """Return the heading and table of all errors."""
    rows = [
        (
            number,
            entry["name"],
            entry["class"],
            "yes" if entry["retryable"] else "no",
            entry["meaning"],
        )
        for number, entry in contract["errors"].items()
    ]
    return "## Errors\n\n" + table(("Number", "Name", "Python", "Try again", "Meaning"), *rows)


def _promises(contract: Mapping[str, Any]) -> str:
    engines = contract["promise_engines"]
    rows = [
        f"- **{number}** {text}"
        + (f" Only on: {', '.join(engines[number])}." if number in engines else "")
        for number, text in contract["promises"].items()
    ]
    return (
        "## Promises\n\nEach promise has at least one test that names it.\n\n"
        + "\n".join(rows)
        + "\n"
    )


def types(contract: Mapping[str, Any]) -> str:
    """Return the heading and table of the types on each engine."""
    known = contract["types"]
    engines = list(dict.fromkeys(engine for spelled in known.values() for engine in spelled))
    rows = [(name, *(known[name].get(engine, "") for engine in engines)) for name in known]
    return "## Types\n\n" + table(("Type", *engines), *rows)
