create or replace function rowq.internal_maintained_parts(p_lock integer)
returns integer[]
language plpgsql
as $$
-- routine   internal_maintained_parts
-- purpose   List the queues whose lock of this kind is held by a session that may call maintain.
-- promise   P16 P19
-- differs   only where a lock of this kind may be taken by anybody
begin
    return array(
        select l.objid::integer
        from pg_locks l
        cross join lateral pg_stat_get_activity(l.pid) a
        where l.locktype = 'advisory'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.classid = p_lock::oid
          and l.objsubid = 2
          and l.granted
          -- A prepared transaction has no session, so its locks elect nobody.
          and l.pid is not null
          -- A member of a role that may call maintain counts too, even if it must say "set role"
          -- first.
          and exists (
              select 1
              from pg_proc p
              cross join lateral aclexplode(p.proacl) given
              where p.oid = 'rowq.maintain(text, integer)'::regprocedure
                and pg_has_role(a.usesysid, given.grantee, 'member')
          )
    );
end;
$$;
