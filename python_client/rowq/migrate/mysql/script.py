"""The migrations as one script for the engine's own client."""

from collections.abc import Iterator

from rowq.migrate.frozen import GRANTS, newest_copies, order, read
from rowq.migrate.mysql.sql import OWNER, owned, version_text
from rowq.migrate.release import Release

_HEAD = """-- rowq {version}: {what}.
-- Run it with: mariadb --comments < script.sql, or mysql --comments < script.sql (without that word
-- the routines lose their descriptions). After an error run all of it again: every statement may
-- be. {definer}
"""
_OWNER = f"""The procedures run as {OWNER}, an account that the script makes: who runs it must
-- be allowed to. Where that cannot be, print another one with --without-owner."""
_CALLER = "The procedures run as the account that runs it."
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


def script(release: Release, from_number: int, *, with_owner: bool = True) -> str:
    """Return the script that installs what comes after `from_number`.

    Args:
        release: the migrations.
        from_number: what the database has already.
        with_owner: let the procedures run as an account of rowq's own, which the script makes.
    """
    parts = _parts(release, from_number, with_owner=with_owner)
    return "\n".join(part.strip("\n") for part in parts) + "\n"


def _parts(release: Release, from_number: int, *, with_owner: bool) -> Iterator[str]:
    newest = release.get(release.newest)
    what = f"upgrade from {from_number} to" if from_number else "install"
    yield _HEAD.format(
        version=newest.rowq_version,
        what=f"{what} {newest.number}",
        definer=_OWNER if with_owner else _CALLER,
    )
    for name in ("preflight.sql", "bookkeeping.sql", "lock.sql"):
        yield release.text(name)
    if from_number:
        needed = f"= '{release.get(from_number).id}'"
        yield _CHECK.format(compare="= 0", fault="RQ807 unknown_migration", those=needed)
    known = ", ".join(f"'{numbered.id}'" for numbered in release.migrations)
    yield _CHECK.format(compare="> 0", fault="RQ804 schema_newer", those=f"not in ({known})")
    yield release.text("owner.sql" if with_owner else "caller.sql")
    for numbered in release.migrations[from_number:]:
        yield f"\n-- {numbered.id}"
        for relative in order(release.folder / f"{numbered.number:04d}"):
            if relative != GRANTS:
                text = read(release.folder / f"{numbered.number:04d}" / relative)
                yield owned(text) if with_owner else text
        yield _REMEMBER.format(hash=numbered.migration.hash, id=numbered.id)
    yield version_text(newest)
    yield read(newest_copies(release.folder, newest.number)[GRANTS])
    yield "do release_lock(@rowq_lock);"
