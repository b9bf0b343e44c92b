function internal_tick_key(p_schedule in t_schedule)
return varchar2
is
-- routine   internal_tick_key
-- purpose   Return the dedup key of a schedule's messages; null where they may overlap.
-- promise   P12
-- differs   no such helper elsewhere: part of send_tick
begin
    return case when p_schedule.overlap = 0 then 'schedule:' || p_schedule.schedule_name end;
end internal_tick_key;
