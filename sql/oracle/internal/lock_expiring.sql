procedure internal_lock_expiring(
    p_part_id  in number,
    p_expiring in t_expiring,
    p_row      out t_locked_row
)
is
-- routine   internal_lock_expiring
-- purpose   Lock the row of the place in which a message that expires was seen; p_row is empty where somebody holds it, or it is gone.
-- promise   P03 P36
-- locks     a ready, delayed, blocked or grouped row, passed over when locked
-- differs   no such helper elsewhere: part of internal_pop_expired
    v_key constant raw(800) := utl_raw.cast_to_raw(p_expiring.group_key);
    cursor ready_row is
        select r.rowid, r.message_id, r.lane, r.attempt, r.seq
        from rowq_ready r
        where r.part_id = p_part_id
          and r.lane = p_expiring.lane
          and r.seq = p_expiring.seq
          and r.message_id = p_expiring.message_id
        for update skip locked;
    cursor delayed_row is
        select d.rowid, d.message_id, d.lane, d.attempt, 0 as seq
        from rowq_delayed d
        where d.part_id = p_part_id
          and d.due_at = p_expiring.due_at
          and d.message_id = p_expiring.message_id
        for update skip locked;
    cursor blocked_row is
        select b.message_id, b.lane
        from rowq_blocked b
        where b.part_id = p_part_id
          and b.message_id = p_expiring.message_id
        for update skip locked;
    cursor grouped_row is
        select g.message_id, g.lane
        from rowq_grouped g
        where g.part_id = p_part_id
          and g.group_key = v_key
          and g.message_id = p_expiring.message_id
        for update skip locked;
begin
    p_row := null;
    case p_expiring.place
        when 'ready' then
            open ready_row;
            fetch ready_row into p_row;
            close ready_row;
        when 'delayed' then
            open delayed_row;
            fetch delayed_row into p_row;
            close delayed_row;
        when 'blocked' then
            open blocked_row;
            fetch blocked_row into p_row.message_id, p_row.lane;
            close blocked_row;
        else
            open grouped_row;
            fetch grouped_row into p_row.message_id, p_row.lane;
            close grouped_row;
    end case;
end internal_lock_expiring;
