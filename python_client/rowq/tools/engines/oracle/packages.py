"""Oracle's packages, assembled from files of subprograms.

sql/oracle/routines and helpers have one subprogram per file, internal one family per file. They
form the body of package rowq; its specification has the signatures of those without `internal_`.
Oracle grants whole packages, so every role except admin has a package that forwards calls to its
routines. dequeue_wait and wait_for_result have their own package with the private subprograms they
need, because a package cannot be replaced while a session runs it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rowq.contract import load_contract
from rowq.tools.migrate.sources import INTERNAL, file_units, read

ROLES = {"producer": "rowq_produce", "consumer": "rowq_consume", "monitor": "rowq_look"}
"""Role -> the package granted to it; admin's is rowq itself."""

WAITS = {"dequeue_wait", "wait_for_result"}
"""The routines of the package rowq_wait."""

HELPS = {"ids": "p_message_ids", "put": "enqueue"}
"""Helper -> the parameter or routine that requires it in a package."""

TYPES = "types.sql"
"""The file of internal that only declares the package's types."""

_SUBPROGRAM = re.compile(
    r"(?P<kind>procedure|function) (?P<name>\w+)(?:\((?P<parameters>.*?)\))?"
    r"(?:\nreturn (?P<result>\w+))?\nis\n",
    re.DOTALL,
)
_PARAMETER = re.compile(r"(p_\w+) +(?:in out|in|out) ")
_CALLED = re.compile(r"\binternal_\w+")
_PURPOSE = re.compile(r"^-- purpose +(.+)$", re.MULTILINE)
_ORIGIN = "-- Assembled from {sources}.\n"


@dataclass(frozen=True)
class Subprogram:
    """A procedure or function."""

    name: str
    signature: str
    text: str
    parameters: tuple[str, ...]
    is_function: bool
    purpose: str

    @property
    def is_private(self) -> bool:
        """Whether no specification declares it."""
        return self.name.startswith("internal_")


def subprogram(name: str, text: str) -> Subprogram:
    """Return the subprogram of a text; raise ValueError unless it begins with a signature."""
    match = _SUBPROGRAM.match(text)
    if match is None:
        raise ValueError(f"{name}: expected a signature in the house style")
    return Subprogram(
        name=match["name"],
        signature=text[: match.end() - len("\nis\n")],
        text=text,
        parameters=tuple(_PARAMETER.findall(match["parameters"] or "")),
        is_function=match["kind"] == "function",
        purpose=purpose[1] if (purpose := _PURPOSE.search(text)) else "",
    )


def subprograms(folder: Path) -> list[Subprogram]:
    """Return the subprograms of a folder, ordered by file name and position."""
    return [
        subprogram(name, text)
        for path in sorted(folder.glob("*.sql"))
        if path.name != TYPES
        for name, text in file_units(f"{folder.name}/{path.name}", read(path)).items()
    ]


def indented(text: str) -> str:
    """Return a text indented by four columns."""
    return "".join(f"    {line}\n" if line else "\n" for line in text.splitlines())


def specification(package: str, sources: str, public: list[Subprogram]) -> str:
    """Return the statement that creates a package's specification, with purposes as comments."""
    declared = "\n".join(
        indented(f"-- {subprogram.purpose}\n{subprogram.signature};") for subprogram in public
    )
    head = _ORIGIN.format(sources=sources)
    create = f"create or replace package {package} authid definer as"
    return f"{head}{create}\n\n{declared}\nend {package};\n/\n"


def body(package: str, sources: str, parts: list[str]) -> str:
    """Return the statement that creates a package's body."""
    head = _ORIGIN.format(sources=sources)
    inner = "\n".join(parts)
    return f"{head}create or replace package body {package} as\n\n{inner}\nend {package};\n/\n"


def forwarding(subprogram: Subprogram) -> str:
    """Return a subprogram that forwards a call with its arguments."""
    arguments = ",\n".join(f"        {name} => {name}" for name in subprogram.parameters)
    package = "rowq_wait" if subprogram.name in WAITS else "rowq"
    call = f"{package}.{subprogram.name}(\n{arguments}\n    );"
    line = f"    return {call}\n" if subprogram.is_function else f"    {call}\n"
    return f"{subprogram.signature}\nis\nbegin\n{line}end {subprogram.name};\n"


def needed_by(text: str, private: list[Subprogram]) -> list[Subprogram]:
    """Return the private subprograms that a text calls directly or indirectly."""
    found = dict.fromkeys(_CALLED.findall(text), "")
    texts = {subprogram.name: subprogram.text for subprogram in private}
    while missing := [name for name, seen in found.items() if not seen]:
        for name in missing:
            found[name] = texts[name]
            for called in _CALLED.findall(texts[name]):
                found.setdefault(called, "")
    return [subprogram for subprogram in private if subprogram.name in found]


def beside(sources: Path) -> list[Subprogram]:
    """Return the subprograms that package rowq declares besides the contract's routines.

    First those for callers in PL/SQL, then those for package rowq_wait.
    """
    return _declared(subprograms(sources / "helpers"), subprograms(sources / INTERNAL))


def _declared(helpers: list[Subprogram], families: list[Subprogram]) -> list[Subprogram]:
    return [*helpers, *(each for each in families if not each.is_private)]


def packages(sources: Path) -> Iterator[tuple[str, str]]:
    """Yield file name and text of every specification and body, in the order of installation."""
    contract = load_contract(sources.parent)
    helpers, routines = subprograms(sources / "helpers"), subprograms(sources / "routines")
    families = subprograms(sources / INTERNAL)
    private = [each for each in families if each.is_private]
    waits = [routine for routine in routines if routine.name in WAITS]
    types = read(sources / INTERNAL / TYPES)
    public = [*_declared(helpers, families), *routines]
    whole = [subprogram for subprogram in public if subprogram not in waits]
    needed = needed_by("".join(subprogram.text for subprogram in whole), private)
    waiting = needed_by("".join(each.text for each in waits), private)
    where = "routines, helpers and internal"
    yield "rowq.sql", specification("rowq", where, public)
    yield "rowq_wait.sql", specification("rowq_wait", "the routines that wait", waits)
    forwarded = [forwarding(each) for each in waits]
    parts = [types, *_with_signatures(needed), *(each.text for each in whole), *forwarded]
    yield "rowq_body.sql", body("rowq", where, parts)
    parts = [*_with_signatures(waiting), *(each.text for each in waits)]
    yield "rowq_wait_body.sql", body("rowq_wait", "internal and the routines that wait", parts)
    for role, package in ROLES.items():
        granted = [one for one in routines if role in contract.routine(one.name).roles]
        uses = {name for routine in granted for name in (routine.name, *routine.parameters)}
        public = [*(helper for helper in helpers if HELPS[helper.name] in uses), *granted]
        where = f"the signatures of the routines of role rowq_{role}"
        yield f"{package}.sql", specification(package, where, public)
        yield f"{package}_body.sql", body(package, where, [forwarding(each) for each in public])


def _with_signatures(private: list[Subprogram]) -> list[str]:
    """Return the texts of private subprograms after the declarations of all of them."""
    forward = "".join(f"{subprogram.signature};\n" for subprogram in private)
    return [forward, *(subprogram.text for subprogram in private)]
