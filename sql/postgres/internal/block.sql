create or replace function rowq.internal_block(
    p_part_id         integer,
    p_message_id      bigint,
    p_lane            smallint,
    p_due_at          timestamp with time zone,
    p_group_key       text,
    p_predecessor_ids bigint[],
    p_on_dead         text
)
returns boolean
language plpgsql
as $$
-- routine   internal_block
-- purpose   Let a new message wait for its predecessors, or fail with one; false where all have ended.
-- promise   P25 P26 P27
-- locks     as internal_await_predecessor; new blocked, recheck and dead rows
declare
    v_await record;
begin
    select a.o_state, a.o_predecessor_id, a.o_rest_ids into v_await
    from (
        select array_agg(distinct u.message_id order by u.message_id) as predecessor_ids
        from unnest(p_predecessor_ids) u (message_id)
    ) o
    cross join lateral rowq.internal_await_predecessor(
        p_part_id, p_message_id, o.predecessor_ids, p_on_dead
    ) a;
    if v_await.o_state = 'free' then
        return false;
    elsif v_await.o_state = 'failed' then
        perform rowq.internal_push_dead(
            p_part_id, array[p_lane], array[p_message_id], null,
            array[format('predecessor %s is dead', v_await.o_predecessor_id)], false
        );
        return true;
    end if;

    insert into rowq.blocked (
        part_id, lane, message_id, predecessor_id, due_at, on_dead, group_key, rest_ids
    )
    values (
        p_part_id, p_lane, p_message_id, v_await.o_predecessor_id, p_due_at, p_on_dead, p_group_key,
        v_await.o_rest_ids
    );
    if v_await.o_state = 'unsure' then
        perform rowq.internal_recheck_later(p_part_id, array[p_message_id], null, false);
    elsif current_setting('transaction_isolation') <> 'read committed' then
        -- An old snapshot does not show that the predecessor is dead.
        perform rowq.internal_recheck_later(
            p_part_id, null, array[v_await.o_predecessor_id], true
        );
    else
        -- The archive looks for messages that wait only where this lane is.
        perform rowq.internal_open_lanes(p_part_id, '{-4}'::smallint[] /* deferred */);
    end if;
    return true;
end;
$$;
