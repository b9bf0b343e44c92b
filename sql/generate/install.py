"""The generated parts of sql/<engine>/install.sql: helpers, routines and bookkeeping.

Their order does not matter to the server: helpers by family, routines as in the contract, then
overloads; on Oracle, packages.
"""

from collections.abc import Iterator
from pathlib import Path

from rowq.contract import load_contract
from rowq.engines import TOOLS, engine_module
from rowq.tools.engines.oracle.packages import packages
from rowq.tools.migrate.client_script import BaseScript
from rowq.tools.migrate.release import Release, read_release
from sql.generate.markers import Parts

FAMILIES = (
    *("arguments", "text", "transactions", "queues", "store", "topics", "groups", "predecessors"),
    *("floors", "dequeue", "finish", "cancel", "limits", "schedules", "results", "history"),
    *("archive", "maintain", "health"),
)
"""The files of sql/<engine>/internal, the same on every engine."""

_LINES = {"mysql": "-- source {}", "oracle": "@@{}", "postgres": "\\ir {}", "sqlserver": ":r {}"}
"""Include commands of each engine's client."""


def routines(engine: Path) -> str:
    """Return the lines that include an engine's helpers and routines."""
    line = _LINES[engine.name]
    return "".join(f"{line.format(name)}\n" for name in _files(engine))


def parts_of_bookkeeping(engine: Path) -> Parts:
    """Return the check for another release, and the record of this one."""
    script: BaseScript = engine_module(engine.name, "script", TOOLS).SCRIPT

    def release() -> Release:
        return read_release(engine.parent.parent / "migrations" / engine.name)

    return {
        "checks": lambda: script.checks_of_sources(release()),
        "bookkeeping": lambda: script.record_of_sources(release()),
    }


def _files(engine: Path) -> Iterator[str]:
    if engine.name == "oracle":
        yield from (f"packages/{name}" for name, _ in packages(engine))
    else:
        yield from (f"internal/{family}.sql" for family in FAMILIES)
        routines = load_contract().of(engine.name).values()
        yield from (f"routines/{routine.name}.sql" for routine in routines)
        for routine in routines:
            for overload in routine.overloads_on(engine.name):
                yield f"overloads/{routine.name}_{overload.type}.sql"
