"""Turns errors of a driver into refusals of a migration."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rowq.tools.migrate.errors import MigrationBusy, MigrationError

_Error = TypeVar("_Error", bound=Exception)


@contextmanager
def refusals(
    kind: type[_Error], refusal_of: Callable[[_Error], MigrationError | None]
) -> Iterator[None]:
    """Turn a driver's errors that mean a refusal into refusals; others pass through untouched."""
    try:
        yield
    except kind as error:
        if refusal := refusal_of(error):
            raise refusal from error
        raise


def tables_in_use(besides: str = "") -> MigrationBusy:
    """Return the refusal of a migration that waited for locks too long."""
    return MigrationBusy(
        f"{MigrationBusy.number} migration_busy: tables are in use{besides}",
        "Try again; rowq health names long transactions.",
    )
