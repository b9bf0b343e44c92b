create or replace function rowq.version()
returns table (rowq_version text, schema_version integer, engine text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
-- routine   version
-- version   1
-- purpose   Return the installed versions.
-- promise   none
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
#variable_conflict use_column
begin
    return query
    select (select m.value from rowq.meta m where m.name = 'rowq_version'),
           (select m.value::integer from rowq.meta m where m.name = 'schema_version'),
           'PostgreSQL ' || current_setting('server_version');
end;
$$;
