create or replace function rowq.internal_purge_archive(
    p_part_id      integer,
    p_archive_days integer,
    p_limit        integer,
    p_whole_days   boolean,
    out o_purged             integer,
    out o_partitions_dropped integer
)
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_purge_archive
-- purpose   Delete a queue's archived messages that are too old; drop partitions too old for every queue.
-- promise   P19
-- locks     archive rows, waited for a second; for a drop the archive, tried, kept to the end
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
          -- A partition that the DBA has made, of a year perhaps, is left to the DBA.
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
                -- Do not wait for a session that reads the archive: the next call tries again.
                lock table rowq.archive in access exclusive mode nowait;
                execute format('drop table rowq.%I', v_partition.partition_name);
                o_partitions_dropped := o_partitions_dropped + 1;
                continue;
            end if;

            execute format(
                'delete from rowq.%I where part_id = $1 and (finished_at, message_id) in ('
                'select finished_at, message_id from rowq.%1$I '
                'where part_id = $1 and finished_at < $2 order by part_id, finished_at, message_id '
                'limit $3)',
                v_partition.partition_name
            )
            using p_part_id, v_cutoff, p_limit - o_purged;
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
