"""Transactions and notifications of a worker, one module per engine."""

import importlib
from typing import Any

from rowq.engines.base import Engine, ListeningEngine
from rowq.worker.engines.base import Notifications, WorkTransaction


def work_transaction(engine: Engine, connection: Any) -> WorkTransaction:
    """Return a transaction for a worker's handlers; it is not begun."""
    work: WorkTransaction = _of(engine).WORK(connection)
    return work


def notifications_of(engine: ListeningEngine, connection: Any) -> Notifications:
    """Return the notifications of a connection; call this before `listen`."""
    notifications: Notifications = _of(engine).NOTIFICATIONS(connection)
    return notifications


def _of(engine: Engine) -> Any:
    return importlib.import_module(f"{__name__}.{engine.name}")
