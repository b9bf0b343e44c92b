"""Statements that migrations on PostgreSQL send beside the migrations' own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowq.migrate.errors import BY_NUMBER, MigrationError
from rowq.migrate.release import Numbered

if TYPE_CHECKING:
    import psycopg

TRUST = "trust.sql"
# What runs first in the transaction of a migration, in this order.
BEFORE = ("preflight.sql", TRUST, "lock.sql")

_REMEMBER_VERSION = """
    insert into rowq.meta (name, value)
    values ('schema_version', '{number}'), ('rowq_version', '{version}')
    on conflict (name) do update
    set value = excluded.value,
        changed_at = clock_timestamp()
    where rowq.meta.value <> excluded.value;
"""


def version_text(numbered: Numbered) -> str:
    """Return the statement that notes in rowq.meta what is installed."""
    return _REMEMBER_VERSION.format(number=numbered.number, version=numbered.rowq_version)


def numbered_refusal(error: psycopg.Error) -> MigrationError | None:
    """Return the refusal that a script has raised by its number, None for any other error."""
    kind = BY_NUMBER.get(error.sqlstate or "")
    return kind(error.diag.message_primary or str(error), error.diag.message_hint) if kind else None
