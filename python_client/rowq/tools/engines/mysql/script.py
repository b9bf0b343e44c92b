"""A migration as a script for the engine's own client and for a driver."""

import re
from collections.abc import Iterable, Iterator

from rowq.tools.migrate.client_script import BaseScript, Bookkeeping
from rowq.tools.migrate.frozen import Section, created, joined, split
from rowq.tools.migrate.release import Numbered, Release

OWNER = "rowq_owner@localhost"
"""The account that the routines run as, if the installing account can create it."""

BOOKKEEPING_TABLES = ("migration", "migration_log", "migration_lock")

_DROP = re.compile(r"drop procedure if exists (rowq\.\w+)")
_CREATE = re.compile(r"^create procedure (?=rowq\.)", re.MULTILINE)
_CREATE_OWNED = re.compile(
    r"^create definer = 'rowq_owner'@'localhost' procedure (?=rowq\.)", re.MULTILINE
)
_CREATED = re.compile(r"create (?:definer = \S+ )?procedure (rowq\.\w+)\(")

BOOKKEEPING = Bookkeeping(
    migration="rowq.migration",
    log="rowq.migration_log",
    mark="%s",
    user="user()",
    now="utc_timestamp(6)",
    new_id="uuid()",
    version="""
insert into rowq.meta (name, value, changed_at)
values
    ('schema_version', '{number}', utc_timestamp(6)),
    ('rowq_version', '{version}', utc_timestamp(6))
on duplicate key update value = values(value), changed_at = values(changed_at);
""",
)

