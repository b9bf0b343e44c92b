create or replace function rowq.internal_release_dedup_keys(
    p_part_id     integer,
    p_message_ids bigint[]
)
returns void
language plpgsql
as $$
-- routine   internal_release_dedup_keys
-- version   1
-- purpose   Free the dedup keys of messages that are finished or dead.
-- promise   P12
-- locks     dedup rows
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
declare
    v_keys text[];
begin
    select array_agg(m.dedup_key order by m.dedup_key) into v_keys
    from unnest(p_message_ids) u (message_id)
    cross join lateral (
        -- offset keeps this a lookup for each message, whatever the planner thinks of the sizes
        select x.dedup_key
        from rowq.message x
        where x.part_id = p_part_id
          and x.message_id = u.message_id
        offset 0
    ) m
    where m.dedup_key is not null;

    if v_keys is not null then
        perform rowq.internal_delete_dedup_keys(p_part_id, v_keys, p_message_ids);
    end if;
end;
$$;
