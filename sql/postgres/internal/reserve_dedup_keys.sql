create or replace function rowq.internal_reserve_dedup_keys(
    p_part_id  integer,
    p_messages rowq.message[]
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_reserve_dedup_keys
-- purpose   Reserve dedup keys; return for each message its own id, or the id of the message that owns its key.
-- promise   P12
-- locks     new dedup rows, in key order; waits for other open enqueues of the same keys
declare
    v_kept_ids bigint[];
begin
    loop
        -- Insert in key order, so that two batches with the same keys cannot wait for each other.
        insert into rowq.dedup (part_id, message_id, dedup_key)
        select distinct on (m.dedup_key) p_part_id, m.message_id, m.dedup_key
        from unnest(p_messages) m
        where m.dedup_key is not null
        order by m.dedup_key, m.message_id
        on conflict (part_id, dedup_key) do nothing;

        select array_agg(
                   case when m.dedup_key is null then m.message_id else d.message_id end
                   order by m.place
               )
        into v_kept_ids
        from unnest(p_messages) with ordinality m (
            part_id, max_attempts, message_id, enqueued_at, message_type, dedup_key,
            group_key, headers, body, body_binary, has_successors, expires_at,
            place
        )
        left join lateral (
            select x.message_id
            from rowq.dedup x
            where x.part_id = p_part_id
              and x.dedup_key = m.dedup_key
            offset 0
        ) d on true;

        -- A key whose owner was finished in between is free again: try once more.
        exit when array_position(v_kept_ids, null) is null;
    end loop;
    return v_kept_ids;
end;
$$;
