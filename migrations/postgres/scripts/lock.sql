-- Take the migration lock, and act as the schema's owner, so that the owner owns a member's new
-- objects.
do $$
declare
    v_owner_name text;
begin
    select r.rolname
    into v_owner_name
    from pg_catalog.pg_namespace n
    join pg_catalog.pg_roles r on r.oid = n.nspowner
    where n.nspname = 'rowq';
    if not found then
        return;
    end if;

    if v_owner_name <> current_user and not exists (
        select 1
        from pg_catalog.pg_roles r
        where r.rolname = current_user
          and r.rolsuper
    ) then
        perform pg_catalog.set_config('role', v_owner_name, true);
    end if;

    if exists (
        select 1
        from pg_catalog.pg_class c
        join pg_catalog.pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'rowq'
          and c.relname = 'migration'
          and c.relkind = 'r'
    ) then
        lock table rowq.migration in share row exclusive mode;
    end if;
exception
    when lock_not_available then
        raise exception 'RQ806 migration_busy: another migration is still running after 60 seconds'
            using errcode = 'RQ806', hint = 'Retry when it has finished.';
end;
$$;

-- Remember the existing routines: rights on all others that grants.sql finds come from default
-- privileges.
do $$
begin
    perform pg_catalog.set_config(
        'rowq.routines',
        coalesce(pg_catalog.array_agg(p.oid), '{}')::text,
        true)
    from pg_catalog.pg_proc p
    where p.pronamespace = pg_catalog.to_regnamespace('rowq');
end;
$$;

-- All other sessions wait behind the following statements, so their waits for tables end after 10
-- seconds.
set local lock_timeout = '10s';
