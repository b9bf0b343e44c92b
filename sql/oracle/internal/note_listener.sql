procedure internal_note_listener(p_part_id in number, p_listened_until in timestamp)
is
-- routine   internal_note_listener
-- purpose   Note until when somebody listens at a queue; null when nobody does any more.
-- locks     the queue row, passed over when locked
-- differs   this engine's own
    v_row_id rowid;
    cursor queue_row is
        select q.rowid
        from rowq_queue q
        where q.part_id = p_part_id
        for update skip locked;
begin
    open queue_row;
    fetch queue_row into v_row_id;
    close queue_row;
    if v_row_id is not null then
        update rowq_queue q
        set q.listened_until = p_listened_until
        where q.rowid = v_row_id;
    end if;
end internal_note_listener;
