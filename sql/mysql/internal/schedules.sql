-- Schedules: messages that maintain enqueues by cron or interval.
--
-- maintain locks each due schedule with skip locked, enqueues at most 100 of its ticks and sets
-- next_run_at in the same transaction, so a tick makes one message, or none yet after a rollback.
-- If a message is refused, its tick is skipped and last_error keeps the error; other schedules run.
-- Without overlap, the messages of a schedule share a dedup key. A schedule with counts_from end
-- checks once a second for that key while is_running; once the key is gone, its next tick is
-- interval_seconds away. Cron runs on local time, by the server's time zones: a local time that
-- occurs twice counts once; one inside a gap moves to its end. A parsed expression (bits) is 136
-- digits 0 or 1: 60 minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday, then 1 for a
-- fixed minute and hour, then 1 if day and weekday are both set.
--
--   create_schedule, alter_schedule -> check_schedule -> tick_headers, check_time_zone, parse_cron,
--       next_tick
--   next_ticks -> check_time_zone
--   next_ticks -> parse_cron -> parse_cron_field
--   parse_cron_field -> parse_cron_value
--   next_ticks -> next_tick -> next_cron
--   next_cron -> check_time_zone, next_cron_local, local_to_utc, offset_change
--   local_to_utc -> offset_change
--   alter_schedule, drop_schedule, run_schedule -> require_schedule
--   run_schedule -> enqueue_tick -> tick_headers
--   maintain_queue -> run_schedules -> run_due
--   run_due -> run_ticks -> run_after_end
--   run_after_end -> next_tick, enqueue_tick
--   run_ticks -> parse_cron, next_tick, enqueue_tick
--
-- Writes schedule. Only reads queue.

drop procedure if exists rowq.internal_check_schedule;

delimiter //
create procedure rowq.internal_check_schedule(
    p_queue_id int,
    p_schedule_name longtext,
    p_cron longtext,
    p_interval_seconds double,
    p_time_zone longtext,
    p_body longtext,
    p_body_binary longblob,
    p_message_type longtext,
    p_headers longtext,
    p_priority int,
    p_max_attempts int,
    p_group_key longtext,
    p_missed longtext,
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_counts_from longtext,
    out p_next_run_at datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Refuse an invalid schedule; return its first tick.
-- errors    RQ711
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_first datetime(6) default '2000-01-01';
    declare v_last datetime(6) default '2100-01-01';
    declare v_error varchar(120);
    declare v_bits varchar(136);
    declare v_merged longtext;
    declare v_max_body_length int;

    call rowq.internal_check_name('schedule_name', p_schedule_name);
    set v_error = case
        when (p_cron is null) = (p_interval_seconds is null)
            then 'exactly one of cron and interval_seconds is required'
        when cast(p_missed as binary) not in ('skip', 'once', 'all')
            then concat('missed must be skip, once or all, got ', left(p_missed, 40))
        when cast(p_counts_from as binary) not in ('start', 'end')
            then concat('counts_from must be start or end, got ', left(p_counts_from, 40))
        when p_counts_from = 'end' and p_cron is not null
            then 'counts_from end requires interval_seconds'
        when p_starts_at not between v_first and v_last
             or p_ends_at not between v_first and v_last
            then 'starts_at and ends_at must be between the years 2000 and 2100'
    end;
    if v_error is null then
        select q.max_body_length into v_max_body_length
        from rowq.queue q
        where q.queue_id = p_queue_id;
        call rowq.internal_message_error(
            p_body, p_body_binary, p_message_type, p_headers, p_priority, null, null, null,
            p_max_attempts, p_group_key, null, null, null, null, v_max_body_length, v_error
        );
    end if;
    if v_error is null then
        -- The longest message id.
        call rowq.internal_tick_headers(
            p_schedule_name, p_headers, v_now,
            if(p_counts_from = 'end', 9223372036854775807, null), v_merged
        );
        call rowq.internal_json_error('headers', v_merged, 'OBJECT', 20, 65536, v_error);
    end if;
    if v_error is not null then
        call rowq.internal_refuse(v_error);
    end if;

    call rowq.internal_check_range('interval_seconds', p_interval_seconds, 1, 315360000);
    call rowq.internal_check_time_zone(p_time_zone);
    if p_cron is not null then
        call rowq.internal_parse_cron(p_cron, v_bits);
    end if;
    call rowq.internal_next_tick(
        v_bits, p_interval_seconds, p_time_zone, p_starts_at, p_ends_at, p_counts_from, v_now,
        p_next_run_at
    );
    if p_next_run_at is null then
        call rowq.internal_refuse(
            'the schedule has no tick within 10 years or before ends_at'
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_tick_headers;

delimiter //
create procedure rowq.internal_tick_headers(
    p_schedule_name longtext,
    p_headers longtext,
    p_tick datetime(6),
    p_previous_id bigint,
    out p_merged longtext
)
sql security definer
no sql
begin
-- purpose   Return a tick's headers: the schedule's own, its name, the tick, the message before.
    set p_merged = json_merge_patch(
        coalesce(p_headers, '{}'),
        json_object(
            'schedule', p_schedule_name,
            'tick', date_format(p_tick, '%Y-%m-%dT%H:%i:%s.%fZ')
        )
    );
    if p_previous_id is not null then
        -- MariaDB's json_object makes a text of the number.
        set p_merged = json_merge_patch(
            p_merged, concat('{"previous_message_id": ', p_previous_id, '}')
        );
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_check_time_zone;

delimiter //
create procedure rowq.internal_check_time_zone(p_time_zone longtext)
sql security definer
modifies sql data
begin
-- purpose   Refuse a time zone that the server does not know.
-- errors    RQ711
-- differs   names ignore case, and the server's time zone tables may be empty
    declare v_local, v_known datetime(6);

    if cast(p_time_zone as binary) <> 'UTC' then
        -- The server also accepts SYSTEM and offsets, which name no time zone.
        if p_time_zone regexp '\\A[A-Za-z][A-Za-z0-9_+/-]{0,63}\\z'
           and lower(p_time_zone) <> 'system' then
            set v_local = convert_tz('2020-01-01', '+00:00', p_time_zone);
        end if;
        -- The zones in right/ count leap seconds, so their minutes match no cron expression.
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
                        'time_zone must be UTC or a name the server knows, such as Europe/Berlin, ',
                        'got ', left(p_time_zone, 100)
                    )
                )
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_parse_cron;

