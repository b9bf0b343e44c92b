create or replace function rowq.internal_join_groups(
    p_part_id     integer,
    p_group_keys  text[],
    p_message_ids bigint[],
    p_lanes       smallint[],
    p_errors      text[] default null
)
returns bigint[]
language plpgsql
as $$
-- routine   internal_join_groups
-- purpose   Let messages join their groups; return those that wait there, the others are for the caller to make ready.
-- promise   P21 P22
-- locks     as internal_enter_group, in the order of the keys; new grouped rows
declare
    v_message  record;
    v_full_key text;
    v_waiting  bigint[] := '{}'::bigint[];
begin
    for v_message in
        select u.group_key, u.message_id
        from unnest(p_group_keys, p_message_ids) u (group_key, message_id)
        where u.group_key is not null
        order by u.group_key, u.message_id
    loop
        -- A group that is full stays so until the end of this transaction.
        if v_message.group_key is distinct from v_full_key then
            continue when rowq.internal_enter_group(p_part_id, v_message.group_key);
            v_full_key := v_message.group_key;
        end if;
        v_waiting := v_waiting || v_message.message_id;
    end loop;

    insert into rowq.grouped (part_id, lane, message_id, group_key, last_error)
    select p_part_id, u.lane, u.message_id, u.group_key, u.last_error
    from unnest(p_group_keys, p_message_ids, p_lanes, p_errors)
        u (group_key, message_id, lane, last_error)
    where u.message_id = any (v_waiting);
    return v_waiting;
end;
$$;
