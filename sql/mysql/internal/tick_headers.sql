drop procedure if exists rowq.internal_tick_headers;

delimiter //
create procedure rowq.internal_tick_headers(
    p_schedule_name longtext,
    p_headers longtext,
    p_tick datetime(6),
    out p_merged longtext
)
sql security definer
no sql
begin
-- routine   internal_tick_headers
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
    set p_merged = json_merge_patch(
        coalesce(p_headers, '{}'),
        json_object(
            'schedule', p_schedule_name,
            'tick', date_format(p_tick, '%Y-%m-%dT%H:%i:%s.%fZ')
        )
    );
end//
delimiter ;
