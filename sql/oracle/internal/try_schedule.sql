function internal_try_schedule(p_part_id in number, p_schedule_key in raw)
return boolean
is
-- routine   internal_try_schedule
-- purpose   Hold a schedule that is due to the end of the transaction; return false where another session holds it or has run it.
-- promise   P30
-- locks     the schedule row, passed over when locked
-- differs   no such helper elsewhere: a cursor that locks is not kept open over a rollback here
    -- ORA-08177: this transaction is serializable, and the schedule was run after it began.
    e_not_serial exception;
    pragma exception_init(e_not_serial, -8177);
    v_now constant timestamp(6) := sys_extract_utc(systimestamp);
    v_held rowq_schedule.schedule_key%type;
    cursor due_row is
        select s.schedule_key
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = p_schedule_key
          and s.next_run_at <= v_now
        for update skip locked;
begin
    open due_row;
    fetch due_row into v_held;
    close due_row;
    return v_held is not null;
exception
    when e_not_serial then
        return false;
end internal_try_schedule;