_HEAD = """-- {heading}.
-- Run it with: mariadb --comments < script.sql, or mysql --comments < script.sql. (Without
-- --comments the routines lose their descriptions.) After an error run all of it again: every
-- statement can be repeated. The section owner.sql names the account that the procedures run as.
"""
_OWNER = f"""-- The procedures run as {OWNER}, which this script creates. If your account cannot
-- create accounts, print the script with --without-owner.
"""
_CALLER = "-- The procedures run as the account that runs the script.\n"
_RAISE = """
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select `', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
"""
_CHECK = (
    """
set @rowq_fault = null;
select if(count(*) {compare}, '{fault}', null) into @rowq_fault
from rowq.migration m
where m.migration_id {those};"""
    + _RAISE
)
_PLAIN_HEAD = """-- {heading}.
-- For drivers and other tools: a line "-- [end of statement]" separates two statements. Run them
-- one by one, in this order, on one connection, without parameters. DDL commits: after an error run
-- all of them again. The end restores the session's settings. For mariadb and mysql, omit --plain.
"""
_OPEN = """set @rowq_was_sql_mode = @@session.sql_mode,
    @rowq_was_autocommit = @@session.autocommit,
    @rowq_was_lock_wait_timeout = @@session.lock_wait_timeout,
    @rowq_was_innodb_lock_wait_timeout = @@session.innodb_lock_wait_timeout,
    @rowq_was_client = @@session.character_set_client,
    @rowq_was_results = @@session.character_set_results,
    @rowq_was_collation = @@session.collation_connection;
"""
_CLOSE = """set session sql_mode = @rowq_was_sql_mode,
    session lock_wait_timeout = @rowq_was_lock_wait_timeout,
    session innodb_lock_wait_timeout = @rowq_was_innodb_lock_wait_timeout,
    session character_set_client = @rowq_was_client,
    session character_set_results = @rowq_was_results,
    session collation_connection = @rowq_was_collation;
set session autocommit = @rowq_was_autocommit;
"""
# If an earlier run has dropped some of the tables, there is nothing left to lose.
_REFUSE_MESSAGES = """
set @rowq_fault = null;
select if(
    count(*) = 9,
    'select if(
         exists (select 1 from rowq.ready where message_id > 0)
         or exists (select 1 from rowq.delayed where message_id > 0)
         or exists (select 1 from rowq.dead)
         or exists (select 1 from rowq.group_waiting where message_id > 0)
         or exists (select 1 from rowq.blocked)
         or exists (
             select 1 from rowq.claim c
             where claim_id > 0 and (c.messages is null or json_length(c.messages) > 0)
         )
         or exists (select 1 from rowq.archive)
         or exists (
             select 1 from rowq.finished f where finish_id > 0 and json_length(f.messages) > 0
         ),
         ''RQ805 messages_left'', null
     )
     into @rowq_fault',
    'do 0'
)
into @rowq_text
from information_schema.tables t
where t.table_schema = 'rowq'
  and t.table_name in (
      'queue', 'ready', 'delayed', 'claim', 'dead', 'group_waiting', 'blocked', 'archive',
      'finished'
  );
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;"""
# A rollback to 0 drops the database with all its objects.
_REMOVABLE = """set @rowq_fault = null;
select if(count(*) > 0, 'RQ808 schema_in_use', null) into @rowq_fault
from (
    select t.table_name as name
    from information_schema.tables t
    where t.table_schema = 'rowq'
    union all
    select r.routine_name
    from information_schema.routines r
    where r.routine_schema = 'rowq'
    union all
    select e.event_name
    from information_schema.events e
    where e.event_schema = 'rowq'
) x
where cast(x.name as binary) not in (
    {ours}
);"""
_DROP_OWNER = "drop user if exists 'rowq_owner'@'localhost';\n"
_REFUSE_OLDER = """
set @rowq_fault = null;
select if(
    count(*) > 0 and sum(m.migration_id = '{newest}') = 0,
    'RQ807 unknown_migration: older',
    null
)
into @rowq_fault
from rowq.migration m;"""
_REMEMBER = """
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select
    uuid(), '{hash}',
    '{id}', 'apply', user(), 'script', utc_timestamp(6)
from (select 1 as one) x
where not exists (
    select 1
    from rowq.migration m
    where m.migration_hash = '{hash}'
);
insert ignore into rowq.migration (migration_hash, migration_id, applied_at_utc)
values (
    '{hash}',
    '{id}', utc_timestamp(6)
);
"""


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a script as the engine's own client would send them.

    A statement ends with the delimiter at the end of a line that is not a comment. A line
    `delimiter` changes it.
    """
    delimiter = ";"
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("delimiter "):
            delimiter = line.split()[1]
            continue
        if not lines and (not line.strip() or line.startswith("--")):
            continue
        lines.append(line)
        if line.endswith(delimiter) and not line.lstrip().startswith("--"):
            yield "\n".join(lines).removesuffix(delimiter)
            lines = []
    if lines:
        raise ValueError(f"a statement has no end: {lines[0]}")


def owned(text: str) -> str:
    """Return a script with rowq_owner as the definer of its procedures."""
    return _CREATE.sub("create definer = 'rowq_owner'@'localhost' procedure ", text)


def not_owned(text: str) -> str:
    """Undo `owned`."""
    return _CREATE_OWNED.sub("create procedure ", text)


def replacing(parts: Iterable[str]) -> Iterator[str]:
    """Yield statements, with drop and create of a procedure as `create or replace` (MariaDB).

    So a procedure in use never disappears, and keeps its grants.
    """
    dropped: re.Match[str] | None = None
    for statement in parts:
        if dropped and (created := _CREATED.match(statement)) and created[1] == dropped[1]:
            yield statement.replace("create", "create or replace", 1)
            dropped = None
            continue
        if dropped:
            yield dropped[0]
        dropped = _DROP.fullmatch(statement)
        if not dropped:
            yield statement
    if dropped:
        yield dropped[0]


class Script(BaseScript):
    """A script for mysql and mariadb; it creates the account rowq_owner."""

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _CHECK.format(compare="= 0", fault="RQ807 unknown_migration", those="= '{needed}'")
    REFUSE_NEWER = _CHECK.format(
        compare="> 0", fault="RQ804 schema_newer", those="not in ({known})"
    )
    REFUSE_OLDER = _REFUSE_OLDER + _RAISE
    REMEMBER = _REMEMBER
    END = Section("after", "done", "do release_lock(@rowq_lock);\n")
    PLAIN_HEAD = _PLAIN_HEAD
    OPEN = (Section("before", "settings", _OPEN),)
    CLOSE = (Section("after", "settings", _CLOSE),)
    FOR_OWNER = ("owner",)
    REFUSE_MESSAGES = _REFUSE_MESSAGES + _RAISE

    def before(self, release: Release) -> Iterator[Section]:
        """Return the sections before the migration's own."""
        for name in ("preflight.sql", "bookkeeping.sql", "lock.sql"):
            yield Section("before", name, release.text(name))

    def before_undo(self, release: Release) -> Iterator[Section]:
        """Return the sections before a rollback's own."""
        for name in ("preflight.sql", "lock.sql"):
            yield Section("before", name, release.text(name))

    def removable(self, release: Release) -> Iterator[Section]:
        """Return the section that refuses to drop a database with foreign objects."""
        names = {name for text in release.files(1).values() for _, name in created(text)}
        own = ",\n    ".join(f"'{name}'" for name in sorted({*names, *BOOKKEEPING_TABLES}))
        yield Section("before", "removable", (_REMOVABLE + _RAISE).format(ours=own))

    def undone(self, release: Release, numbered: Numbered) -> Iterator[Section]:
        """Return the sections of a rollback; the last one drops rowq_owner."""
        yield from super().undone(release, numbered)
        if numbered.number == 1:
            yield Section("after", "owner", _DROP_OWNER)

    def plain_statements(self, text: str) -> Iterator[str]:
        """Return a section's statements, without delimiters."""
        return (f"{statement}\n" for statement in statements(text))

    def flyway_form(self, text: str) -> str:
        """Return a section unchanged: Flyway knows the client's delimiter."""
        return text

    def prepared(self, release: Release) -> Iterator[Section]:
        """Return the section that creates rowq_owner."""
        yield Section("before", "owner.sql", f"{_OWNER}{release.text('owner.sql')}")

    def client_form(self, text: str) -> str:
        """Return a file or statement in the script's form, with rowq_owner as definer."""
        return owned(text if text.endswith("\n") else f"{text}\n")

    def source_form(self, text: str) -> str:
        """Return a file's original text from its form in a script."""
        return not_owned(text)

    def without_owner(self, release: Release, script: str) -> str:
        """Return a script whose procedures run as the account that runs the script."""
        caller = Section("before", "caller.sql", f"{_CALLER}{release.text('caller.sql')}")
        head, parts = split(script)
        return joined(
            head,
            (
                caller
                if (part.kind, part.name) == ("before", "owner.sql")
                else Section(part.kind, part.name, self.source_form(part.text))
                for part in parts
            ),
        )


SCRIPT = Script()
