create or replace function rowq.internal_archive(p_part_id integer, p_limit integer)
returns integer
language plpgsql
set lock_timeout = '1s'
as $$
-- routine   internal_archive
-- purpose   Move up to p_limit finished messages to the archive, oldest first.
-- promise   P19 P26
-- locks     finished rows, passing over locked ones; message rows, tried only; archive, waited for
--           a second; as internal_free_successors
declare
    v_from      constant bigint := rowq.internal_read_floor(p_part_id, -3::smallint /* finished */);
    v_batch     record;
    v_archived  integer := 0;
    v_count     integer;
    v_ids       bigint[];
    v_gone      record;
    v_tie       text[];
begin
    for v_batch in
        select f.finish_id, f.finished_at, f.message_ids, f.lanes, f.attempts, f.state
        from rowq.finished f
        where f.part_id = p_part_id
          and f.finish_id >= v_from
        order by f.part_id, f.finish_id
        limit p_limit
        for update skip locked
    loop
        exit when v_archived >= p_limit;
        perform rowq.internal_open_day(v_batch.finished_at);
        v_count := least(cardinality(v_batch.message_ids), p_limit - v_archived);
        v_ids := v_batch.message_ids[1:v_count];

        -- Leave a batch alone while a producer is adding a message that waits for one of it.
        perform
        from unnest(v_ids) u (message_id)
        left join lateral (
            select x.message_id
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            for update skip locked
        ) m on true
        where m.message_id is null;
        continue when found;

        insert into rowq.archive (
            part_id, lane, attempt, message_id, enqueued_at, finished_at, state, message_type,
            dedup_key, headers, body, body_binary, group_key
        )
        select p_part_id, u.lane, u.attempt, u.message_id, m.enqueued_at, v_batch.finished_at,
               v_batch.state, m.message_type, m.dedup_key, m.headers, m.body, m.body_binary,
               m.group_key
        from unnest(v_ids, v_batch.lanes[1:v_count], v_batch.attempts[1:v_count])
            u (message_id, lane, attempt)
        cross join lateral (
            select x.enqueued_at, x.message_type, x.dedup_key, x.headers, x.body, x.body_binary,
                   x.group_key
            from rowq.message x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            offset 0
        ) m;
        v_gone := rowq.internal_delete_messages(p_part_id, v_ids, true);

        if v_count = cardinality(v_batch.message_ids) then
            delete from rowq.finished f
            where f.part_id = p_part_id
              and f.finish_id = v_batch.finish_id;
        else
            update rowq.finished f
            set message_ids = v_batch.message_ids[v_count + 1:],
                lanes = v_batch.lanes[v_count + 1:],
                attempts = v_batch.attempts[v_count + 1:]
            where f.part_id = p_part_id
              and f.finish_id = v_batch.finish_id;
        end if;
        v_archived := v_archived + v_count;

        -- The end of a message did not see what its producer had not committed then.
        if v_gone.o_ties is not null then
            foreach v_tie slice 1 in array v_gone.o_ties loop
                if v_tie[3] is not null then
                    perform rowq.internal_free_successors(p_part_id, array[v_tie[3]::bigint]);
                end if;
            end loop;
        end if;
    end loop;
    return v_archived;
end;
$$;
