"""A migration as a script for the engine's own client."""

from collections.abc import Iterator

from rowq.migrate.client_script import BaseScript
from rowq.migrate.frozen import Part, joined, split
from rowq.migrate.release import Release
from rowq.mysql.statements import BOOKKEEPING, OWNER, not_owned, owned

_HEAD = """-- {heading}.
-- Run it with: mariadb --comments < script.sql, or mysql --comments < script.sql (without that word
-- the routines lose their descriptions). After an error run all of it again: every statement may
-- be. The part owner.sql says which account the procedures run as.
"""
_OWNER = f"""-- The procedures run as {OWNER}, an account that the script makes: who runs it must
-- be allowed to. Where that cannot be, print another one with --without-owner.
"""
_CALLER = "-- The procedures run as the account that runs the script.\n"
_CHECK = """
set @rowq_fault = null;
select if(count(*) {compare}, '{fault}', null) into @rowq_fault
from rowq.migration m
where m.migration_id {those};
set @rowq_text = if(
    @rowq_fault is null, 'do 0', concat('select 1 from information_schema.`', @rowq_fault, '`')
);
prepare rowq_check from @rowq_text;
execute rowq_check;
deallocate prepare rowq_check;
"""
_REMEMBER = """
insert into rowq.migration_log
    (id, migration_hash, migration_id, operation, username, hostname, created_at_utc)
select uuid(), '{hash}', '{id}', 'apply', user(), 'script', utc_timestamp(6)
from (select 1 as one) x
where not exists (select 1 from rowq.migration m where m.migration_hash = '{hash}');
insert ignore into rowq.migration (migration_hash, migration_id, applied_at_utc)
values ('{hash}', '{id}', utc_timestamp(6));
"""


class Script(BaseScript):
    """How mysql and mariadb are told what migrate does.

    The script makes an account of rowq's own, which the procedures run as.
    """

    BOOKKEEPING = BOOKKEEPING
    HEAD = _HEAD
    REQUIRE = _CHECK.format(compare="= 0", fault="RQ807 unknown_migration", those="= '{needed}'")
    REFUSE_NEWER = _CHECK.format(
        compare="> 0", fault="RQ804 schema_newer", those="not in ({known})"
    )
    REMEMBER = _REMEMBER
    END = Part("after", "done", "do release_lock(@rowq_lock);\n")

    def before(self, release: Release) -> Iterator[Part]:
        """Return what comes before the migration's own parts."""
        for name in ("preflight.sql", "bookkeeping.sql", "lock.sql"):
            yield Part("before", name, release.text(name))

    def prepared(self, release: Release) -> Iterator[Part]:
        """Return what makes the account that the procedures run as."""
        yield Part("before", "owner.sql", f"{_OWNER}{release.text('owner.sql')}")

    def client_form(self, text: str) -> str:
        """Return a file or statement as it stands in the script: its procedures have an owner."""
        return owned(text if text.endswith("\n") else f"{text}\n")

    def source_form(self, text: str) -> str:
        """Return a file as it was before it came into the script."""
        return not_owned(text)

    def without_owner(self, release: Release, script: str) -> str:
        """Return a script with procedures that run as the account that runs it."""
        caller = Part("before", "caller.sql", f"{_CALLER}{release.text('caller.sql')}")
        head, parts = split(script)
        return joined(
            head,
            (
                caller
                if (part.kind, part.name) == ("before", "owner.sql")
                else Part(part.kind, part.name, self.source_form(part.text))
                for part in parts
            ),
        )


SCRIPT = Script()
