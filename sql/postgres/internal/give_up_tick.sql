create or replace function rowq.internal_give_up_tick(p_schedule rowq.schedule, p_error text)
returns void
language plpgsql
as $$
-- routine   internal_give_up_tick
-- purpose   Note why a schedule made no message, and let it go on after now; one whose times cannot be read any more runs no more.
-- promise   P30
-- locks     the schedule row
declare
    v_tick timestamp with time zone;
begin
    begin
        v_tick := rowq.internal_next_tick(p_schedule, clock_timestamp());
    exception
        -- The server may have lost the time zone.
        when data_exception then
            v_tick := null;
    end;
    update rowq.schedule s
    set next_run_at = v_tick,
        last_error  = left(p_error, 2000)
    where s.part_id = p_schedule.part_id
      and s.schedule_name = p_schedule.schedule_name;
end;
$$;
