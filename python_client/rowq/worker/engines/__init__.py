"""The transaction of a worker's handlers on each engine, in the module of the engine's name."""

import importlib
from typing import Any

from rowq.engines.base import Engine
from rowq.worker.engines.base import WorkTransaction


def work_transaction(engine: Engine, connection: Any) -> WorkTransaction:
    """Return a transaction for a worker's handlers, not yet begun."""
    work: WorkTransaction = importlib.import_module(f"{__name__}.{engine.name}").WORK(connection)
    return work
