procedure internal_pop_expired(
    p_part_id  in number,
    p_due      in t_expiring_list,
    p_messages out nocopy t_messages
)
is
-- routine   internal_pop_expired
-- purpose   Take messages out of the places where they were seen, unless another session holds them.
-- promise   P03 P36
-- locks     as internal_lock_expiring; then message rows, tried only
    -- ORA-08177: this transaction is serializable, and another has changed a row since it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_row     t_locked_row;
    v_rows    t_locked_rows;
    v_ids     rowq_ids := rowq_ids();
    v_locked  rowq_ids;
    v_held    rowq_ids;
    v_free    t_places;
    v_at      pls_integer;
    v_ready   t_locked_rows;
    v_delayed t_locked_rows;
    v_blocked t_numbers;
    v_lanes   t_numbers;
    v_grouped t_messages;
begin
    p_messages.delete;
    begin
        for i in 1 .. p_due.count loop
            if p_due(i).place is not null then
                internal_lock_expiring(p_part_id, p_due(i), v_row);
                if v_row.message_id is not null then
                    v_rows(i) := v_row;
                    v_ids.extend;
                    v_ids(v_ids.last) := v_row.message_id;
                end if;
            end if;
        end loop;
    exception
        when e_not_serial then
            return;
    end;
    if v_ids.count = 0 then
        return;
    end if;

    -- Leave alone what a producer has just named as a predecessor.
    internal_lock_messages(p_part_id, v_ids, v_locked, v_held);
    for i in 1 .. v_locked.count loop
        v_free(internal_number_text(v_locked(i))) := i;
    end loop;
    v_at := v_rows.first;
    while v_at is not null loop
        if v_free.exists(internal_number_text(v_rows(v_at).message_id)) then
            case p_due(v_at).place
                when 'ready' then
                    v_ready(v_ready.count + 1) := v_rows(v_at);
                when 'delayed' then
                    v_delayed(v_delayed.count + 1) := v_rows(v_at);
                when 'blocked' then
                    v_blocked(v_blocked.count + 1) := v_rows(v_at).message_id;
                    v_lanes(v_blocked.count) := v_rows(v_at).lane;
                else
                    v_grouped(v_grouped.count + 1).message_id := v_rows(v_at).message_id;
                    v_grouped(v_grouped.count).group_key := p_due(v_at).group_key;
            end case;
        end if;
        v_at := v_rows.next(v_at);
    end loop;

    internal_delete_ready(v_ready, p_messages);
    internal_delete_delayed(v_delayed, p_messages);
    internal_pop_blocked(p_part_id, v_blocked, v_lanes, p_messages);
    internal_pop_grouped(p_part_id, v_grouped, p_messages);
end internal_pop_expired;
