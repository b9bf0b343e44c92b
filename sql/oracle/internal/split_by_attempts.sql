procedure internal_split_by_attempts(
    p_queue    in t_queue,
    p_messages in t_messages,
    p_alive    out nocopy t_messages,
    p_dead     out nocopy t_messages
)
is
-- routine   internal_split_by_attempts
-- version   1
-- purpose   Divide messages into those with an attempt left and those without.
-- promise   P10
-- locks     none
-- commits   never; the caller owns the transaction
-- errors    none
-- differs   nothing
    v_wanted rowq_ids := internal_ids_of(p_messages);
    v_ids    t_numbers;
    v_limits t_numbers;
    v_own    t_places;
    v_limit  number;
begin
    p_alive.delete;
    p_dead.delete;
    -- Few messages have a limit of their own.
    select /*+ leading(a m) use_nl(m) index(m rowq_message_pk) */ m.message_id, m.max_attempts
    bulk collect into v_ids, v_limits
    from table(v_wanted) a
    join rowq_message m
      on m.part_id = p_queue.part_id
     and m.message_id = a.column_value
    where m.max_attempts is not null;
    for i in 1 .. v_ids.count loop
        v_own(internal_number_text(v_ids(i))) := v_limits(i);
    end loop;

    for i in 1 .. p_messages.count loop
        v_limit := case
            when v_own.exists(internal_number_text(p_messages(i).message_id))
                then v_own(internal_number_text(p_messages(i).message_id))
            else p_queue.max_attempts
        end;
        if p_messages(i).attempt < v_limit then
            p_alive(p_alive.count + 1) := p_messages(i);
        else
            p_dead(p_dead.count + 1) := p_messages(i);
        end if;
    end loop;
end internal_split_by_attempts;
