create or replace function rowq.internal_open_day(p_finished_at timestamp with time zone)
returns void
language plpgsql
set lock_timeout = '1s'
set default_tablespace = ''
set default_table_access_method = 'heap'
as $$
-- routine   internal_open_day
-- version   1
-- purpose   Make sure that the archive has a partition for the day of p_finished_at.
-- promise   P19
-- locks     share update exclusive on archive, waited for a second
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_from constant timestamp := date_trunc('day', p_finished_at at time zone 'UTC');
    v_name constant text := 'archive_' || to_char(v_from, 'YYYYMMDD');
    v_grantee name;
begin
    if to_regclass(format('rowq.%I', v_name)) is not null then
        return;
    end if;
    lock table rowq.archive in share update exclusive mode;
    -- In the table: the name cache may not have heard yet of what another session has just made.
    if exists (
        select 1
        from pg_catalog.pg_class c
        where c.relname = v_name
          and c.relnamespace = 'rowq'::regnamespace
    ) then
        return;
    end if;

    -- Attached, not created as a partition: that would lock out all users of the archive.
    execute format('create table rowq.%I (like rowq.archive including defaults)', v_name);
    -- Types are everybody's by default, and the owner's default privileges may give more.
    for v_grantee in
        select distinct coalesce(r.rolname, 'public')
        from (
            select c.relowner as owner, c.relacl as acl
            from pg_catalog.pg_class c
            where c.relname = v_name
              and c.relnamespace = 'rowq'::regnamespace
            union all
            select t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
            from pg_catalog.pg_type t
            where t.typname = v_name
              and t.typnamespace = 'rowq'::regnamespace
        ) o
        cross join aclexplode(o.acl) given
        left join pg_catalog.pg_roles r on r.oid = given.grantee
        where given.grantee <> o.owner
    loop
        execute format('revoke all on table rowq.%I from %I cascade', v_name, v_grantee);
        execute format('revoke all on type rowq.%I from %I cascade', v_name, v_grantee);
    end loop;
    -- The bounds in full, as the caller's DateStyle and TimeZone must not matter.
    execute format(
        'alter table rowq.archive attach partition rowq.%I for values from (%L) to (%L)',
        v_name,
        to_char(v_from, 'YYYY-MM-DD 00:00:00+00'),
        to_char(v_from + interval '1 day', 'YYYY-MM-DD 00:00:00+00')
    );
end;
$$;
