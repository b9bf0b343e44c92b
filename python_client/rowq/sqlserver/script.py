"""A migration as a script for sqlcmd."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS, Part, joined
from rowq.migrate.release import Numbered, Release
from rowq.migrate.steps import recorded
from rowq.sqlserver.statements import version_text

# Without SQLCMD mode an editor takes the first line for an error and goes on; then the variable is
# no variable, and nothing that follows is executed.
_HEAD = """:on error exit
:setvar rowq_runs_in sqlcmd
go
-- {heading}.
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
_TAIL = """commit transaction;
exec sys.sp_releaseapplock
    @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
go
set noexec off;
"""


def script(release: Release, numbered: Numbered) -> str:
    """Return the script that installs a migration where the ones before it are."""
    return joined(_HEAD.format(heading=numbered.heading), _parts(release, numbered))


def _parts(release: Release, numbered: Numbered) -> Iterator[Part]:
    yield _part("before", "preflight.sql", release.text("preflight.sql"))
    yield _part("before", "begin", "begin transaction;")
    yield _part("before", "bookkeeping.sql", release.text("bookkeeping.sql"))
    *before, own = release.ids(numbered.number)
    known = ", ".join(f"N'{known}'" for known in (*before, own))
    require = _REQUIRE.format(needed=before[-1]) if before else ""
    yield _part("before", "installed", f"{require}{_REFUSE_NEWER.format(known=known)}")
    for part in recorded(numbered.migration):
        yield _part(part.kind, part.name, part.text)
    remember = _REMEMBER.format(hash=numbered.migration.hash, id=own)
    yield _part("after", "noted", f"{remember}{version_text(numbered)}")
    yield _part("file", GRANTS, release.files(numbered.number)[GRANTS])
    yield _part("after", "committed", _TAIL)


def _part(kind: str, name: str, text: str) -> Part:
    return Part(kind, name, client_form(text))


def client_form(text: str) -> str:
    """Return a file or statement as it stands in the script: its last batch ends, too."""
    return text if text.endswith("\ngo\n") else f"{text.strip()}\ngo\n"


def source_form(text: str) -> str:
    """Return a file as it was before it came into the script: every file ends its last batch."""
    return text
