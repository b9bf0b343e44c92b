"""Lets time pass for one queue by moving its stored times back, so that no test has to wait."""

from tests.engines.base import Connection
from tests.helpers.dialects import dialect_of


def pass_seconds(connection: Connection, queue_name: str, seconds: int) -> None:
    """Move every stored time of a queue back, as the tables' owner, in autocommit.

    Rows not committed yet stay as they are.
    """
    dialect_of(connection).pass_seconds(connection, queue_name, int(seconds))


def tick(connection: Connection, queue_name: str) -> None:
    """Let the moment come at which the next maintain looks for late committers again.

    Unlike pass_seconds it touches no row that an open transaction could hold.
    """
    dialect_of(connection).tick(connection, queue_name)


def expire_claim(connection: Connection, claim_id: int) -> None:
    """Let the lease of one claim run out now."""
    dialect_of(connection).expire_claim(connection, claim_id)