delimiter //
create procedure rowq.internal_parse_cron(p_cron longtext, out p_bits varchar(136))
sql security definer
modifies sql data
begin
-- purpose   Parse a cron expression into 136 digits, 0 or 1.
-- errors    RQ711
    -- Compare bytes: collations ignore trailing blanks. The pattern does not depend on
    -- default_regex_flags.
    declare v_text varchar(201) default trim(
        regexp_replace(
            case cast(lower(left(p_cron, 201)) as binary)
                when '@hourly' then '0 * * * *'
                when '@daily' then '0 0 * * *'
                when '@midnight' then '0 0 * * *'
                when '@weekly' then '0 0 * * 0'
                when '@monthly' then '0 0 1 * *'
                when '@yearly' then '0 0 1 1 *'
                when '@annually' then '0 0 1 1 *'
                else left(p_cron, 201)
            end,
            '[\\x20\\t]++', ' '
        )
    );
    declare v_minute, v_hour, v_day, v_month, v_weekday varchar(200);
    declare v_minutes, v_hours, v_days, v_months, v_weekdays varchar(60);

    if char_length(v_text) - char_length(replace(v_text, ' ', '')) <> 4
       or char_length(p_cron) > 200 then
        call rowq.internal_refuse(
            concat(
                'cron must be 5 fields (minute, hour, day, month, weekday) or a word such as ',
                '@daily, got ', left(p_cron, 60)
            )
        );
    end if;
    set v_minute = substring_index(v_text, ' ', 1),
        v_hour = substring_index(substring_index(v_text, ' ', 2), ' ', -1),
        v_day = substring_index(substring_index(v_text, ' ', 3), ' ', -1),
        v_month = substring_index(substring_index(v_text, ' ', -2), ' ', 1),
        v_weekday = substring_index(v_text, ' ', -1);
    call rowq.internal_parse_cron_field(v_minute, 'minute', 0, 59, null, v_minutes);
    call rowq.internal_parse_cron_field(v_hour, 'hour', 0, 23, null, v_hours);
    call rowq.internal_parse_cron_field(v_day, 'day', 1, 31, null, v_days);
    call rowq.internal_parse_cron_field(
        v_month, 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec ', v_months
    );
    -- Sunday is 0 and 7.
    call rowq.internal_parse_cron_field(
        v_weekday, 'weekday', 0, 7, 'sun mon tue wed thu fri sat ', v_weekdays
    );
    set p_bits = concat(
        v_minutes, v_hours, v_days, v_months,
        greatest(left(v_weekdays, 1), right(v_weekdays, 1)), substr(v_weekdays, 2, 6),
        if(left(v_minute, 1) = '*' or left(v_hour, 1) = '*', '0', '1'),
        if(left(v_day, 1) = '*' or left(v_weekday, 1) = '*', '0', '1')
    );
