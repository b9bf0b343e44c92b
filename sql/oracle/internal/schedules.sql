-- Schedules: messages that maintain enqueues by cron or interval.
--
-- maintain locks each due schedule with skip locked, enqueues the messages of its ticks, a hundred
-- at most, and moves next_run_at on, all in one transaction: a tick makes one message or, after a
-- rollback, none yet. A tick whose message is refused is skipped and the error is kept in
-- last_error; other schedules go on. A schedule without overlap sends with a dedup key of its own.
-- Cron runs on local time: an expression becomes a text of 0 and 1 for each field, and local times
-- become UTC by the server's zones. A time that is shown twice counts once, and one that is never
-- shown moves to the end of the gap.
--
--   create_schedule, alter_schedule -> check_schedule -> tick_headers, check_time_zone, next_tick
--   next_ticks -> check_time_zone -> local_of
--   create_schedule, alter_schedule, next_ticks -> next_tick -> next_cron, parse_cron
--   next_cron -> to_minute, local_of, next_cron_local, local_to_utc, offset_change
--   local_to_utc -> offset_of, local_of, offset_change
--   offset_of -> local_of
--   offset_change -> offset_of
--   parse_cron -> parse_cron_field
--   create_schedule -> read_schedule
--   alter_schedule, drop_schedule, run_schedule -> require_schedule -> read_schedule
--   run_schedule -> enqueue_tick -> tick_headers, tick_key
--   maintain_queue -> run_schedules -> try_schedule, run_due, read_schedule
--   run_due -> next_tick, can_send, enqueue_tick, skip_tick
--   can_send -> tick_key
--   skip_tick -> next_tick
--
-- Writes schedule. Only reads dedup.

procedure internal_check_schedule(p_schedule in t_schedule, p_queue in t_queue)
is
-- purpose   Refuse a schedule with a bad name, time or message, or without a tick to come.
-- errors    RQ711
    c_first constant timestamp(6) := timestamp '2000-01-01 00:00:00';
    c_last  constant timestamp(6) := timestamp '2100-01-01 00:00:00';
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error varchar2(32767);
    v_cuts  t_numbers;
begin
    internal_check_name('schedule_name', p_schedule.schedule_name);
    v_error := case
        when p_schedule.cron is null and p_schedule.interval_seconds is null
             or p_schedule.cron is not null and p_schedule.interval_seconds is not null
            then 'a schedule has either cron or interval_seconds'
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        when p_schedule.missed is null
             or utl_raw.cast_to_raw(p_schedule.missed) not in (
                 utl_raw.cast_to_raw('skip'), utl_raw.cast_to_raw('once'),
                 utl_raw.cast_to_raw('all')
             )
            then 'missed must be skip, once or all, got '
                || coalesce(substr(p_schedule.missed, 1, 100), 'null')
        when p_schedule.overlap not in (0, 1)
            then 'overlap must be 0 or 1'
        when p_schedule.is_paused not in (0, 1)
            then 'is_paused must be 0 or 1'
        when p_schedule.starts_at not between c_first and c_last
             or p_schedule.ends_at not between c_first and c_last
            then 'starts_at and ends_at must be moments between the years 2000 and 2100'
    end;
    if v_error is null then
        internal_json_error(
            'headers', p_schedule.headers, 'object', 20, 65536, v_cuts, v_error
        );
    end if;
    if v_error is null then
        v_error := coalesce(
            internal_message_error(
                p_schedule.body, p_schedule.body_binary, p_schedule.message_type,
                internal_tick_headers(p_schedule, v_now), p_schedule.priority, null, null, null,
                p_schedule.max_attempts, p_schedule.group_key, null, null
            ),
            internal_body_error(
                p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
            )
        );
    end if;
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    internal_check_range('interval_seconds', p_schedule.interval_seconds, 1, 315360000);
    internal_check_time_zone(p_schedule.time_zone);
    if internal_next_tick(p_schedule, v_now) is null then
        internal_refuse('the schedule has no tick within ten years or before ends_at');
    end if;
end internal_check_schedule;

function internal_tick_headers(p_schedule in t_schedule, p_tick in timestamp)
return clob
is
-- purpose   Return the headers of a message of a schedule: its own, the schedule's name and the tick.
-- differs   the two are added to the text, so that its own numbers stay as they are
    c_blanks  constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_headers clob := '{';
    v_last    varchar2(4 char);
    v_name    varchar2(400 char);
