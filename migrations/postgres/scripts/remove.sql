-- The end of a rollback to 0. Without "cascade", foreign objects in the schema stop it. The roles
-- stay, because other databases of the server may use them.
do $$
declare
    v_extension text;
begin
    select e.extname
    into v_extension
    from pg_catalog.pg_extension e
    where e.extnamespace = pg_catalog.to_regnamespace('rowq')
    limit 1;
    if found then
        raise exception 'RQ808 schema_in_use: extension % is in the schema rowq', v_extension
            using errcode = 'RQ808', hint = pg_catalog.format(
                'Move it, alter extension %1$I set schema ..., or drop it.', v_extension);
    end if;
end;
$$;

drop table if exists rowq.migration_log;

drop table if exists rowq.migration;

do $$
begin
    if exists (
        select 1
        from pg_catalog.pg_default_acl a
        join pg_catalog.pg_roles r on r.oid = a.defaclrole
        where r.rolname = 'rowq_owner'
          and a.defaclnamespace = 0
          and a.defaclobjtype = 'f'
    ) then
        alter default privileges for role rowq_owner grant execute on functions to public;
    end if;
end;
$$;

drop schema rowq;
