create or replace function rowq.internal_unblock(
    p_part_id     integer,
    p_message_ids bigint[],
    p_ended_id    bigint,
    inout p_most_looks  integer,
    out o_again         bigint[],
    out o_failed_ids    bigint[],
    out o_failed_lanes  smallint[],
    out o_failed_errors text[]
)
language plpgsql
as $$
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. o_again are those that need another look, o_failed_ids those that fail with a predecessor. p_most_looks is for how many predecessors it may look, and then how many of that are left.
-- promise   P25 P26 P27
-- locks     blocked rows, tried only; as internal_await_predecessor and internal_try_enter_group
declare
    v_row        record;
    v_await      record;
    v_state      text;
    v_has_token  boolean;
    v_is_delayed boolean;
    v_is_late    boolean := false;
    v_left       integer := cardinality(p_message_ids);
    v_rest_ids   bigint[];
    v_ids        bigint[];
    v_lanes      smallint[];
begin
    -- To ask again needs a snapshot of its own, which only read committed takes.
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
        o_again := p_message_ids;
        return;
    end if;

    for v_row in
        select u.message_id, b.message_id is not null as is_held, b.lane, b.predecessor_id,
               b.due_at, b.on_dead, b.group_key, b.rest_ids
        from unnest(p_message_ids) u (message_id)
        left join lateral (
            select x.message_id, x.lane, x.predecessor_id, x.due_at, x.on_dead, x.group_key,
                   x.rest_ids
            from rowq.blocked x
            where x.part_id = p_part_id
              and x.message_id = u.message_id
            for update skip locked
        ) b on true
    loop
        v_left := v_left - 1;
        if not v_row.is_held then
            -- It is gone, or somebody is cancelling it.
            if exists (
                select
                from rowq.blocked b
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id
            ) then
                o_again := o_again || v_row.message_id;
            end if;
            continue;
        end if;

        v_state := 'free';
        v_rest_ids := v_row.rest_ids;
        if v_row.predecessor_id <> p_ended_id or p_ended_id is null then
            v_rest_ids := v_rest_ids || v_row.predecessor_id;
        end if;
        if array_remove(v_rest_ids, null) <> '{}' then
            -- Each message has its share of the looks, so that those with many predecessors do not
            -- keep the others waiting.
            v_await := rowq.internal_await_predecessor(
                p_part_id, v_row.message_id, array_remove(v_rest_ids, null), v_row.on_dead,
                p_most_looks / (v_left + 1)
            );
            p_most_looks := greatest(p_most_looks - v_await.o_looks, 0);
            v_state := v_await.o_state;
            if v_state in ('unsure', 'cut') then
                o_again := o_again || v_row.message_id;
            end if;
            if v_state = 'unsure' then
                continue;
            elsif v_state in ('waiting', 'cut') then
                update rowq.blocked b
                set predecessor_id = v_await.o_predecessor_id,
                    rest_ids = v_await.o_rest_ids
                where b.part_id = p_part_id
                  and b.message_id = v_row.message_id;
                continue;
            end if;
        end if;

        v_has_token := true;
        v_is_delayed := coalesce(v_row.due_at > clock_timestamp(), false);
        if v_row.group_key is not null and v_state = 'free' and not v_is_delayed then
            -- Wait for a producer once a call, and no longer than a moment.
            v_has_token := case
                when not v_is_late
                    then rowq.internal_try_enter_group(p_part_id, v_row.group_key)
            end;
            if v_has_token is null then
                v_is_late := true;
                o_again := o_again || v_row.message_id;
                continue;
            end if;
        end if;

        delete from rowq.blocked b
        where b.part_id = p_part_id
          and b.message_id = v_row.message_id;
        if v_state = 'failed' then
            o_failed_ids := o_failed_ids || v_row.message_id;
            o_failed_lanes := o_failed_lanes || v_row.lane;
            o_failed_errors := o_failed_errors
                || format('predecessor %s is dead', v_await.o_predecessor_id);
        elsif v_is_delayed then
            insert into rowq.delayed (part_id, lane, message_id, due_at, group_key)
            values (
                p_part_id, v_row.lane, v_row.message_id, v_row.due_at, v_row.group_key
            );
        elsif not v_has_token then
            insert into rowq.grouped (part_id, lane, message_id, group_key)
            values (p_part_id, v_row.lane, v_row.message_id, v_row.group_key);
        else
            -- What has been begun is finished first, but groups take turns.
            v_ids := v_ids || v_row.message_id;
            v_lanes := v_lanes || case
                when v_row.group_key is null then v_row.lane / 2 * 2
                else v_row.lane
            end::smallint;
        end if;
    end loop;

    if v_ids is not null then
        perform rowq.internal_push_ready(
            p_part_id, v_lanes, v_ids, array_fill(0::smallint, array[cardinality(v_ids)]), null
        );
    end if;
end;
$$;
