"""sql/contract.toml as Python values: routines, errors and promises.

In a wheel the SQL files are inside the package, in a checkout at the repository root.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent.parent


def sql_directory() -> Path:
    """Return the directory of contract.toml, with one directory of SQL per engine."""
    return _find("sql", "contract.toml")


def migrations_directory() -> Path:
    """Return the directory with one directory of migrations per engine."""
    return _find("migrations", "")


def _find(directory: str, landmark: str) -> Path:
    for root in (_PACKAGE, _CHECKOUT):
        if (root / directory / landmark).exists():
            return root / directory
    raise FileNotFoundError(f"directory {directory} is missing; reinstall rowq")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A routine's parameter; `default` is the contract's text, or None.

    engines: the engines that have it; empty means all. meaning: its description.
    """

    name: str
    type: str
    default: str | None
    direction: str
    engines: tuple[str, ...] = ()
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a routine's result; `engines` as of a parameter."""

    name: str
    type: str
    engines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Overload:
    """A second form of a routine on one engine, whose `parameter` has another type and no default.

    type: the engine's name of the type.
    """

    engine: str
    parameter: str
    type: str


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine; `kind` is function or procedure, empty `engines` means all.

    is_own: other engines will never have it, so the client has no method for it. repeatable: a
    call may be repeated if its answer was lost. short_form_of: the routine that it abbreviates, or
    None. only_on: by number, the engines of an error or promise that not all engines have.
    """

    name: str
    group: str
    kind: str
    purpose: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    outcomes: tuple[str, ...]
    errors: tuple[str, ...]
    promises: tuple[str, ...]
    roles: tuple[str, ...]
    repeatable: bool
    engines: tuple[str, ...]
    is_own: bool
    short_form_of: str | None
    overloads: tuple[Overload, ...]
    only_on: Mapping[str, list[str]]

    def on(self, engine: str) -> "Routine":
        """Return the routine as an engine has it."""

        def present(numbers: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(one for one in numbers if engine in self.only_on.get(one, [engine]))

        return replace(
            self,
            parameters=tuple(one for one in self.parameters if _is_on(engine, one)),
            columns=tuple(one for one in self.columns if _is_on(engine, one)),
            errors=present(self.errors),
            promises=present(self.promises),
        )

    def overloads_on(self, engine: str) -> tuple[Overload, ...]:
        """Return the overloads of the routine on an engine."""
        return tuple(overload for overload in self.overloads if overload.engine == engine)


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """A numbered error and its Python class.

    of_nodes: any call may raise it if queues are on several nodes, and none otherwise.
    """

    number: str
    name: str
    class_name: str
    retryable: bool
    meaning: str
    of_nodes: bool


@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """The contract; `own` are the routines that some engines will never have."""

    version: int
    types: Mapping[str, Mapping[str, str]]
    routines: Mapping[str, Routine]
    own: Mapping[str, Routine]
    errors: Mapping[str, ErrorEntry]
    promises: Mapping[str, str]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that may call a routine, such as producer for the database's rowq_producer."""
        every = [*self.routines.values(), *self.own.values()]
        return tuple(dict.fromkeys(role for routine in every for role in routine.roles))

    def routine(self, name: str) -> Routine:
        """Return a routine of any engine."""
        return self.routines.get(name) or self.own[name]

    def of(self, engine: str) -> Mapping[str, Routine]:
        """Return the routines of an engine by name."""
        return _of(self, engine)


@cache
def _of(contract: Contract, engine: str) -> Mapping[str, Routine]:
    every = {**contract.routines, **contract.own}
    return {name: entry.on(engine) for name, entry in every.items() if _is_on(engine, entry)}


@cache
def raw_contract(sql: Path | None = None) -> Mapping[str, Any]:
    """Read contract.toml without interpreting it, once per process; `sql` is its folder."""
    folder = sql or sql_directory()
    return tomllib.loads((folder / "contract.toml").read_text(encoding="utf-8"))


@cache
def load_contract(sql: Path | None = None) -> Contract:
    """Read contract.toml, once per process; `sql` is its folder."""
    raw = raw_contract(sql)
    routines = {name: _routine(name, entry, raw) for name, entry in raw["routine"].items()}
    return Contract(
        version=raw["contract_version"],
        types=raw["types"],
        routines={name: entry for name, entry in routines.items() if not entry.is_own},
        own={name: entry for name, entry in routines.items() if entry.is_own},
        errors={number: _error(number, entry) for number, entry in raw["errors"].items()},
        promises=raw["promises"],
    )


def _is_on(engine: str, entry: Parameter | Column | Routine) -> bool:
    return engine in (entry.engines or [engine])


def _routine(name: str, entry: Mapping[str, Any], raw: Mapping[str, Any]) -> Routine:
    return Routine(
        name=name,
        group=entry["group"],
        kind=entry.get("kind", "function"),
        purpose=entry["purpose"],
        parameters=tuple(_parameter(parameter, raw) for parameter in entry["parameters"]),
        columns=tuple(_column(column, raw) for column in entry["columns"]),
        outcomes=tuple(entry.get("outcomes", ())),
        errors=tuple(entry["errors"]),
        promises=tuple(entry["promises"]),
        roles=tuple(entry["roles"]),
        repeatable=entry.get("repeatable", False),
        engines=tuple(entry.get("engines", ())),
        is_own="engines" in entry,
        short_form_of=entry.get("short_form_of"),
        overloads=tuple(
            Overload(engine, parameter, type_)
            for engine, parameters in entry.get("overloads", {}).items()
            for parameter, types in parameters.items()
            for type_ in types
        ),
        only_on=raw["promise_engines"] | entry.get("error_engines", {}),
    )


def _parameter(entry: Mapping[str, Any], raw: Mapping[str, Any]) -> Parameter:
    known = raw["parameters"][entry["name"]]
    return Parameter(
        name=entry["name"],
        type=known["type"],
        default=entry.get("default"),
        direction=entry.get("direction", "in"),
        engines=tuple(known.get("engines", ())),
        meaning=known["meaning"],
    )


def _column(name: str, raw: Mapping[str, Any]) -> Column:
    known = raw["columns"][name]
    return Column(name, known["type"], tuple(known.get("engines", ())))


def _error(number: str, entry: Mapping[str, Any]) -> ErrorEntry:
    return ErrorEntry(
        number=number,
        name=entry["name"],
        class_name=entry["class"],
        retryable=entry["retryable"],
        meaning=entry["meaning"],
        of_nodes=entry.get("nodes", False),
    )