end//
delimiter ;

drop procedure if exists rowq.internal_parse_cron_field;

delimiter //
create procedure rowq.internal_parse_cron_field(
    p_field longtext,
    p_name varchar(20),
    p_low int,
    p_high int,
    p_words varchar(60),
    out p_bits varchar(60)
)
sql security definer
modifies sql data
begin
-- purpose   Parse a cron field into 0 and 1 for each value from p_low on; p_words has their short names.
-- errors    RQ711
    declare v_rest varchar(201) default concat(lower(p_field), ',');
    declare v_item, v_range varchar(200);
    declare v_first, v_last varchar(3);
    declare v_value, v_end, v_step int;
    set p_bits = repeat('0', p_high - p_low + 1);

    while v_rest <> '' do
        set v_item = substring_index(v_rest, ',', 1),
            v_rest = substr(v_rest, char_length(v_item) + 2),
            v_value = null, v_end = null, v_step = null;
        if v_item regexp
            '\\A(\\*|([0-9]{1,2}|[a-z]{3})(-([0-9]{1,2}|[a-z]{3}))?)(/[0-9]{1,2})?\\z'
        then
            set v_range = substring_index(v_item, '/', 1),
                v_step = if(locate('/', v_item) > 0, substring_index(v_item, '/', -1), 1);
            if v_range = '*' then
                set v_value = p_low, v_end = p_high;
            else
                set v_first = substring_index(v_range, '-', 1),
                    v_last = substring_index(v_range, '-', -1);
                call rowq.internal_parse_cron_value(v_first, p_low, p_words, v_value);
                call rowq.internal_parse_cron_value(v_last, p_low, p_words, v_end);
                -- A single value with a step runs to the end.
                if locate('/', v_item) > 0 and locate('-', v_range) = 0 then
                    set v_end = p_high;
                end if;
            end if;
        end if;
        if not coalesce(
            v_value >= p_low and v_end <= p_high and v_value <= v_end and v_step > 0, false
        ) then
            call rowq.internal_refuse(
                concat(
                    'the ', p_name, ' field of cron must be *, a value from ', p_low, ' to ',
                    p_high, ', a range, a step or a list, got ', left(p_field, 60)
                )
            );
        end if;
        while v_value <= v_end do
            set p_bits = insert(p_bits, v_value - p_low + 1, 1, '1'),
                v_value = v_value + v_step;
        end while;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_parse_cron_value;

delimiter //
create procedure rowq.internal_parse_cron_value(
    p_word varchar(3),
    p_low int,
    p_words varchar(60),
    out p_value int
)
sql security definer
no sql
begin
-- purpose   Return the value of a number or a name in a cron field; -1 for an unknown name.
-- differs   elsewhere part of internal_parse_cron_field
    if p_word regexp '\\A[0-9]' then
        set p_value = p_word;
    elseif locate(p_word, p_words) mod 4 = 1 then
        set p_value = p_low + locate(p_word, p_words) div 4;
    else
        set p_value = -1;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_next_tick;

