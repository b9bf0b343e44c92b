"""A migration as a script for sqlcmd and for a driver."""

import re
from collections.abc import Iterator
from pathlib import Path

from rowq.engines.sqlserver.calls import procedure_name
from rowq.tools.migrate import comments
from rowq.tools.migrate.client_script import BaseScript, Bookkeeping
from rowq.tools.migrate.frozen import Section
from rowq.tools.migrate.release import Release

# Block enqueue until the transaction ends, so that the counts stay correct.
HOLD_MESSAGES = """
    declare @held bigint;
    select @held = max(m.message_id)
    from rowq.message m with (tablockx, holdlock);
"""

BOOKKEEPING = Bookkeeping(
    migration="rowq.migration",
    log="rowq.migration_log",
    mark="?",
    user="original_login()",
    now="sysutcdatetime()",
    new_id="lower(convert(nvarchar(36), newid()))",
    version="""
update m
set value = v.value,
    changed_at = sysutcdatetime()
from rowq.meta m
join (
    values (N'schema_version', N'{number}'), (N'rowq_version', N'{version}')
) v (name, value) on v.name collate Latin1_General_100_BIN2 = m.name
where m.value <> v.value collate Latin1_General_100_BIN2;

insert into rowq.meta (name, value, changed_at)
select v.name, v.value, sysutcdatetime()
from (
    values (N'schema_version', N'{number}'), (N'rowq_version', N'{version}')
) v (name, value)
where not exists (select 1 from rowq.meta m where m.name = v.name collate Latin1_General_100_BIN2);
""",
)

