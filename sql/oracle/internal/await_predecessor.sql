procedure internal_await_predecessor(
    p_part_id        in number,
    p_message_id     in number,
    p_ids            in rowq_ids,
    p_on_dead        in varchar2,
    p_state          out varchar2,
    p_predecessor_id out number,
    p_rest_ids       out nocopy rowq_ids
)
is
-- routine   internal_await_predecessor
-- purpose   Let a message wait for the first of these, newest first, that has not ended: waiting, free, failed, or unsure where others are at work.
-- promise   P25 P26 P27
-- locks     the predecessor's message row, tried only; a new successor row
    v_ids    rowq_ids := p_ids;
    v_place  pls_integer := 1;
    v_locked rowq_ids;
    v_held   rowq_ids;
    v_end    varchar2(20 char);
begin
    p_state := null;
    p_rest_ids := rowq_ids();
    while p_state is null loop
        v_place := internal_next_shown(p_part_id, v_ids, v_place);
        exit when v_place is null;
        p_predecessor_id := v_ids(v_place);
        -- Hold the row to the end of the transaction: whoever ends the predecessor waits for this
        -- one, or leaves a note to look again. This one waits for nobody.
        v_end := null;
        internal_lock_messages(p_part_id, rowq_ids(p_predecessor_id), v_locked, v_held);
        if v_held.count > 0 then
            p_state := 'unsure';
        elsif v_locked.count > 0 then
            -- The archive keeps the message row for a while. Where the end is not seen here, the
            -- archiver frees what waits when it deletes the row.
            v_end := internal_read_end(p_part_id, p_predecessor_id);
            if v_end = 'dead' and p_on_dead = 'fail' then
                p_state := 'failed';
            elsif v_end is null
                  or (v_end = 'dead' and coalesce(p_on_dead, 'hold') = 'hold') then
                p_state := 'waiting';
            end if;
        end if;
        if p_state is null and v_end = 'finished' then
            -- Thousands may have ended since the archiver was here: leave all of them out at once.
            v_ids := internal_rest_unfinished(p_part_id, v_ids, v_place + 1);
            v_place := 1;
        elsif p_state is null then
            v_place := v_place + 1;
        end if;
    end loop;
    p_state := coalesce(p_state, 'free');

    if p_state = 'waiting' then
        update rowq_message m
        set m.has_successors = 1
        where m.part_id = p_part_id
          and m.message_id = p_predecessor_id;
        -- A message that is looked at again may have its row there already. Nobody else inserts
        -- this row, because who does holds the row of the predecessor.
        insert into rowq_successor (part_id, predecessor_id, message_id)
        select p_part_id, p_predecessor_id, p_message_id
        from dual
        where not exists (
            select null
            from rowq_successor s
            where s.part_id = p_part_id
              and s.predecessor_id = p_predecessor_id
              and s.message_id = p_message_id
        );
        v_place := v_place + 1;
    elsif p_state = 'unsure' then
        p_predecessor_id := null;
    end if;
    if p_state in ('waiting', 'unsure') then
        for i in v_place .. v_ids.count loop
            p_rest_ids.extend;
            p_rest_ids(p_rest_ids.last) := v_ids(i);
        end loop;
    end if;
end internal_await_predecessor;
