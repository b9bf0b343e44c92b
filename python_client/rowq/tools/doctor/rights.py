"""Which routines an account may call: each is called so that it must refuse, and change nothing."""

from collections.abc import Iterator
from typing import Any

from rowq.contract import load_contract
from rowq.engines import engine_for_connection
from rowq.tools.doctor.check import Check, Status
from rowq.tools.rights import may_call


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
