"""Finds out what an account may call, without an effect."""

from collections.abc import Callable
from functools import partial
from typing import Any

from rowq.arguments import plain_arguments
from rowq.contract import Routine
from rowq.engines import engine_for_connection, is_driver_error
from rowq.engines.base import Engine
from rowq.errors import Refused

_NOWHERE = "rowq doctor: there is no such queue"
_NO_NAME = "rowq doctor\n"
"""A name that no queue may have, for what would make one."""


def _refused_arguments(routine: Routine) -> dict[str, Any]:
    """Return arguments with which a routine has no effect: who may call it is refused."""
    queue_name = _NO_NAME if routine.name == "create_queue" else _NOWHERE
    inputs = dict.fromkeys(one.name for one in routine.parameters if one.direction == "in")
    return inputs | plain_arguments(routine, queue_name)


def is_allowed(
    engine: Engine, call: Callable[[str, dict[str, Any]], object], routine: Routine
) -> bool:
    """Return whether an account may call a routine; raises what leaves that open.

    call: calls the routine of a name with arguments, which have no effect here.
    """
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
    """Return whether this account may call a routine, without an effect; an error means no."""
    engine = engine_for_connection(connection)
    try:
        return is_allowed(engine, partial(engine.call, connection), routine)
    except Exception as error:
        if not is_driver_error(error):
            raise
        return False
