-- Archive: finished messages, by day.
--
-- A finished message of a queue with archive_days waits in finished until maintain moves it to
-- archive with its body. Messages locked by another transaction are skipped. A day is a partition
-- if the server has them: maintain adds days early and drops those that no queue needs. A
-- queue's old rows in other days are deleted by key. An error never fails maintain; the next call
-- retries.
--
--   maintain_queue -> archive -> open_day
--   maintain_queue -> purge_archive
--
-- Writes archive, finished. Only reads message, queue.

create or replace function rowq.internal_archive(p_queue_id integer, p_limit integer)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- locks     finished and message rows, skipping locked ones; the archive, waits up to 1 s; as
--           internal_resume_successors
declare
    v_from      constant bigint := rowq.internal_read_floor(
        p_queue_id, -3::smallint /* finished */
    );
    v_batch     record;
    v_archived  integer := 0;
    v_count     integer;
    v_ids       bigint[];
    v_gone      record;
    v_link      text[];
begin
    for v_batch in
        select f.finish_id, f.finished_at, f.message_ids, f.lanes, f.attempts, f.state
        from rowq.finished f
        where f.queue_id = p_queue_id
          and f.finish_id >= v_from
        order by f.queue_id, f.finish_id
        limit p_limit
        for update skip locked
    loop
        exit when v_archived >= p_limit;
        perform rowq.internal_open_day(v_batch.finished_at);
        v_count := least(cardinality(v_batch.message_ids), p_limit - v_archived);
        v_ids := v_batch.message_ids[1:v_count];

        -- Skip a batch while a producer adds a successor of one of its messages.
        perform
        from unnest(v_ids) u (message_id)
        left join lateral (
            select x.message_id
            from rowq.message x
            where x.queue_id = p_queue_id
              and x.message_id = u.message_id
            for update skip locked
        ) m on true
        where m.message_id is null;
        continue when found;

        insert into rowq.archive (
            queue_id, lane, attempt, message_id, enqueued_at, finished_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key, producer_name
        )
        select p_queue_id, u.lane, u.attempt, u.message_id, m.enqueued_at, v_batch.finished_at,
               v_batch.state, m.message_type, m.dedup_key, m.headers, m.body, m.body_binary,
               m.group_key, m.producer_name
        from unnest(v_ids, v_batch.lanes[1:v_count], v_batch.attempts[1:v_count])
            u (message_id, lane, attempt)
        cross join lateral (
            select x.enqueued_at, x.message_type, x.dedup_key, x.headers, x.body, x.body_binary,
                   x.group_key, x.producer_name
            from rowq.message x
            where x.queue_id = p_queue_id
              and x.message_id = u.message_id
            offset 0
        ) m;
        v_gone := rowq.internal_delete_messages(p_queue_id, v_ids, true);

        if v_count = cardinality(v_batch.message_ids) then
            delete from rowq.finished f
            where f.queue_id = p_queue_id
              and f.finish_id = v_batch.finish_id;
        else
            update rowq.finished f
            set message_ids = v_batch.message_ids[v_count + 1:],
                lanes = v_batch.lanes[v_count + 1:],
                attempts = v_batch.attempts[v_count + 1:]
            where f.queue_id = p_queue_id
              and f.finish_id = v_batch.finish_id;
        end if;
        v_archived := v_archived + v_count;

        -- When the message ended, an uncommitted successor was not visible.
        if v_gone.o_links is not null then
            foreach v_link slice 1 in array v_gone.o_links loop
                if v_link[3] is not null then
                    perform rowq.internal_resume_successors(p_queue_id, array[v_link[3]::bigint]);
                end if;
            end loop;
        end if;
    end loop;
    return v_archived;
end;
$$;

create or replace function rowq.internal_open_day(p_finished_at timestamp with time zone)
returns void
language plpgsql
set lock_timeout = '1s'
set default_tablespace = ''
set default_table_access_method = 'heap'
as $$
-- purpose   Add the partition of a day to the archive, unless it exists.
-- locks     archive in share update exclusive mode, waits up to 1 s
-- differs   PostgreSQL adds the partition in the transaction that needs it
declare
    v_from constant timestamp := date_trunc('day', p_finished_at at time zone 'UTC');
    v_name constant text := 'archive_' || to_char(v_from, 'YYYYMMDD');
    v_grantee name;