delimiter //
create procedure rowq.internal_next_tick(
    p_bits varchar(136),
    p_interval_seconds double,
    p_time_zone varchar(64),
    p_starts_at datetime(6),
    p_ends_at datetime(6),
    p_counts_from longtext,
    p_after datetime(6),
    out p_tick datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Return the first tick of a schedule after p_after, or null. p_bits is its parsed cron, or null.
-- errors    RQ711
    declare v_after datetime(6) default greatest(p_after, p_starts_at - interval 1 microsecond);
    declare v_step, v_passed bigint;

    if p_bits is not null then
        call rowq.internal_next_cron(p_bits, p_time_zone, v_after, p_tick);
    else
        -- An interval from the end counts from p_after. Else count microseconds from starts_at, so
        -- that ticks do not drift.
        set v_step = round(p_interval_seconds * 1000000),
            v_passed = timestampdiff(microsecond, p_starts_at, v_after);
        set v_passed = case
            when v_passed < 0 then 0
            when p_counts_from = 'end' then v_passed + v_step
            else (v_passed div v_step + 1) * v_step
        end;
        -- The type ends with the year 9999.
        set p_tick = if(
            timestampdiff(microsecond, '1970-01-01', p_starts_at) + v_passed < 253402214400000000,
            p_starts_at + interval v_passed microsecond, null
        );
    end if;
    if p_tick > p_ends_at then
        set p_tick = null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_next_cron;

delimiter //
create procedure rowq.internal_next_cron(
    p_bits varchar(136),
    p_time_zone varchar(64),
    p_after datetime(6),
    out p_time datetime(6)
)
sql security definer
modifies sql data
begin
-- purpose   Return the first time after p_after that matches p_bits; null if none within 10 years.
-- errors    RQ711
-- differs   a time zone other than UTC ends with 2037, like the server's tables
    declare v_end datetime(6) default '2038-01-01';
    declare v_minute datetime(6) default date_format(p_after, '%Y-%m-%d %H:%i:00');
    declare v_from datetime(6) default v_minute + interval 1 minute;
    declare v_local, v_next, v_time, v_change, v_horizon datetime(6);
    set p_time = null;

    -- Check again: convert_tz returns null if the server has lost its time zone tables.
    call rowq.internal_check_time_zone(p_time_zone);
    if p_time_zone = 'UTC' then
        call rowq.internal_next_cron_local(p_bits, v_from, p_time);
    elseif p_after < v_end and substr(p_bits, 135, 1) = '1' then
        -- With a fixed minute and hour, each local time fires once.
        set v_next = convert_tz(v_minute, '+00:00', p_time_zone);
        times: loop
            set v_local = v_next + interval 1 minute;
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave times;
            end if;
            call rowq.internal_local_to_utc(v_next, p_time_zone, v_time);
            if v_time > p_after then
                set p_time = v_time;
                leave times;
            end if;
        end loop;
    elseif p_after < v_end then
        -- Any other expression also fires in an hour that occurs twice. The next local time is as
        -- far away as the clocks say, unless the offset changes before it. Check 26 hours for a
        -- change, then go to 26 hours before that time: no change moves it further.
        hours: loop
            set v_local = convert_tz(v_from, '+00:00', p_time_zone);
            call rowq.internal_next_cron_local(p_bits, v_local, v_next);
            if v_next is null or v_next >= v_end + interval 1 day then
                leave hours;
            end if;
            set v_time = v_from + interval timestampdiff(minute, v_local, v_next) minute,
                v_horizon = v_from + interval 26 hour;
            call rowq.internal_offset_change(
                v_from, least(v_time, v_horizon), p_time_zone, v_change
            );
            if v_change is not null then
                set v_from = v_change;
            elseif v_time <= v_horizon then
                set p_time = v_time;
                leave hours;
            else
                set v_from = greatest(v_horizon, v_time - interval 26 hour);
            end if;
        end loop;
    end if;
    if p_time >= v_end and p_time_zone <> 'UTC' then
        set p_time = null;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_next_cron_local;

delimiter //
create procedure rowq.internal_next_cron_local(
    p_bits varchar(136),
    p_from datetime(6),
    out p_local datetime(6)
)
sql security definer
no sql
begin
-- purpose   Return the first local minute from p_from on that matches p_bits; null if none within 10 years.
    declare v_day date default date(p_from);
    declare v_end date default v_day + interval 3660 day;
    declare v_hour int default hour(p_from);
    declare v_minute int default minute(p_from);
    declare v_day_bit, v_weekday_bit char(1);
    declare v_found int;
    set p_local = null;

    days: while v_day < v_end do
        if substr(p_bits, 115 + month(v_day), 1) = '0' then
            set v_day = last_day(v_day) + interval 1 day;
        else
            set v_day_bit = substr(p_bits, 84 + dayofmonth(v_day), 1),
                v_weekday_bit = substr(p_bits, 127 + dayofweek(v_day), 1);
            if '1' = if(
                right(p_bits, 1) = '1',
                greatest(v_day_bit, v_weekday_bit), least(v_day_bit, v_weekday_bit)
            ) then
                -- Find the first hour, and in it the first minute.
                hours: while v_hour < 24 do
                    set v_found = locate('1', p_bits, 61 + v_hour);
                    if v_found not between 1 and 84 then
                        leave hours;
                    end if;
                    if v_found > 61 + v_hour then
                        set v_hour = v_found - 61, v_minute = 0;
                    end if;
                    set v_found = locate('1', p_bits, 1 + v_minute);
                    if v_found between 1 and 60 then
                        set p_local = v_day + interval (v_hour * 60 + v_found - 1) minute;
                        leave days;
                    end if;
                    set v_hour = v_hour + 1, v_minute = 0;
                end while;
            end if;
            set v_day = v_day + interval 1 day;
        end if;
        set v_hour = 0, v_minute = 0;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_local_to_utc;

delimiter //
create procedure rowq.internal_local_to_utc(
    p_local datetime(6),
    p_time_zone varchar(64),
    out p_time datetime(6)
)
sql security definer
no sql
begin
-- purpose   Convert a local time to UTC: the first if it occurs twice, the end of the gap if it is skipped.
    -- Convert from UTC only: a UTC time has one local time, a local time may have two UTC times or
    -- none.
    declare v_day_before datetime(6) default p_local - interval 1 day;
    declare v_day_after datetime(6) default p_local + interval 1 day;
    -- By the offset of the day before, and of the day after.
    declare v_before datetime(6) default p_local - interval timestampdiff(
        minute, v_day_before, convert_tz(v_day_before, '+00:00', p_time_zone)
    ) minute;
    declare v_after datetime(6);

    if convert_tz(v_before, '+00:00', p_time_zone) = p_local then
        set p_time = v_before;
    else
        set v_after = p_local - interval timestampdiff(
            minute, v_day_after, convert_tz(v_day_after, '+00:00', p_time_zone)
        ) minute;
        if convert_tz(v_after, '+00:00', p_time_zone) = p_local then
            set p_time = v_after;
        else
            call rowq.internal_offset_change(
                least(v_before, v_after), greatest(v_before, v_after), p_time_zone, p_time
            );
        end if;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_offset_change;

delimiter //
create procedure rowq.internal_offset_change(
    p_from datetime(6),
    p_to datetime(6),
    p_time_zone varchar(64),
    out p_change datetime(6)
)
sql security definer
no sql
begin
-- purpose   Return the first change of the UTC offset after p_from, up to p_to: whole minutes; or null.
    declare v_offset int default
        timestampdiff(minute, p_from, convert_tz(p_from, '+00:00', p_time_zone));
    declare v_low datetime(6) default p_from;
    declare v_middle datetime(6);
    set p_change = null;

    if timestampdiff(minute, p_to, convert_tz(p_to, '+00:00', p_time_zone)) <> v_offset then
        set p_change = p_to;
        while timestampdiff(minute, v_low, p_change) > 1 do
            set v_middle = v_low + interval timestampdiff(minute, v_low, p_change) div 2 minute;
            if timestampdiff(
                minute, v_middle, convert_tz(v_middle, '+00:00', p_time_zone)
            ) = v_offset then
                set v_low = v_middle;
            else
                set p_change = v_middle;
            end if;
        end while;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_require_schedule;

delimiter //
create procedure rowq.internal_require_schedule(p_queue_id int, p_schedule_name longtext)
sql security definer
modifies sql data
begin
-- purpose   Lock a schedule; raise an error if there is none.
-- locks     the schedule row
-- errors    RQ702 RQ711
    declare v_queue_id int;
    declare v_text varchar(128);
    if p_schedule_name is null then
        call rowq.internal_refuse('schedule_name is required');
    end if;
    select s.queue_id into v_queue_id
    from rowq.schedule s force index (primary)
    where s.queue_id = p_queue_id
      and s.schedule_name = cast(p_schedule_name as binary);
    -- Lock only an existing row: under the caller's repeatable read a missing one would be locked
    -- as a gap. Read again under the lock: it may have been dropped.
    if v_queue_id is not null then
        set v_queue_id = null;
        select s.queue_id into v_queue_id
        from rowq.schedule s force index (primary)
        where s.queue_id = p_queue_id
          and s.schedule_name = cast(p_schedule_name as binary)
        for update;
    end if;
    if v_queue_id is null then
        set v_text = concat(
            'RQ702 schedule_not_found: schedule "', left(p_schedule_name, 76), '" does not exist'
        );
        signal sqlstate '45702' set message_text = v_text;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_enqueue_tick;

delimiter //
create procedure rowq.internal_enqueue_tick(
    p_queue_id int,
    p_schedule_name varbinary(400),
    p_tick datetime(6),
    p_is_late boolean,
    p_owns_transaction boolean,
    out p_message_id bigint,
    out p_outcome varchar(20)
)
sql security definer
modifies sql data
begin
-- purpose   Enqueue the message of a locked schedule; with p_is_late it joins its group when promoted.
-- locks     as internal_store and internal_store_group_waiting
-- errors    RQ711
-- differs   does not call enqueue, which returns a result set here
    declare v_body, v_headers, v_merged, v_dedup_key, v_group_key, v_name longtext;
    declare v_body_binary longblob;
    declare v_message_type, v_joining varchar(2000);
    declare v_priority, v_max_attempts, v_max_body_length int;
    declare v_is_failed boolean;
    declare v_error varchar(120);
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_previous_id bigint;

    select q.max_body_length into v_max_body_length
    from rowq.queue q
    where q.queue_id = p_queue_id;
    -- Read with a lock: an old snapshot shows the old schedule.
    select convert(s.schedule_name using utf8mb4), s.body, s.body_binary, s.message_type,
           s.headers, s.priority, s.max_attempts, convert(s.group_key using utf8mb4),
           if(s.overlap, null, concat('schedule:', convert(s.schedule_name using utf8mb4))),
           if(s.counts_from = 'end', s.last_message_id, null)
    into v_name, v_body, v_body_binary, v_message_type, v_headers, v_priority, v_max_attempts,
         v_group_key, v_dedup_key, v_previous_id
    from rowq.schedule s force index (primary)
    where s.queue_id = p_queue_id
      and s.schedule_name = p_schedule_name
    for update;

    call rowq.internal_tick_headers(v_name, v_headers, p_tick, v_previous_id, v_merged);
    -- enqueue refuses the keys of schedules, so no producer can block one.
    call rowq.internal_message_error(
        v_body, v_body_binary, v_message_type, v_merged, v_priority, null, null, null,
        v_max_attempts, v_group_key, null, null, null, null, v_max_body_length, v_error
    );
    if v_error is not null then
        call rowq.internal_refuse(v_error);
    end if;
    call rowq.internal_store(
        p_queue_id, 0, v_now, v_body, v_body_binary, v_message_type, v_merged, v_priority,
        if(p_is_late and v_group_key is not null, v_now + interval 1000 microsecond, null),
        v_dedup_key, v_max_attempts, v_group_key, null, null, null, null, null, p_owns_transaction,
        p_message_id, p_outcome, v_joining, v_is_failed
    );
    if v_joining is not null then
        call rowq.internal_store_group_waiting(p_queue_id, concat('[', v_joining, ']'));
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_run_schedules;

delimiter //
create procedure rowq.internal_run_schedules(p_queue_id int)
sql security definer
modifies sql data
begin
-- purpose   Run the due schedules of a queue that no other session is running.
-- locks     as internal_run_due
-- commits   its own transaction where the caller has none; never the caller's
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_names longtext;
    declare v_at int default 0;
    declare v_is_late boolean default false;

    -- Find rows without locks, then lock them by their whole keys, so that no gap is locked. 1000
    -- of the longest names fit into the smallest group_concat_max_len.
    select json_arrayagg(hex(h.schedule_name)) into v_names
    from (
        select s.schedule_name, s.overlap
        from rowq.schedule s force index (primary)
        where s.queue_id = p_queue_id
          and s.next_run_at <= v_now
        limit 1000
    ) h;
    while v_at < coalesce(json_length(v_names), 0) do
        -- Wait for a producer that adds a group slot only once per call. After that, messages join
        -- their groups when promoted, so that no tick is missed.
        call rowq.internal_run_due(
            p_queue_id, unhex(json_unquote(json_extract(v_names, concat('$[', v_at, ']')))),
            v_is_late
        );
        set v_at = v_at + 1;
    end while;
end//
delimiter ;

drop procedure if exists rowq.internal_run_due;

delimiter //
create procedure rowq.internal_run_due(
    p_queue_id int,
    p_schedule_name varbinary(400),
    inout p_is_late boolean
)
sql security definer
modifies sql data
begin
-- purpose   Run a due schedule in a transaction or savepoint; p_is_late becomes true after a lock timeout.
-- locks     the queue, shared; as internal_run_ticks: waits 0 s on MariaDB, 1 s on MySQL
-- commits   its own transaction where the caller has none; never the caller's
-- differs   the shortest lock wait of MySQL is 1 second
    declare v_patience bigint default @@session.innodb_lock_wait_timeout;
    declare v_owns_transaction boolean;
    declare v_tries_left int default 5;
    declare v_refusal longtext;
    declare v_is_pinned boolean default coalesce(@rowq_pinned, false);

    attempt: loop
        begin
            declare v_errno int;
            declare v_state varchar(5);
            declare v_text longtext;
            declare exit handler for sqlexception
            begin
                get diagnostics condition 1
                    v_errno = mysql_errno, v_state = returned_sqlstate, v_text = message_text;
                set session innodb_lock_wait_timeout = v_patience;
                call rowq.internal_roll_back(v_owns_transaction, v_errno, v_tries_left);
                if v_is_pinned and @rowq_pinned is null then
                    call rowq.internal_set_session(@@timestamp);
                end if;
                if v_errno = 1205 and not p_is_late then
                    set p_is_late = true, v_tries_left = 1;
                end if;
                -- Raise the error if the caller's transaction is gone (1213, 1020, 1205), or the
                -- call was killed (1317) or timed out (1969, 3024).
                if v_errno in (1317, 1969, 3024)
                   or not v_owns_transaction
                   and (v_errno in (1213, 1020) or v_errno = 1205 and @@innodb_rollback_on_timeout)
                then
                    resignal;
                end if;
                -- The next call retries errors of locks and of the server's state, and a message id
                -- in use (1062). Any other error would come again: record it and skip the tick.
                if v_refusal is null
                   and left(v_state, 2) in ('45', '22', '23')
                   and v_errno <> 1062
                then
                    set v_refusal = v_text, v_tries_left = 1;
                end if;
            end;
            call rowq.internal_begin_work(v_owns_transaction);
            set session innodb_lock_wait_timeout = /*!80000 1 */ /*M!100600 0 */;
            call rowq.internal_lock_queue_shared(p_queue_id, '');
            call rowq.internal_run_ticks(
                p_queue_id, p_schedule_name, v_refusal, p_is_late, v_owns_transaction
            );
            set session innodb_lock_wait_timeout = v_patience;
            call rowq.internal_commit_work(v_owns_transaction);
            leave attempt;
        end;
        if v_tries_left = 0 then
            leave attempt;
        end if;
    end loop;
end//
delimiter ;

drop procedure if exists rowq.internal_run_ticks;

delimiter //
create procedure rowq.internal_run_ticks(
    p_queue_id int,
    p_schedule_name varbinary(400),
    p_refusal longtext,
    p_is_late boolean,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Enqueue up to 100 due ticks and set the next one; with p_refusal, record it and enqueue none.
-- locks     the schedule row, skipped if locked; as internal_enqueue_tick
-- errors    RQ711
-- differs   elsewhere internal_run_due does this
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_late datetime(6) default v_now - interval 60 second;
    declare v_tick, v_starts_at, v_ends_at datetime(6);
    declare v_interval_seconds double;
    declare v_cron varchar(200);
    declare v_bits varchar(136);
    declare v_time_zone, v_missed, v_outcome varchar(64);
    declare v_error longtext default p_refusal;
    declare v_message_id, v_last_id bigint;
    declare v_counts_from varchar(10);
    declare v_count int default 0;
    -- If the server has lost its time zone tables, the next tick is unknown and this one stays due.
    declare continue handler for sqlstate '45711'
    begin
        if p_refusal is null then
            resignal;
        end if;
    end;

    select s.next_run_at, s.cron, s.interval_seconds, s.time_zone, s.missed, s.starts_at, s.ends_at,
           s.counts_from
    into v_tick, v_cron, v_interval_seconds, v_time_zone, v_missed, v_starts_at, v_ends_at,
         v_counts_from
    from rowq.schedule s force index (primary)
    where s.queue_id = p_queue_id
      and s.schedule_name = p_schedule_name
      and s.next_run_at <= v_now
    for update skip locked;

    if v_counts_from = 'end' and p_refusal is null then
        call rowq.internal_run_after_end(
            p_queue_id, p_schedule_name, v_tick, p_is_late, p_owns_transaction
        );
    elseif v_tick is not null then
        if v_cron is not null then
            call rowq.internal_parse_cron(v_cron, v_bits);
        end if;
        if p_refusal is not null then
            call rowq.internal_next_tick(
                v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_counts_from,
                v_now, v_tick
            );
            set v_count = 100;
        end if;
        while v_tick <= v_now and v_count < 100 do
            if v_tick < v_late and v_missed = 'skip' then
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_counts_from,
                    v_late, v_tick
                );
            else
                call rowq.internal_enqueue_tick(
                    p_queue_id, p_schedule_name, v_tick, p_is_late, p_owns_transaction,
                    v_message_id, v_outcome
                );
                set v_error = null, v_count = v_count + 1;
                if v_outcome = 'enqueued' then
                    set v_last_id = v_message_id;
                else
                    set v_error = concat(
                        'message ', v_message_id, ' of an earlier tick has not ended'
                    );
                end if;
                call rowq.internal_next_tick(
                    v_bits, v_interval_seconds, v_time_zone, v_starts_at, v_ends_at, v_counts_from,
                    if(v_tick < v_late and v_missed = 'once', v_now, v_tick), v_tick
                );
            end if;
        end while;

        update rowq.schedule s
        set s.next_run_at     = v_tick,
            s.last_run_at     = if(v_last_id is null, s.last_run_at, v_now),
            s.last_message_id = coalesce(v_last_id, s.last_message_id),
            s.last_error      = left(v_error, 2000)
        where s.queue_id = p_queue_id
          and s.schedule_name = p_schedule_name;
    end if;
end//
delimiter ;

drop procedure if exists rowq.internal_run_after_end;

delimiter //
create procedure rowq.internal_run_after_end(
    p_queue_id int,
    p_schedule_name varbinary(400),
    p_tick datetime(6),
    p_is_late boolean,
    p_owns_transaction boolean
)
sql security definer
modifies sql data
begin
-- purpose   Enqueue the due tick of a schedule that counts from the end, or check for the end.
-- locks     as internal_enqueue_tick and internal_dedup_owner; the caller has locked the schedule
--           row
-- errors    RQ711
-- differs   a caller's old snapshot may show that a message has ended that has not
    declare v_now datetime(6) default utc_timestamp(6);
    declare v_next, v_starts_at, v_ends_at datetime(6);
    declare v_interval_seconds double;
    declare v_is_running boolean;
    declare v_owner_id, v_last_id bigint;
    declare v_outcome varchar(20);

    -- Read with a lock: an old snapshot shows the old row.
    select s.is_running, s.interval_seconds, s.starts_at, s.ends_at
    into v_is_running, v_interval_seconds, v_starts_at, v_ends_at
    from rowq.schedule s force index (primary)
    where s.queue_id = p_queue_id
      and s.schedule_name = p_schedule_name
    for update;

    if v_is_running then
        call rowq.internal_dedup_owner(
            p_queue_id, concat('schedule:', p_schedule_name), false, v_owner_id
        );
    else
        -- A dead message that was reset is a duplicate: wait for it again.
        call rowq.internal_enqueue_tick(
            p_queue_id, p_schedule_name, p_tick, p_is_late, p_owns_transaction, v_owner_id,
            v_outcome
        );
        if v_outcome = 'enqueued' then
            set v_last_id = v_owner_id;
        end if;
    end if;
    set v_next = v_now + interval 1 second;
    if v_owner_id is null then
        call rowq.internal_next_tick(
            null, v_interval_seconds, 'UTC', v_starts_at, v_ends_at, 'end', v_now, v_next
        );
    end if;

    update rowq.schedule s
    set s.next_run_at     = v_next,
        s.is_running      = v_owner_id is not null,
        s.last_run_at     = if(v_last_id is null, s.last_run_at, v_now),
        s.last_message_id = coalesce(v_last_id, s.last_message_id),
        s.last_error      = if(v_is_running, s.last_error, null)
    where s.queue_id = p_queue_id
      and s.schedule_name = p_schedule_name;
end//
delimiter ;