begin
    if p_schedule.headers is not null then
        -- Leave out the brace at the end.
        v_headers := rtrim(p_schedule.headers, c_blanks);
        v_headers := rtrim(substr(v_headers, 1, length(v_headers) - 1), c_blanks);
    end if;
    v_last := substr(v_headers, -1);
    if ascii(v_last) <> ascii('{') then
        v_headers := v_headers || ', ';
    end if;
    -- A name has no control characters.
    v_name := replace(replace(p_schedule.schedule_name, '\', '\\'), '"', '\"');
    return v_headers || '"schedule": "' || v_name || '", "tick": "'
        || to_char(p_tick, 'yyyy-mm-dd"T"hh24:mi:ss.ff6"Z"', 'nls_calendar=gregorian') || '"}';
end internal_tick_headers;

procedure internal_check_time_zone(p_time_zone in varchar2)
is
-- purpose   Refuse a time zone that the server does not know by this name.
-- errors    RQ711
    v_local timestamp(6);
begin
    begin
        -- A name begins with a letter, which an offset does not, and has no blank, behind which
        -- stands an abbreviation, such as CEST.
        if length(p_time_zone) <= 64
           and ascii(lower(p_time_zone)) between ascii('a') and ascii('z')
           and instr(p_time_zone, chr(32)) = 0 then
            v_local := internal_local_of(sys_extract_utc(systimestamp), p_time_zone);
        end if;
    exception
        when others then
            -- ORA-01882 is the error for an unknown name. A strange one may raise another of its
            -- kind (ORA-018xx).
            if sqlcode not between -1899 and -1800 then
                raise;
            end if;
    end;
    if v_local is null then
        internal_refuse(
            'time_zone must be a name such as Europe/Berlin that the server knows, got '
            || coalesce(substr(p_time_zone, 1, 100), 'null')
        );
    end if;
end internal_check_time_zone;

function internal_local_of(p_moment in timestamp, p_time_zone in varchar2)
return timestamp
is
-- purpose   Return what the clocks of a time zone show at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return cast(from_tz(p_moment, '+00:00') at time zone p_time_zone as timestamp);
end internal_local_of;

function internal_next_tick(p_schedule in t_schedule, p_after in timestamp)
return timestamp
is
-- purpose   Return the first tick of a schedule after a moment; null where there is none.
-- errors    RQ711
    -- The last microsecond of the year 9999, which is the last year that the server has.
    c_most   constant number := 253402300799999999;
    v_after  timestamp(6) := p_after;
    v_start  number;
    v_step   number;
    v_passed number;
    v_next   number;
    v_tick   timestamp(6);
begin
    if v_after < p_schedule.starts_at then
        v_after := p_schedule.starts_at - numtodsinterval(0.000001, 'second');
    end if;
    if p_schedule.cron is not null then
        v_tick := internal_next_cron(
            internal_parse_cron(p_schedule.cron), p_schedule.time_zone, v_after
        );
    else
        -- Count in microseconds from starts_at, so that the ticks do not drift.
        v_start := internal_microseconds(p_schedule.starts_at);
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := internal_microseconds(v_after) - v_start;
        v_next := v_start + (floor(v_passed / v_step) + 1) * v_step;
        if v_next <= c_most then
            v_tick := internal_from_microseconds(v_next);
        end if;
    end if;
    return case when v_tick > p_schedule.ends_at then null else v_tick end;
end internal_next_tick;

function internal_next_cron(
    p_bits      in varchar2,
    p_time_zone in varchar2,
    p_after     in timestamp
)
return timestamp
is
-- purpose   Return the first moment after p_after that a parsed cron expression names; null where the next ten years have none.
    c_day    constant interval day to second := numtodsinterval(26, 'hour');
    c_minute constant interval day to second := numtodsinterval(1, 'minute');
    v_local  timestamp(6);
    v_next   timestamp(6);
    v_from   timestamp(6);
    v_moment timestamp(6);
    v_change timestamp(6);
begin
    if substr(p_bits, 135, 1) = '1' then
        -- A minute and an hour that are given fire once for each local time.
        v_local := internal_to_minute(internal_local_of(p_after, p_time_zone));
        loop
            v_local := internal_next_cron_local(p_bits, v_local + c_minute);
            if v_local is null then
                return null;
            end if;
            v_moment := internal_local_to_utc(v_local, p_time_zone);
            if v_moment > p_after then
                return v_moment;
            end if;
        end loop;
    end if;

    -- Any other one fires in each hour that there is, also in one that the clocks show twice. A
    -- time is as far away as the clocks say unless they are changed on the way. The look for that
    -- goes no further than a day, because local times that do not match are none later either.
    v_from := internal_to_minute(p_after) + c_minute;
    loop
        v_local := internal_local_of(v_from, p_time_zone);
        v_next := internal_next_cron_local(p_bits, v_local);
        if v_next is null then
            return null;
        end if;
        v_moment := v_from + (v_next - v_local);
        v_change := internal_offset_change(
            v_from, least(v_moment, v_from + c_day), p_time_zone
        );
        if v_change is not null then
            v_from := v_change;
        elsif v_moment <= v_from + c_day then
            return v_moment;
        else
            v_from := greatest(v_from + c_day, v_moment - c_day);
        end if;
    end loop;
end internal_next_cron;

function internal_to_minute(p_moment in timestamp)
return timestamp
is
-- purpose   Return the moment at which the minute of a moment has begun.
-- differs   no such helper elsewhere: trunc makes a date of it, and dates may be rounded
begin
    return p_moment - numtodsinterval(extract(second from p_moment), 'second');
end internal_to_minute;

function internal_next_cron_local(p_bits in varchar2, p_from in timestamp)
return timestamp
is
-- purpose   Return the first minute from p_from on, in local time, that a parsed cron expression names; null where the next ten years have none.
    v_day        date := trunc(p_from, 'dd');
    v_end        constant date := v_day + 3660;
    v_hour       pls_integer := extract(hour from p_from);
    v_minute     pls_integer := extract(minute from p_from);
    v_weekday    pls_integer;
    v_is_day     boolean;
    v_is_weekday boolean;
    v_steps      pls_integer;
begin
    while v_day < v_end loop
        if substr(p_bits, 115 + extract(month from v_day), 1) = '0' then
            v_day := add_months(trunc(v_day, 'mm'), 1);
        else
            v_is_day := substr(p_bits, 84 + extract(day from v_day), 1) = '1';
            -- A week of ISO begins on Monday, whatever the session's territory; Sunday is 0 here.
            v_weekday := mod(v_day - trunc(v_day, 'iw') + 1, 7);
            v_is_weekday := substr(p_bits, 128 + v_weekday, 1) = '1';
            if v_is_day and v_is_weekday
               or substr(p_bits, 136, 1) = '1' and (v_is_day or v_is_weekday) then
                -- Look for the first hour, and in that hour for the first minute.
                while v_hour < 24 loop
                    v_steps := instr(substr(p_bits, 61 + v_hour, 24 - v_hour), '1');
                    exit when v_steps = 0;
                    if v_steps > 1 then
                        v_hour := v_hour + v_steps - 1;
                        v_minute := 0;
                    end if;
                    v_steps := instr(substr(p_bits, 1 + v_minute, 60 - v_minute), '1');
                    if v_steps > 0 then
                        return cast(v_day as timestamp) + numtodsinterval(
                            v_hour * 60 + v_minute + v_steps - 1, 'minute'
                        );
                    end if;
                    v_hour := v_hour + 1;
                    v_minute := 0;
                end loop;
            end if;
            v_day := v_day + 1;
        end if;
        v_hour := 0;
        v_minute := 0;
    end loop;
    return null;
end internal_next_cron_local;

function internal_local_to_utc(p_local in timestamp, p_time_zone in varchar2)
return timestamp
is
-- purpose   Return when the clocks of a time zone show a time: the first of two moments where they are set back over it, and the end of the gap where they are set forward over it.
    c_day constant interval day to second := numtodsinterval(1, 'day');
    -- The moment by the offset of the day before, and by that of the day after.
    v_before timestamp(6);
    v_after  timestamp(6);
begin
    -- Only moments are converted, because the server refuses a time in a gap (ORA-01878).
    v_before := p_local
        - numtodsinterval(internal_offset_of(p_local - c_day, p_time_zone), 'minute');
    if internal_local_of(v_before, p_time_zone) = p_local then
        return v_before;
    end if;
    v_after := p_local
        - numtodsinterval(internal_offset_of(p_local + c_day, p_time_zone), 'minute');
    if internal_local_of(v_after, p_time_zone) = p_local then
        return v_after;
    end if;
    return internal_offset_change(
        least(v_before, v_after), greatest(v_before, v_after), p_time_zone
    );
end internal_local_to_utc;

function internal_offset_of(p_moment in timestamp, p_time_zone in varchar2)
return number
is
-- purpose   Return how many minutes the clocks of a time zone are ahead of UTC at a moment.
-- differs   no such helper elsewhere: other engines have an expression for it
begin
    return (
        internal_microseconds(internal_local_of(p_moment, p_time_zone))
        - internal_microseconds(p_moment)
    ) / 60000000;
end internal_offset_of;

function internal_offset_change(
    p_from      in timestamp,
    p_to        in timestamp,
    p_time_zone in varchar2
)
return timestamp
is
-- purpose   Return the first moment after p_from, up to p_to, when the clocks of a time zone were changed; null where they were not. Both moments are whole minutes at most two days apart.
    v_offset constant number := internal_offset_of(p_from, p_time_zone);
    -- Minutes after p_from.
    v_low    pls_integer := 0;
    v_high   pls_integer :=
        (internal_microseconds(p_to) - internal_microseconds(p_from)) / 60000000;
    v_middle pls_integer;
begin
    if internal_offset_of(p_to, p_time_zone) = v_offset then
        return null;
    end if;
    while v_high - v_low > 1 loop
        v_middle := trunc((v_low + v_high) / 2);
        if internal_offset_of(p_from + numtodsinterval(v_middle, 'minute'), p_time_zone)
            = v_offset
        then
            v_low := v_middle;
        else
            v_high := v_middle;
        end if;
    end loop;
    return p_from + numtodsinterval(v_high, 'minute');
end internal_offset_change;

function internal_parse_cron(p_cron in varchar2)
return varchar2
is
-- purpose   Turn a cron expression into a text of 0 and 1: 60 for minutes, 24 hours, 31 days, 12 months, 7 weekdays from Sunday on, one for a minute and an hour that are given, one for a day and a weekday that are both given.
-- errors    RQ711
    c_star     constant pls_integer := ascii('*');
    v_word     raw(800);
    v_rest     varchar2(200 char);
    v_blank    pls_integer;
    v_fields   t_texts;
    v_weekdays varchar2(8 char);
begin
    if length(p_cron) <= 200 then
        -- Compare bytes, because texts are compared as the session's NLS_COMP and NLS_SORT say.
        v_word := utl_raw.cast_to_raw(lower(p_cron));
        v_rest := trim(
            replace(
                case
                    when v_word = utl_raw.cast_to_raw('@hourly') then '0 * * * *'
                    when v_word = utl_raw.cast_to_raw('@daily') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@midnight') then '0 0 * * *'
                    when v_word = utl_raw.cast_to_raw('@weekly') then '0 0 * * 0'
                    when v_word = utl_raw.cast_to_raw('@monthly') then '0 0 1 * *'
                    when v_word = utl_raw.cast_to_raw('@yearly') then '0 0 1 1 *'
                    when v_word = utl_raw.cast_to_raw('@annually') then '0 0 1 1 *'
                    else p_cron
                end,
                chr(9), chr(32)
            )
        );
    end if;
    while v_rest is not null loop
        v_blank := instr(v_rest || chr(32), chr(32));
        v_fields(v_fields.count + 1) := substr(v_rest, 1, v_blank - 1);
        v_rest := ltrim(substr(v_rest, v_blank));
    end loop;
    if v_fields.count <> 5 then
        internal_refuse(
            'cron must be five fields (minute, hour, day, month, weekday) or a word such as'
            || ' @daily, got ' || substr(p_cron, 1, 60)
        );
    end if;

    -- Sunday is 0 and 7.
    v_weekdays := internal_parse_cron_field(
        v_fields(5), 'weekday', 0, 7, 'sun mon tue wed thu fri sat '
    );
    return internal_parse_cron_field(v_fields(1), 'minute', 0, 59)
        || internal_parse_cron_field(v_fields(2), 'hour', 0, 23)
        || internal_parse_cron_field(v_fields(3), 'day', 1, 31)
        || internal_parse_cron_field(
            v_fields(4), 'month', 1, 12, 'jan feb mar apr may jun jul aug sep oct nov dec '
        )
        || case
            when substr(v_weekdays, 8, 1) = '1' then '1'
            else substr(v_weekdays, 1, 1)
        end
        || substr(v_weekdays, 2, 6)
        || case
            when ascii(v_fields(1)) = c_star or ascii(v_fields(2)) = c_star then '0'
            else '1'
        end
        || case
            when ascii(v_fields(3)) = c_star or ascii(v_fields(5)) = c_star then '0'
            else '1'
        end;
end internal_parse_cron;

function internal_parse_cron_field(
    p_field in varchar2,
    p_name  in varchar2,
    p_low   in number,
    p_high  in number,
    p_words in varchar2 default null
)
return varchar2
is
-- purpose   Turn a field of a cron expression into a text of 0 and 1, one for each value from p_low on. p_words are names of three letters for these values.
-- errors    RQ711
    v_rest  varchar2(1000 char) := lower(p_field) || ',';
    v_item  varchar2(1000 char);
    v_range varchar2(1000 char);
    v_slash pls_integer;
    v_dash  pls_integer;
    v_first number;
    v_last  number;
    v_step  number;
    v_bits  varchar2(60 char) := rpad('0', p_high - p_low + 1, '0');

    -- A value or a step is one or two digits. Compare the codes of characters, because a session
    -- can have its own order (NLS_SORT).
    function number_of(p_text in varchar2)
    return number
    is
        v_number number := 0;
    begin
        if p_text is null or length(p_text) > 2 then
            return null;
        end if;
        for i in 1 .. length(p_text) loop
            if ascii(substr(p_text, i, 1)) not between ascii('0') and ascii('9') then
                return null;
            end if;
            v_number := v_number * 10 + ascii(substr(p_text, i, 1)) - ascii('0');
        end loop;
        return v_number;
    end number_of;

    function value_of(p_text in varchar2)
    return number
    is
        v_place pls_integer;
    begin
        if p_text is null or length(p_text) <> 3 then
            return number_of(p_text);
        end if;
        for i in 1 .. 3 loop
            if ascii(substr(p_text, i, 1)) not between ascii('a') and ascii('z') then
                return null;
            end if;
        end loop;
        v_place := instr(p_words, p_text);
        return case when mod(v_place, 4) = 1 then p_low + trunc(v_place / 4) end;
    end value_of;
begin
    while v_rest is not null loop
        v_item := substr(v_rest, 1, instr(v_rest, ',') - 1);
        v_rest := substr(v_rest, instr(v_rest, ',') + 1);
        v_slash := coalesce(instr(v_item, '/'), 0);
        v_range := case when v_slash > 0 then substr(v_item, 1, v_slash - 1) else v_item end;
        v_step := case when v_slash > 0 then number_of(substr(v_item, v_slash + 1)) else 1 end;
        v_dash := coalesce(instr(v_range, '-'), 0);
        if ascii(v_range) = ascii('*') and length(v_range) = 1 then
            v_first := p_low;
            v_last := p_high;
        elsif v_dash > 0 then
            v_first := value_of(substr(v_range, 1, v_dash - 1));
            v_last := value_of(substr(v_range, v_dash + 1));
        else
            v_first := value_of(v_range);
            v_last := case when v_slash > 0 then p_high else v_first end;
        end if;
        if v_first is null
           or v_last is null
           or v_step is null
           or v_step = 0
           or v_first < p_low
           or v_last > p_high
           or v_first > v_last then
            internal_refuse(
                'the ' || p_name || ' of cron must be *, values from '
                || internal_number_text(p_low) || ' to ' || internal_number_text(p_high)
                || ', ranges or steps of these, got ' || substr(p_field, 1, 60)
            );
        end if;
        while v_first <= v_last loop
            v_bits := substr(v_bits, 1, v_first - p_low) || '1'
                || substr(v_bits, v_first - p_low + 2);
            v_first := v_first + v_step;
        end loop;
    end loop;
    return v_bits;
end internal_parse_cron_field;

function internal_read_schedule(p_queue_id in number, p_schedule_key in raw)
return t_schedule
is
-- purpose   Return a schedule; its queue_id is null where there is none.
-- differs   no such helper elsewhere: part of require_schedule and run_schedules
    v_schedule t_schedule;
    cursor keyed is
        select s.queue_id, s.schedule_key, s.schedule_name, s.cron, s.interval_seconds,
               s.time_zone, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type,
               s.priority, s.group_key, s.max_attempts, s.is_paused, s.next_run_at, s.headers,
               s.body, s.body_binary
        from rowq_schedule s
        where s.queue_id = p_queue_id
          and s.schedule_key = p_schedule_key;
begin
    open keyed;
    fetch keyed into v_schedule;
    close keyed;
    return v_schedule;
end internal_read_schedule;

function internal_require_schedule(p_queue_id in number, p_schedule_name in varchar2)
return t_schedule
is
-- purpose   Return a schedule and hold it to the end of the transaction; raise an error if there is none.
-- locks     the schedule row
-- errors    RQ702 RQ711
    v_key      raw(400);
    v_held     rowq_schedule.schedule_key%type;
    v_schedule t_schedule;
    cursor named is
        select s.schedule_key
        from rowq_schedule s
        where s.queue_id = p_queue_id
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
    v_schedule := internal_read_schedule(p_queue_id, v_held);
    return v_schedule;
end internal_require_schedule;

procedure internal_enqueue_tick(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule,
    p_tick       in timestamp,
    p_message_id out number,
    p_outcome    out varchar2
)
is
-- purpose   Add the message of a schedule to its queue; the outcome is enqueue's.
-- locks     as internal_store
-- errors    RQ701 RQ711
-- differs   does not call enqueue, which would move the savepoint of the routine that runs
    v_error varchar2(32767);
    v_new   t_new_messages;
begin
    -- Only the length of the body can have become wrong since the schedule was checked.
    v_error := internal_body_error(
        p_schedule.body, p_schedule.body_binary, p_queue.max_body_length
    );
    if v_error is not null then
        internal_refuse(v_error);
    end if;
    v_new(1) := internal_new_message(
        sys_extract_utc(systimestamp), 0, p_schedule.body, p_schedule.body_binary,
        p_schedule.message_type, internal_tick_headers(p_schedule, p_tick), p_schedule.priority,
        null, null, internal_tick_key(p_schedule), p_schedule.max_attempts,
        p_schedule.group_key, null, null, null
    );
    internal_store(p_queue.queue_id, p_queue_name, v_new);
    p_message_id := v_new(1).message_id;
    p_outcome := v_new(1).outcome;
end internal_enqueue_tick;

function internal_tick_key(p_schedule in t_schedule)
return varchar2
is
-- purpose   Return the dedup key of a schedule's messages; null where they may overlap.
-- differs   no such helper elsewhere: part of enqueue_tick
begin
    return case when p_schedule.overlap = 0 then 'schedule:' || p_schedule.schedule_name end;
end internal_tick_key;

function internal_run_schedules(p_queue in t_queue, p_queue_name in varchar2)
return number
is
-- purpose   Run the schedules of a queue that are due and that no other session is running; return how many messages were added.
-- locks     as internal_try_schedule and internal_run_due
    v_now    constant timestamp(6) := sys_extract_utc(systimestamp);
    v_keys   t_keys;
    v_is_due boolean;
    v_sent   pls_integer := 0;
begin
    select /*+ index_rs_asc(s rowq_schedule_pk) */ s.schedule_key
    bulk collect into v_keys
    from rowq_schedule s
    where s.queue_id = p_queue.queue_id
      and s.next_run_at <= v_now;
    for i in 1 .. v_keys.count loop
        v_is_due := internal_try_schedule(p_queue.queue_id, v_keys(i));
        if v_is_due then
            v_sent := v_sent + internal_run_due(
                p_queue, p_queue_name, internal_read_schedule(p_queue.queue_id, v_keys(i))
            );
        end if;
    end loop;
    return v_sent;
end internal_run_schedules;

function internal_try_schedule(p_queue_id in number, p_schedule_key in raw)
return boolean
is
-- purpose   Hold a schedule that is due to the end of the transaction; return false where another session holds it or has run it.
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
        where s.queue_id = p_queue_id
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

function internal_run_due(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule
)
return number
is
-- purpose   Add the messages of a schedule's due ticks, a hundred at most, and move it on; return how many were added.
-- locks     as internal_can_send and internal_enqueue_tick
-- commits   never; an error takes back what was done for this schedule
    -- ORA-01013: the user has cancelled the call.
    e_cancelled exception;
    pragma exception_init(e_cancelled, -1013);
    c_most_ticks constant pls_integer := 100;
    v_now        constant timestamp(6) := sys_extract_utc(systimestamp);
    v_late       constant timestamp(6) := v_now - numtodsinterval(60, 'second');
    v_tick       timestamp(6) := p_schedule.next_run_at;
    v_can_send   boolean;
    v_id         number;
    v_last_id    number;
    v_outcome    varchar2(20 char);
    v_error      varchar2(1000 char);
    v_code       pls_integer;
    v_count      pls_integer := 0;
    v_sent       pls_integer := 0;
begin
    savepoint rowq_schedule_part;
    while v_tick <= v_now and v_count < c_most_ticks loop
        if v_tick < v_late and p_schedule.missed = 'skip' then
            v_tick := internal_next_tick(p_schedule, v_late);
            continue;
        end if;
        v_can_send := internal_can_send(p_queue.queue_id, p_schedule, v_id);
        if not v_can_send then
            rollback to savepoint rowq_schedule_part;
            return 0;
        end if;
        v_outcome := 'duplicate';
        if v_id is null then
            internal_enqueue_tick(p_queue, p_queue_name, p_schedule, v_tick, v_id, v_outcome);
        end if;
        v_error := null;
        if v_outcome = 'enqueued' then
            v_sent := v_sent + 1;
            v_last_id := v_id;
        else
            v_error := 'message ' || internal_number_text(v_id)
                || ' of an earlier tick has not ended';
        end if;
        v_tick := internal_next_tick(
            p_schedule,
            case when v_tick < v_late and p_schedule.missed = 'once' then v_now else v_tick end
        );
        v_count := v_count + 1;
    end loop;

    update rowq_schedule s
    set s.next_run_at     = v_tick,
        s.last_run_at     = nvl2(v_last_id, v_now, s.last_run_at),
        s.last_message_id = coalesce(v_last_id, s.last_message_id),
        s.last_error      = v_error
    where s.queue_id = p_schedule.queue_id
      and s.schedule_key = p_schedule.schedule_key;
    return v_sent;
exception
    when e_cancelled then
        raise;
    when others then
        v_code := sqlcode;
        v_error := substr(sqlerrm, 1, 1000);
        rollback to savepoint rowq_schedule_part;
        -- What comes of locks or of the server's state is tried again by the next call. What would
        -- be refused again is noted, and its tick is given up: a refusal (ORA-20xxx), a value that
        -- does not fit (ORA-01400, 01438, 02290, 06502, 12899), a time zone that the server has
        -- lost (ORA-01882).
        if v_code between -20999 and -20000
           or v_code in (-1400, -1438, -2290, -6502, -12899, -1882) then
            internal_skip_tick(p_schedule, v_now, v_error);
        end if;
        return 0;
end internal_run_due;

function internal_can_send(
    p_queue_id in number,
    p_schedule in t_schedule,
    p_owner_id out number
)
return boolean
is
-- purpose   Return whether a tick can be run without a wait for the end of another transaction. p_owner_id is the message of an earlier tick that must end first, or null.
-- locks     the buckets of the group and of the dedup key, passed over when locked; a dedup row,
--           likewise, and given back
-- differs   this engine's own: elsewhere the wait of an insert has a limit
    v_group_key constant raw(800) := utl_raw.cast_to_raw(p_schedule.group_key);
    v_dedup_key constant raw(800) := utl_raw.cast_to_raw(internal_tick_key(p_schedule));
    v_is_free   boolean := true;
    v_held_id   rowq_dedup.message_id%type;
    cursor owner_row is
        select d.message_id
        from rowq_dedup d
        where d.queue_id = p_queue_id
          and d.dedup_key = v_dedup_key
        for update skip locked;
begin
    if v_group_key is not null then
        v_is_free := internal_lock_bucket(p_queue_id, v_group_key);
    end if;
    if v_dedup_key is not null and v_is_free then
        v_is_free := internal_lock_bucket(p_queue_id, v_dedup_key);
    end if;
    if v_dedup_key is null or not v_is_free then
        return v_is_free;
    end if;
    select max(d.message_id) into p_owner_id
    from rowq_dedup d
    where d.queue_id = p_queue_id
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

procedure internal_skip_tick(
    p_schedule in t_schedule,
    p_now      in timestamp,
    p_error    in varchar2
)
is
-- purpose   Note why a tick of a schedule made no message, and let the schedule go on with the next one after p_now.
-- locks     the schedule row, which is held
-- differs   no such helper elsewhere: part of run_due
    -- ORA-01882: the server does not know the time zone any more.
    e_no_zone exception;
    pragma exception_init(e_no_zone, -1882);
    c_line  constant varchar2(1 char) := chr(10);
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
    where s.queue_id = p_schedule.queue_id
      and s.schedule_key = p_schedule.schedule_key;
end internal_skip_tick;
