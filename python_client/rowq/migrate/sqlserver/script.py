"""The migrations as one script for sqlcmd."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS
from rowq.migrate.release import Release
from rowq.migrate.shared import recorded
from rowq.migrate.sqlserver.sql import batches, version_text

# Without SQLCMD mode an editor takes the first line for an error and goes on; then the variable is
# no variable, and nothing that follows is executed.
_HEAD = """:on error exit
:setvar rowq_runs_in sqlcmd
go
-- rowq {version}: {what}.
-- Run it with: sqlcmd -S server -d database -b -i script.sql, or in an editor's SQLCMD mode. It is
-- one transaction: all of it or nothing. QUOTED_IDENTIFIER and ANSI_NULLS, which procedures keep
-- from the session that makes them, are set in here; sqlcmd needs no -I.
if N'$(rowq_runs_in)' <> N'sqlcmd'
begin
    print N'Nothing was done: run this with sqlcmd, or turn on SQLCMD mode.';
    set noexec on;
end;
go
set implicit_transactions off;
go
"""
_REQUIRE = """
if not exists (select 1 from rowq.migration m where m.migration_id = N'{needed}')
begin
    throw 52807, N'RQ807 unknown_migration: this script begins after {needed}, which is not installed', 1;
end;
"""  # noqa: E501 - a literal of T-SQL is one line
_REFUSE_NEWER = """
if exists (
    select 1
    from rowq.migration m
    where m.migration_id not in ({known})
)
begin
    throw 52804, N'RQ804 schema_newer: this database was upgraded by a newer rowq', 1;
end;
"""
_REMEMBER = """
if not exists (select 1 from rowq.migration m where m.migration_hash = N'{hash}')
begin
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (N'{hash}', N'{id}', sysutcdatetime());

    insert into rowq.migration_log
        (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
    values (
        lower(convert(nvarchar(36), newid())), N'{hash}', N'{id}', N'apply', original_login(),
        N'script', sysutcdatetime()
    );
end;
"""
_TAIL = """
commit transaction;
exec sys.sp_releaseapplock
    @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
go
set noexec off;
"""


def script(release: Release, from_number: int) -> str:
    """Return the script that installs what comes after `from_number`."""
    newest = release.get(release.newest)
    what = f"upgrade from {from_number} to" if from_number else "install"
    head = _HEAD.format(version=newest.rowq_version, what=f"{what} {newest.number}")
    parts = [f"{part}\ngo\n" for text in _texts(release, from_number) for part in batches(text)]
    return head + "\n".join(parts)


def _texts(release: Release, from_number: int) -> Iterator[str]:
    newest = release.get(release.newest)
    yield release.text("preflight.sql")
    yield "begin transaction;"
    yield release.text("bookkeeping.sql")
    if from_number:
        yield _REQUIRE.format(needed=release.get(from_number).id)
    known = ", ".join(f"N'{numbered.id}'" for numbered in release.migrations)
    yield _REFUSE_NEWER.format(known=known)
    for numbered in release.migrations[from_number:]:
        yield from recorded(numbered)
        yield _REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
    yield version_text(newest)
    yield release.copies(newest.number).get(GRANTS, "")
    yield _TAIL
