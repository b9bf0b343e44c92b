function internal_lock_door(p_part_id in number, p_key in raw)
return boolean
is
-- routine   internal_lock_door
-- purpose   Lock the door of a group, or of the dedup key of a schedule; return false where another session holds it.
-- promise   P22 P30
-- locks     a row of door, passed over when locked
-- differs   this engine's own: elsewhere the wait of an insert has a limit
    -- ORA-08177: this transaction is serializable, and somebody held the row after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    c_doors   constant pls_integer := 64;
    v_door_no constant rowq_door.door_no%type :=
        dbms_utility.get_hash_value(rawtohex(p_key), 0, c_doors);
    v_held    rowq_door.door_no%type;
    cursor door_row is
        select d.door_no
        from rowq_door d
        where d.part_id = p_part_id
          and d.door_no = v_door_no
        for update skip locked;
begin
    open door_row;
    fetch door_row into v_held;
    close door_row;
    return v_held is not null;
exception
    when e_not_serial then
        return false;
end internal_lock_door;
