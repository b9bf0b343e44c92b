create or replace function rowq.internal_reserve_dedup_keys(
    p_part_id     integer,
    p_message_ids bigint[],
    p_dedup_keys  text[]
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
        -- The block is a subtransaction: what it has taken is given back before it begins anew.
        begin
            -- Insert in key order, so that two batches with the same keys cannot wait for each
            -- other. Whoever owned a key when the statement began is its owner also where it ends
            -- meanwhile.
            with keys as materialized (
                select distinct on (m.dedup_key) m.dedup_key, m.message_id
                from unnest(p_message_ids, p_dedup_keys) m (message_id, dedup_key)
                where m.dedup_key is not null
                order by m.dedup_key, m.message_id
            ),
            added as (
                insert into rowq.dedup (part_id, message_id, dedup_key)
                select p_part_id, k.message_id, k.dedup_key
                from keys k
                order by k.dedup_key
                on conflict (part_id, dedup_key) do nothing
                returning message_id, dedup_key
            )
            select array_agg(
                       case when m.dedup_key is null then m.message_id
                            else coalesce(a.message_id, d.message_id)
                       end
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_message_ids, p_dedup_keys) with ordinality m (
                message_id, dedup_key, place
            )
            left join added a on a.dedup_key = m.dedup_key
            -- A stricter snapshot may show a former owner beside this transaction's own message.
            left join lateral (
                select max(x.message_id) as message_id
                from rowq.dedup x
                where x.part_id = p_part_id
                  and x.dedup_key = m.dedup_key
            ) d on true;
            exit when array_position(v_kept_ids, null) is null;

            -- What others have committed while this call waited for them is seen by a new look.
            select array_agg(
                       coalesce(
                           v_kept_ids[m.place], (
                               select max(x.message_id)
                               from rowq.dedup x
                               where x.part_id = p_part_id
                                 and x.dedup_key = m.dedup_key
                           )
                       )
                       order by m.place
                   )
            into v_kept_ids
            from unnest(p_dedup_keys) with ordinality m (dedup_key, place);
            exit when array_position(v_kept_ids, null) is null;

            -- A key whose owner was finished in between is free again. To wait for it now, with
            -- later keys in hand, could end in a deadlock.
            raise sqlstate 'RQAGN';
        exception
            when sqlstate 'RQAGN' then
                v_kept_ids := null;
        end;
    end loop;
    return v_kept_ids;
end;
$$;