begin
    if to_regclass(format('rowq.%I', v_name)) is not null then
        return;
    end if;
    lock table rowq.archive in share update exclusive mode;
    -- Read the catalog table: the name cache may lack a partition that another session has just
    -- added.
    if exists (
        select 1
        from pg_catalog.pg_class c
        where c.relname = v_name
          and c.relnamespace = 'rowq'::regnamespace
    ) then
        return;
    end if;

    -- Create a table and attach it: "create table ... partition of" would block all users of the
    -- archive.
    execute format('create table rowq.%I (like rowq.archive including defaults)', v_name);
    -- Revoke all rights: public may use a new type, and the owner's default privileges may grant
    -- more.
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
    -- Write the bounds in full, independent of the caller's DateStyle and TimeZone.
    execute format(
        'alter table rowq.archive attach partition rowq.%I for values from (%L) to (%L)',
        v_name,
        to_char(v_from, 'YYYY-MM-DD 00:00:00+00'),
        to_char(v_from + interval '1 day', 'YYYY-MM-DD 00:00:00+00')
    );
end;
$$;

create or replace function rowq.internal_purge_archive(
    p_queue_id     integer,
    p_archive_days integer,
    p_limit        integer,
    p_whole_days   boolean,
    out o_purged             integer,
    out o_partitions_dropped integer
)
language plpgsql
set lock_timeout = '1s'
as $$
-- purpose   Delete a queue's expired archive rows, and drop partitions that no queue needs.
-- locks     archive rows, waits up to 1 s; to drop a partition the archive, tried, until the
--           transaction ends
declare
    v_cutoff    timestamp with time zone;
    v_before    timestamp with time zone;
    v_keep_from timestamp with time zone;
    v_partition record;
    v_rows      integer;
begin
    o_purged := 0;
    o_partitions_dropped := 0;
    v_cutoff := clock_timestamp() - make_interval(days => p_archive_days);
    v_before := v_cutoff + case when p_whole_days then interval '0' else interval '1 day' end;
    for v_partition in
        select c.relname::text as partition_name,
               to_date(right(c.relname::text, 8), 'YYYYMMDD')::timestamp at time zone 'UTC'
                   as from_day
        from pg_catalog.pg_inherits i
        join pg_catalog.pg_class c on c.oid = i.inhrelid
        where i.inhparent = 'rowq.archive'::regclass
          -- Leave other partitions, such as a year's, to the DBA.
          and c.relname ~ '^archive_[0-9]{8}$'
          and c.relname < 'archive_' || to_char(v_before at time zone 'UTC', 'YYYYMMDD')
        order by c.relname
    loop
        if v_keep_from is null then
            select clock_timestamp() - make_interval(days => max(q.archive_days)) into v_keep_from
            from rowq.queue q;
        end if;
        begin
            if v_partition.from_day + interval '1 day' <= v_keep_from then
                -- Do not wait for a session that reads the archive: the next call retries.
                lock table rowq.archive in access exclusive mode nowait;
                execute format('drop table rowq.%I', v_partition.partition_name);
                o_partitions_dropped := o_partitions_dropped + 1;
                continue;
            end if;

            execute format(
                'delete from rowq.%I where queue_id = $1 and (finished_at, message_id) in ('
                'select finished_at, message_id from rowq.%1$I '
                'where queue_id = $1 and finished_at < $2 '
                'order by queue_id, finished_at, message_id '
                'limit $3)',
                v_partition.partition_name
            )
            using p_queue_id, v_cutoff, p_limit - o_purged;
            get diagnostics v_rows = row_count;
            o_purged := o_purged + v_rows;
            exit when o_purged >= p_limit;
        exception
            when lock_not_available then
                exit;
        end;
    end loop;
end;
$$;
