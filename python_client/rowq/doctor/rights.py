"""Which routines an account may call: each is called so that it must refuse, and change nothing."""

from collections.abc import Iterator
from typing import Any

from rowq.arguments import plain_arguments
from rowq.contract import Routine, load_contract
from rowq.doctor.check import Check, Status
from rowq.engines import engine_for_connection, is_driver_error
from rowq.errors import Refused

_NOWHERE = "rowq doctor: there is no such queue"
_NO_NAME = "rowq doctor\n"
"""A name that no queue may have, for what would make one."""


def rights(connection: Any) -> Iterator[Check]:
    """Yield one check: which of rowq's roles the account has the rights of."""
    contract = load_contract()
    there = contract.of(engine_for_connection(connection).name)
    routines = {name: one for name, one in there.items() if not one.is_own}
    may = {name for name, one in routines.items() if may_call(connection, one)}
    lacks = {
        role: sorted(
            name for name, one in routines.items() if role in one.roles and name not in may
        )
        for role in contract.roles
    }
    has = [role for role in contract.roles if not lacks[role]]
    if not lacks["admin"]:
        yield Check("rights", Status.OK, f"may call all {len(may)} routines")
    elif has:
        missing = ", ".join(lacks["admin"])
        yield Check("rights", Status.WARNING, f"those of {', '.join(has)}; may not call {missing}")
    else:
        word = "has no role of rowq's: grant it rowq_producer, rowq_consumer or another"
        yield Check("rights", Status.FAILED, word)


def may_call(connection: Any, routine: Routine) -> bool:
    """Return whether this account may call a routine, without an effect."""
    queue_name = _NO_NAME if routine.name == "create_queue" else _NOWHERE
    inputs = dict.fromkeys(one.name for one in routine.parameters if one.direction == "in")
    arguments = inputs | plain_arguments(routine, queue_name)
    try:
        engine_for_connection(connection).call(connection, routine.name, arguments)
    except Refused:
        return True
    except Exception as error:
        if not is_driver_error(error):
            raise
        return False
    return True
