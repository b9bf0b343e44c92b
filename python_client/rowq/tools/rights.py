"""Which routines an account can call, found out without side effects."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rowq.arguments import plain_arguments
from rowq.contract import Routine, load_contract
from rowq.engines import engine_for_connection, is_driver_error
from rowq.engines.base import Engine
from rowq.errors import Refused

_MISSING_QUEUE = "rowq doctor: there is no such queue"
_INVALID_NAME = "rowq doctor\n"
"""For routines that would create a queue."""

_SAME_ROLES = {"after_failover": "purge_archive"}
"""By a routine that has no argument to refuse: another of the same roles, called instead."""


def _refused_arguments(routine: Routine) -> dict[str, Any]:
    """Return arguments that a routine refuses, so that the call has no effect."""
    queue_name = _INVALID_NAME if routine.name == "create_queue" else _MISSING_QUEUE
    inputs = dict.fromkeys(one.name for one in routine.parameters if one.direction == "in")
    return inputs | plain_arguments(routine, queue_name)


def is_allowed(
    engine: Engine, call: Callable[[str, dict[str, Any]], object], routine: Routine
) -> bool:
    """Return whether an account can call a routine by `call`; raise any other error."""
    if routine.name in _SAME_ROLES:
        routine = load_contract().routines[_SAME_ROLES[routine.name]]
    try:
        call(routine.name, _refused_arguments(routine))
    except Refused:
        return True
    except Exception as error:
        if engine.is_denied(error):
            return False
        raise
    return True


def may_call(connection: Any, routine: Routine) -> bool:
    """Return whether this account can call a routine; an error means no."""
    engine = engine_for_connection(connection)
    try:
        return is_allowed(engine, partial(engine.call, connection), routine)
    except Exception as error:
        if not is_driver_error(error):
            raise
        return False