# The groups: the word go, what can hide it from sqlcmd, and everything else except blanks.
_TOKEN = re.compile(
    r"""
    (?P<go>^[ \t]*go\b[^\n]*$)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<code>'[^']*' | "[^"]*" | \[(?:[^\]]|\]\])*\] | \S)
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_BLOCK = re.compile(r"/\*|\*/")
_GO_ALONE = re.compile(r"\s*go\s*(?:--.*)?", re.IGNORECASE)

# Without SQLCMD mode an editor reports an error in the first line and continues. Then the variable
# is not replaced, and nothing below is executed.
_HEAD = """:on error exit
:setvar rowq_runs_in sqlcmd
go
-- {heading}.
-- Run it with: sqlcmd -S server -d database -b -i script.sql, or in an editor's SQLCMD mode. It is
-- one transaction. It sets QUOTED_IDENTIFIER and ANSI_NULLS, so sqlcmd needs no -I.
if N'$(rowq_runs_in)' <> N'sqlcmd'
begin
    print N'Nothing was changed. Run this with sqlcmd, or turn on SQLCMD mode.';
    set noexec on;
end;
go
set implicit_transactions off;
go
"""
_REQUIRE = """
if not exists (select 1 from rowq.migration m where m.migration_id = N'{needed}')
begin
    throw 52807, N'RQ807 unknown_migration: this script requires migration {needed}', 1;
end;
"""
_REFUSE_NEWER = """
if exists (
    select 1
    from rowq.migration m
    where m.migration_id not in ({known})
)
begin
    throw 52804, N'RQ804 schema_newer: the database has a newer rowq', 1;
end;
"""
_REFUSE_OLDER = """
if exists (select 1 from rowq.migration)
    and not exists (select 1 from rowq.migration m where m.migration_id = N'{newest}')
begin
    throw 52807, N'RQ807 unknown_migration: the database has an older rowq', 1;
end;
"""
_REMEMBER = """
if not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = N'{hash}'
)
begin
    insert into rowq.migration (migration_hash, migration_id, applied_at_utc)
    values (
        N'{hash}',
        N'{id}', sysutcdatetime()
    );

    insert into rowq.migration_log
        (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
    values (
        lower(convert(nvarchar(36), newid())),
        N'{hash}',
        N'{id}', N'apply', original_login(), N'script', sysutcdatetime()
    );
end;
"""
_PLAIN_HEAD = """-- {heading}.
-- For drivers and other tools: a line "-- [end of statement]" separates two batches. Run them one
-- by one, in this order, on a separate connection. After an error stop, and close the connection.
-- Together they are one transaction. For sqlcmd, omit --plain.
"""
_REFUSE_MESSAGES = """
declare @held bigint;
select @held = max(m.message_id)
from rowq.message m with (tablockx, holdlock);
if exists (select 1 from rowq.ready)
    or exists (select 1 from rowq.delayed)
    or exists (select 1 from rowq.group_waiting)
    or exists (select 1 from rowq.blocked)
    or exists (select 1 from rowq.leased)
    or exists (select 1 from rowq.dead)
    or exists (select 1 from rowq.archived)
    or exists (select 1 from rowq.finished)
begin
    throw 52805, N'RQ805 messages_left: this rollback would delete messages', 1;
end;
"""
_EXECUTE = "set noexec off;"
_TAIL = """commit transaction;
exec sys.sp_releaseapplock
    @Resource = N'rowq.migrate', @LockOwner = N'Session', @DbPrincipal = N'dbo';
revert;
go
set noexec off;
go
"""


def batches(text: str) -> Iterator[str]:
    """Yield the batches of a script as sqlcmd would send them, without empty ones.

    A batch ends with a line `go` outside literals, quoted names and comments. Raises ValueError if
    anything follows `go`, such as a number.
    """
    start = position = 0
    has_code = False
    while token := _TOKEN.search(text, position):
        position = token.end()
        if token.lastgroup == "block":
            position = _end_of_comment(text, position)
        elif token.lastgroup == "go":
            if not _GO_ALONE.fullmatch(token.group()):
                raise ValueError(f"expected go alone in its line, got {token.group().strip()}")
            if has_code:
                yield text[start : token.start()].strip()
            start, has_code = position, False
        elif token.lastgroup == "code":
            has_code = True
    if has_code:
        yield text[start:].strip()


def _end_of_comment(text: str, position: int) -> int:
    """Return the end of the comment that begins before `position`; comments nest in T-SQL."""
    depth = 1
    while depth:
        mark = _BLOCK.search(text, position)
        if mark is None:
            raise ValueError("unterminated comment")
        depth += 1 if mark.group() == "/*" else -1
        position = mark.end()
    return position


class Script(BaseScript):
    """A script for sqlcmd."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _REQUIRE
    REFUSE_NEWER = _REFUSE_NEWER
    REFUSE_OLDER = _REFUSE_OLDER
    REMEMBER = _REMEMBER
    END = Section("after", "committed", _TAIL)
    LITERAL = "N'{}'"
    PLAIN_HEAD = _PLAIN_HEAD
    OPEN = (Section("before", "settings", "set implicit_transactions off;\ngo\n"),)
    REFUSE_MESSAGES = _REFUSE_MESSAGES

    def before(self, release: Release) -> Iterator[Section]:
        """Return the sections before the migration's own."""
        yield Section("before", "preflight.sql", self.client_form(release.text("preflight.sql")))
        yield Section("before", "begin", "begin transaction;\ngo\n")
        yield Section(
            "before", "bookkeeping.sql", self.client_form(release.text("bookkeeping.sql"))
        )

    def before_undo(self, release: Release) -> Iterator[Section]:
        """Return the sections before a rollback's own."""
        yield Section("before", "preflight.sql", self.client_form(release.text("preflight.sql")))
        yield Section("before", "begin", "begin transaction;\ngo\n")

    def plain_statements(self, text: str) -> Iterator[str]:
        """Return a section's batches, without those that only sqlcmd needs."""
        return (f"{batch}\n" for batch in batches(text) if batch != _EXECUTE)

    def flyway_form(self, text: str) -> str:
        """Return a section with `go` between its batches, which Flyway knows."""
        return "".join(f"{batch}go\n" for batch in self.plain_statements(text))

    def client_form(self, text: str) -> str:
        """Return a file or statement in the script's form, with `go` at the end."""
        return text if text.endswith("\ngo\n") else f"{text.strip()}\ngo\n"

    def assembled(self, sources: Path) -> dict[str, str]:
        """Return path and text of the comments."""
        rows = [
            ("procedure", procedure_name(name), "", text)
            if kind == "routine"
            else ("table", name, column, text)
            for kind, name, column, text in comments.described(sources)
        ]
        return comments.script(sources, comments.rows(rows, "N"))


SCRIPT = Script()
