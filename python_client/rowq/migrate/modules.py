"""The modules of an engine, found by their names."""

import importlib
from typing import Any


def module_for(engine: str, part: str) -> Any:
    """Return an engine's module of this package: backend, look or script."""
    return importlib.import_module(f"rowq.migrate.{engine}.{part}")
