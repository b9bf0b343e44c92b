procedure internal_try_unblock(
    p_part_id    in number,
    p_message_id in number,
    p_ended_id   in number,
    p_state      out varchar2,
    p_lane       out number
)
is
-- routine   internal_try_unblock
-- purpose   Look again what a blocked message waits for: again, gone, waiting, moved, failed, or ready, with its lane.
-- promise   P25 P26 P27
-- locks     the blocked and the message row, tried only; as internal_await_predecessor and
--           internal_enter_group
-- differs   PostgreSQL does it in internal_unblock
    v_is_listed      boolean;
    v_predecessor_id rowq_blocked.predecessor_id%type;
    v_due_at         rowq_blocked.due_at%type;
    v_on_dead        rowq_blocked.on_dead%type;
    v_group_key      rowq_blocked.group_key%type;
    v_key            raw(800);
    v_rest           clob;
    v_listed         rowq_ids := rowq_ids();
    v_ids            rowq_ids := rowq_ids();
    v_rest_ids       rowq_ids;
    v_locked         rowq_ids;
    v_held           rowq_ids;
    v_awaited_id     rowq_message.message_id%type;
    v_has_token      boolean;
begin
    internal_lock_blocked(p_part_id, p_message_id, p_state);
    if p_state <> 'locked' then
        return;
    end if;
    -- Read the row in a statement of its own, which sees it as it is now.
    select b.lane, b.predecessor_id, b.due_at, b.on_dead, b.group_key, b.rest_ids
    into p_lane, v_predecessor_id, v_due_at, v_on_dead, v_group_key, v_rest
    from rowq_blocked b
    where b.part_id = p_part_id
      and b.message_id = p_message_id;

    p_state := 'free';
    if v_predecessor_id <> coalesce(p_ended_id, 0) then
        v_ids.extend;
        v_ids(1) := v_predecessor_id;
    end if;
    if v_rest is not null then
        v_is_listed := internal_is_id_list(v_rest, v_listed);
        for i in 1 .. v_listed.count loop
            v_ids.extend;
            v_ids(v_ids.last) := v_listed(i);
        end loop;
    end if;
    if v_ids.count > 0 then
        internal_await_predecessor(
            p_part_id, p_message_id, v_ids, v_on_dead, p_state, v_awaited_id, v_rest_ids
        );
    end if;

    if p_state = 'unsure' then
        p_state := 'again';
    elsif p_state = 'waiting' then
        v_rest := case when v_rest_ids.count > 0 then ids(v_rest_ids) end;
        update rowq_blocked b
        set b.predecessor_id = v_awaited_id,
            b.rest_ids = v_rest
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    elsif p_state = 'failed' then
        -- Its row is to have the error, and a producer may be adding a message that waits for it.
        internal_lock_messages(p_part_id, rowq_ids(p_message_id), v_locked, v_held);
        if v_locked.count = 0 then
            p_state := 'again';
        else
            internal_fail_with(p_part_id, p_message_id, p_lane, v_awaited_id);
        end if;
    elsif v_due_at > sys_extract_utc(systimestamp) then
        insert into rowq_delayed (part_id, due_at, message_id, lane, group_key)
        values (p_part_id, v_due_at, p_message_id, p_lane, v_group_key);
        p_state := 'moved';
    elsif v_group_key is not null then
        v_key := utl_raw.cast_to_raw(v_group_key);
        v_has_token := internal_enter_group(p_part_id, v_key, false);
        if v_has_token is null then
            p_state := 'again';
        elsif v_has_token then
            -- Groups take turns.
            p_state := 'ready';
        else
            insert into rowq_grouped (part_id, group_key, message_id, lane)
            values (p_part_id, v_key, p_message_id, p_lane);
            p_state := 'moved';
        end if;
    else
        -- What has been begun is finished first.
        p_state := 'ready';
        p_lane := trunc(p_lane / 2) * 2;
    end if;

    if p_state in ('moved', 'ready', 'failed') then
        delete from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_message_id;
    end if;
end internal_try_unblock;
