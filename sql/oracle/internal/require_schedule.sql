function internal_require_schedule(p_part_id in number, p_schedule_name in varchar2)
return t_schedule
is
-- routine   internal_require_schedule
-- purpose   Return a schedule and hold it to the end of the transaction; raise an error if there is none.
-- promise   P15
-- locks     the schedule row
-- errors    RQ702 RQ711
    v_key      raw(400);
    v_held     rowq_schedule.schedule_key%type;
    v_schedule t_schedule;
    cursor named is
        select s.schedule_key
        from rowq_schedule s
        where s.part_id = p_part_id
          and s.schedule_key = v_key
        for update;
begin
    if p_schedule_name is null then
        internal_refuse('schedule_name is missing');
    end if;
    if length(p_schedule_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_schedule_name);
        open named;
        fetch named into v_held;
        close named;
    end if;
    if v_held is null then
        raise_application_error(
            -20702, 'RQ702 schedule_not_found: ' || substr(p_schedule_name, 1, 100)
        );
    end if;
    -- Read it once it is locked, so that what another session has just changed is seen.
    v_schedule := internal_read_schedule(p_part_id, v_held);
    return v_schedule;
end internal_require_schedule;
