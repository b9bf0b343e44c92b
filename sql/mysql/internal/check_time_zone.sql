drop procedure if exists rowq.internal_check_time_zone;

delimiter //
create procedure rowq.internal_check_time_zone(p_time_zone longtext)
sql security definer
modifies sql data
begin
-- routine   internal_check_time_zone
-- purpose   Refuse a time zone that the server does not know by this name.
-- promise   P15
-- errors    RQ711
-- differs   upper and lower case are the same, and the server's tables of time zones may be empty
    declare v_local, v_known datetime(6);

    if cast(p_time_zone as binary) <> 'UTC' then
        -- SYSTEM and offsets are names of the server's, but not of a time zone.
        if p_time_zone regexp '\\A[A-Za-z][A-Za-z0-9_+/-]{0,63}\\z'
           and lower(p_time_zone) <> 'system' then
            set v_local = convert_tz('2020-01-01', '+00:00', p_time_zone);
        end if;
        -- The names in right/ count leap seconds, so that no cron expression names their minutes.
        if coalesce(second(v_local) > 0, true) then
            set v_known = convert_tz('2020-01-01', '+00:00', 'Europe/Berlin');
            call rowq.internal_refuse(
                if(
                    v_known is null,
                    concat(
                        'time_zone ', left(p_time_zone, 24), ': load the server''s time zone ',
                        'tables (mysql_tzinfo_to_sql), or use UTC'
                    ),
                    concat(
                        'time_zone must be a name such as Europe/Berlin that the server knows, ',
                        'got ', left(p_time_zone, 100)
                    )
                )
            );
        end if;
    end if;
end//
delimiter ;
