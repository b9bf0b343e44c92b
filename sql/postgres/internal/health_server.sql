create or replace function rowq.internal_health_server()
returns table (
    check_name text,
    queue_name text,
    value      double precision,
    warning    double precision,
    critical   double precision,
    detail     text
)
language plpgsql
as $$
-- routine   internal_health_server
-- purpose   Return the checks that concern the whole server: old snapshots, prepared transactions, the queue of notifications, queues that are not maintained.
-- differs   this engine's own
#variable_conflict use_column
declare
    v_age   double precision;
    v_gid   text;
    v_owner text;
begin
    -- The oldest open transaction, prepared ones included, keeps dead rows from being cleaned up.
    return query
    select 'clean_up_horizon', null::text, coalesce(max(h.age), 0), 300::double precision,
           3600::double precision,
           coalesce(
               (array_agg(h.holder order by h.age desc))[1]
               || ' keeps dead rows from being cleaned up; rowq stays fast, other tables grow',
               'no transaction is older than a second'
           )
    from (
        select extract(epoch from clock_timestamp() - a.xact_start)::double precision as age,
               format('session %s of %s (%s)', a.pid, a.usename, a.state) as holder
        from pg_catalog.pg_stat_activity a
        where a.datname = current_database()
          and a.pid <> pg_backend_pid()
          and coalesce(a.backend_xmin, a.backend_xid) is not null
          and a.xact_start < clock_timestamp() - interval '1 second'
        union all
        select extract(epoch from clock_timestamp() - p.prepared)::double precision,
               format('prepared transaction %s', quote_literal(p.gid))
        from pg_catalog.pg_prepared_xacts p
        where p.database = current_database()
          and p.prepared < clock_timestamp() - interval '1 second'
    ) h;

    -- A prepared transaction keeps its rows locked without a session, and after a restart of the
    -- server, too. virtualtransaction joins its locks to the one on its own id. To list all locks
    -- is work for the server, so do it only where something is prepared.
    if exists (
        select
        from pg_catalog.pg_prepared_xacts p
        where p.database = current_database()
    ) then
        with locks as materialized (
            select l.locktype, l.transactionid, l.virtualtransaction, l.database, l.relation, l.mode
            from pg_catalog.pg_locks l
            where l.pid is null
        )
        select extract(epoch from clock_timestamp() - p.prepared), p.gid, p.owner
        into v_age, v_gid, v_owner
        from pg_catalog.pg_prepared_xacts p
        join locks t on t.locktype = 'transactionid' and t.transactionid = p.transaction
        where p.database = current_database()
          and exists (
              select
              from locks l
              join pg_catalog.pg_class c on c.oid = l.relation
              join pg_catalog.pg_database d on d.oid = l.database
              where l.virtualtransaction = t.virtualtransaction
                and l.locktype = 'relation'
                and l.mode <> 'AccessShareLock'
                and d.datname = current_database()
                and c.relnamespace = 'rowq'::regnamespace
          )
        order by p.prepared
        limit 1;
    end if;
    return query
    select 'prepared_transactions', null::text, greatest(coalesce(v_age, 0), 0),
           30::double precision, 300::double precision,
           case
               when v_gid is null
                   then 'seconds that a prepared transaction has kept rows of rowq locked'
               else format(
                   'seconds that prepared transaction %L of %I has kept rows of rowq locked; '
                   'commit prepared %1$L or rollback prepared %1$L ends it', v_gid, v_owner
               )
           end;

    -- A replication slot has its age in transactions and not in seconds, so it is a check of its
    -- own.
    return query
    select 'replication_slot_horizon', null::text,
           coalesce(max(greatest(age(s.xmin), age(s.catalog_xmin))), 0)::double precision,
           10000000::double precision, 100000000::double precision,
           coalesce('slot ' || (array_agg(
               s.slot_name::text order by greatest(age(s.xmin), age(s.catalog_xmin)) desc
           ))[1] || ' holds the horizon for so many transactions', 'no slot holds the horizon')
    from pg_catalog.pg_replication_slots s
    where coalesce(s.xmin, s.catalog_xmin) is not null;

    return query
    select 'maintain_fault', null::text, count(*)::double precision, 1::double precision,
           1::double precision,
           coalesce(
               min(format('maintain has failed for queue %s: %s', q.queue_name, m.value)),
               'maintain has failed for no queue'
           )
    from rowq.meta m
    join rowq.queue q on m.name = 'maintain_fault.' || q.part_id;

    -- Any session can hold the queue of notifications by "listen" and an open transaction.
    return query
    select 'notification_queue', null::text,
           round((pg_notification_queue_usage() * 100)::numeric, 3)::double precision,
           25::double precision, 50::double precision,
           'per cent of the queue of notifications are used; end the sessions that listen and are '
           'idle in a transaction; from 50 on, producers notify no worker, and workers poll';
end;
$$;
