"""Where the migrations of each engine are, and the code that runs them."""

import importlib
from typing import Any

from rowq.engines import engines
from rowq.errors import EngineUnknown
from rowq.migrate.release import Release, read_release
from rowq.resources import migrations_directory


def release_for(engine: str) -> Release:
    """Return the migrations that this rowq carries for an engine, such as postgres.

    Raises:
        EngineUnknown: rowq has no engine of this name.
    """
    known = [one.name for one in engines()]
    if engine not in known:
        raise EngineUnknown(f"rowq has no engine {engine!r}; it has {', '.join(known)}")
    return read_release(migrations_directory() / engine)


def module_for(engine: str, part: str) -> Any:
    """Return an engine's module of this package: backend, look or script."""
    return importlib.import_module(f"rowq.migrate.{engine}.{part}")
