"""Statements that migrations on PostgreSQL send beside the migrations' own."""

from rowq.migrate.release import Numbered

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
