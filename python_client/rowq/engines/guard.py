"""Which connection a worker has lent a handler, and the calls that it refuses meanwhile."""

from collections.abc import Mapping
from typing import Any

from rowq.errors import ForbiddenInHandler

LENT_FOR = "rowq_claim_id"
"""An attribute of a connection: the claim for whose handler a worker has lent it."""
_ABOUT_A_CLAIM = frozenset({"complete", "retry_later", "fail_now", "release", "extend_lease"})


def refuse_own_claim(connection: Any, routine: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a call about the claim whose message the connection was lent for.

    The claim's row would be locked until the transaction ends, and the heartbeat wait for it; and
    what the worker then says about the message would be stale.
    """
    if routine in _ABOUT_A_CLAIM:
        own = getattr(connection, LENT_FOR, None)
        if own is not None and arguments.get("claim_id") == own:
            raise ForbiddenInHandler(
                f"{routine}: a handler says by its end what becomes of its message, and the worker"
                " extends the lease meanwhile"
            )


def is_lent(connection: Any) -> bool:
    """Whether a connection is a worker's, and lent to a handler now."""
    return getattr(connection, LENT_FOR, None) is not None
