-- The end of a rollback to nothing. Without "cascade": what others put into the schema stops it.
-- The roles stay: other databases of the server may use them.
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
