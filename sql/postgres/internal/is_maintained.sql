create or replace function rowq.internal_is_maintained(p_part_id integer)
returns boolean
language plpgsql
as $$
-- routine   internal_is_maintained
-- version   1
-- purpose   Whether a session that may call maintain holds the lock by which one is elected.
-- promise   P16 P19
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   only where a lock of this kind may be taken by anybody
begin
    return exists (
        select 1
        from pg_locks l
        cross join lateral pg_stat_get_activity(l.pid) a
        where l.locktype = 'advisory'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid = 1919907697
          and l.objid = p_part_id::oid
          and l.objsubid = 2
          and l.granted
          -- A prepared transaction has no session, and its locks elect nobody.
          and l.pid is not null
          and has_function_privilege(a.usesysid, 'rowq.maintain(text, integer)', 'execute')
    );
end;
$$;
