procedure internal_push_dead(
    p_queue      in t_queue,
    p_messages   in t_messages,
    p_error      in clob,
    p_is_waiting in boolean
)
is
-- routine   internal_push_dead
-- purpose   Keep messages as dead with the last error; free their dedup keys, and their groups unless they are to wait; then what waits for them does as it asked. p_is_waiting is that of internal_note_error.
-- promise   P10 P12 P21 P27 P32
-- locks     new dead rows; as internal_note_error, internal_cut_ties and internal_follow_deaths;
--           result rows
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_ids        t_numbers;
    v_dedup_keys t_texts;
    v_group_keys t_texts;
    v_flags      t_numbers;
    v_awaited    rowq_ids := rowq_ids();
    v_holders    t_numbers;
    v_results    t_clobs;
begin
    if p_messages.count = 0 then
        return;
    end if;
    forall i in 1 .. p_messages.count
        insert into rowq_dead (part_id, message_id, lane, attempt, died_at)
        values (
            p_queue.part_id, p_messages(i).message_id, p_messages(i).lane,
            p_messages(i).attempt, v_now
        );
    internal_note_error(p_queue.part_id, p_messages, p_error, p_is_waiting);
    if p_queue.result_seconds > 0 then
        internal_push_result(p_queue.part_id, p_messages, 'dead', p_error, v_results);
    end if;

    internal_read_ties(
        p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    for i in 1 .. v_ids.count loop
        if v_flags(i) = 1 then
            v_awaited.extend;
            v_awaited(v_awaited.last) := v_ids(i);
            v_flags(i) := null;
        end if;
    end loop;
    if p_queue.group_after_dead = 'hold' then
        for i in 1 .. v_ids.count loop
            if v_group_keys(i) is not null then
                v_holders(v_holders.count + 1) := v_ids(i);
                v_group_keys(i) := null;
            end if;
        end loop;
        forall i in 1 .. v_holders.count
            update rowq_dead d
            set d.holds_group = 1
            where d.part_id = p_queue.part_id
              and d.message_id = v_holders(i);
    end if;
    internal_cut_ties(
        p_queue.part_id, p_messages, v_ids, v_dedup_keys, v_group_keys, v_flags
    );
    if not p_is_waiting then
        -- A producer that comes to wait for one of them may hold its row: the flag does not show
        -- that yet.
        v_awaited := internal_ids_of(p_messages);
    end if;
    if v_awaited.count > 0 then
        internal_follow_deaths(p_queue.part_id, v_awaited);
    end if;
end internal_push_dead;
