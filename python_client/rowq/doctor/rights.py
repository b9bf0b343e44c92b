"""Which routines an account may call: each is called so that it must refuse, and change nothing."""

from collections.abc import Iterator
from typing import Any

from rowq.contract import Routine, load_contract
from rowq.doctor.check import Check, Status
from rowq.engines import engine_for_connection, is_driver_error
from rowq.errors import Refused

_NOWHERE = "rowq doctor: there is no such queue"
_NO_NAME = "rowq doctor\n"
"""A name that no queue may have, for what would make one."""

ROLES = ("producer", "consumer", "monitor", "admin")


def rights(connection: Any) -> Iterator[Check]:
    """Yield one check: which of rowq's roles the account has the rights of."""
    routines = load_contract().routines
    may = {name for name, one in routines.items() if may_call(connection, one)}
    lacks = {
        role: sorted(
            name for name, one in routines.items() if role in one.roles and name not in may
        )
        for role in ROLES
    }
    has = [role for role in ROLES if not lacks[role]]
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
    given = [one.name for one in routine.parameters if one.direction == "in"]
    arguments = {name: _argument(routine, name) for name in given}
    try:
        engine_for_connection(connection).call(connection, routine.name, arguments)
    except Refused:
        return True
    except Exception as error:
        if not is_driver_error(error):
            raise
        return False
    return True


def _argument(routine: Routine, name: str) -> Any:
    """Return a value that the routine's types take and its first look refuses."""
    if name == "queue_name":
        return _NO_NAME if routine.name == "create_queue" else _NOWHERE
    return {
        "claim_id": 1,
        "message_id": 1,
        "message_ids": [1],
        "messages": [],
        "batch_size": 1,
        "wait_seconds": 0,
        "priority": 5,
        "after_message_id": 0,
        "max_messages": 1,
        "max_count": 1,
        "force": False,
        "include_dead": False,
    }.get(name)
