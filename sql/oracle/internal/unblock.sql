procedure internal_unblock(
    p_part_id     in number,
    p_message_ids in rowq_ids,
    p_ended_id    in number,
    p_again       out nocopy rowq_ids,
    p_failed      out nocopy rowq_ids
)
is
-- routine   internal_unblock
-- purpose   Look again what blocked messages wait for, and let them go on where that is nothing. p_again are those that need another look, p_failed those that are dead with a predecessor now.
-- promise   P25 P26 P27
-- locks     as internal_try_unblock; new ready rows
    v_state          varchar2(20 char);
    v_lane           rowq_blocked.lane%type;
    v_ready          t_messages;
    v_next           pls_integer := 0;
    v_listened_until rowq_queue.listened_until%type;
    v_began          constant timestamp(6) := sys_extract_utc(systimestamp);
begin
    p_again := rowq_ids();
    p_failed := rowq_ids();
    for i in 1 .. p_message_ids.count loop
        -- A message may name ten thousand others, so leave what takes long to maintain.
        if internal_seconds_since(v_began, sys_extract_utc(systimestamp)) > 0.2 then
            v_state := 'again';
        else
            internal_try_unblock(p_part_id, p_message_ids(i), p_ended_id, v_state, v_lane);
        end if;
        if v_state = 'again' then
            p_again.extend;
            p_again(p_again.last) := p_message_ids(i);
        elsif v_state = 'failed' then
            p_failed.extend;
            p_failed(p_failed.last) := p_message_ids(i);
        elsif v_state = 'ready' then
            v_next := v_next + 1;
            v_ready(v_next).message_id := p_message_ids(i);
            v_ready(v_next).lane := v_lane;
            v_ready(v_next).attempt := 0;
        end if;
    end loop;

    if v_next > 0 then
        internal_push_ready(p_part_id, v_ready);
        select q.listened_until into v_listened_until
        from rowq_queue q
        where q.part_id = p_part_id;
        internal_ring_doorbell(p_part_id, v_listened_until);
    end if;
end internal_unblock;
