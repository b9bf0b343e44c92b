procedure internal_give_up_tick(
    p_schedule in t_schedule,
    p_now      in timestamp,
    p_error    in varchar2
)
is
-- routine   internal_give_up_tick
-- purpose   Note why a tick of a schedule made no message, and let the schedule go on with the next one after p_now.
-- promise   P30
-- locks     the schedule row, which is held
-- differs   no such helper elsewhere: part of run_due
    -- ORA-01882: the server does not know the time zone any more.
    e_no_zone exception;
    pragma exception_init(e_no_zone, -1882);
    c_line constant varchar2(1 char) := chr(10);
    v_error varchar2(1000 char) := substr(p_error, 1, instr(p_error || c_line, c_line) - 1);
    v_tick  timestamp(6);
begin
    begin
        v_tick := internal_next_tick(p_schedule, p_now);
    exception
        when e_no_zone then
            -- The schedule stands still until it is altered.
            v_tick := null;
    end;
    -- Before a refusal stands the number that this server has for it, such as ORA-20711.
    if instr(v_error, 'RQ') = 12 then
        v_error := substr(v_error, 12);
    end if;
    update rowq_schedule s
    set s.next_run_at = v_tick,
        s.last_error  = v_error
    where s.part_id = p_schedule.part_id
      and s.schedule_key = p_schedule.schedule_key;
end internal_give_up_tick;
