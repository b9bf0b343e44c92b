function internal_can_send(
    p_part_id  in number,
    p_schedule in t_schedule,
    p_owner_id out number
)
return boolean
is
-- routine   internal_can_send
-- purpose   Return whether a tick can be run without a wait for the end of another transaction. p_owner_id is the message of an earlier tick that must end first, or null.
-- promise   P30
-- locks     the doors of the group and of the dedup key, passed over when locked; a dedup row,
--           likewise, and given back
-- differs   this engine's own: elsewhere the wait of an insert has a limit
    v_group_key constant raw(800) := utl_raw.cast_to_raw(p_schedule.group_key);
    v_dedup_key constant raw(800) := utl_raw.cast_to_raw(internal_tick_key(p_schedule));
    v_is_free   boolean := true;
    v_held_id   rowq_dedup.message_id%type;
    cursor owner_row is
        select d.message_id
        from rowq_dedup d
        where d.part_id = p_part_id
          and d.dedup_key = v_dedup_key
        for update skip locked;
begin
    if v_group_key is not null then
        v_is_free := internal_lock_door(p_part_id, v_group_key);
    end if;
    if v_dedup_key is not null and v_is_free then
        v_is_free := internal_lock_door(p_part_id, v_dedup_key);
    end if;
    if v_dedup_key is null or not v_is_free then
        return v_is_free;
    end if;
    select max(d.message_id) into p_owner_id
    from rowq_dedup d
    where d.part_id = p_part_id
      and d.dedup_key = v_dedup_key;
    if p_owner_id is null then
        return true;
    end if;

    -- A row that is locked is deleted by a transaction that is ending its message, and an insert
    -- would wait for that. Give the lock back, so that no worker waits for this transaction; one
    -- that began to wait in between waits all the same, because a rollback to a savepoint wakes
    -- nobody.
    savepoint rowq_owner_part;
    open owner_row;
    fetch owner_row into v_held_id;
    close owner_row;
    rollback to savepoint rowq_owner_part;
    return v_held_id is not null;
end internal_can_send;
