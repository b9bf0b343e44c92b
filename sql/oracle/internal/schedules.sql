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
--   run_due -> run_after_end -> next_tick, can_send, enqueue_tick, tick_key
--   can_send -> tick_key
--   skip_tick -> next_tick
--
-- Writes schedule. Only reads dedup.

procedure internal_check_schedule(p_schedule in t_schedule, p_queue in t_queue)
is
-- purpose   Refuse an invalid schedule.
-- errors    RQ711
    c_first constant timestamp(6) := timestamp '2000-01-01 00:00:00';
    c_last  constant timestamp(6) := timestamp '2100-01-01 00:00:00';
    v_now   constant timestamp(6) := sys_extract_utc(systimestamp);
    v_error varchar2(32767);
    v_cuts  t_numbers;
    -- With the longest message id.
    v_longest t_schedule := p_schedule;
begin
    v_longest.last_message_id := 9223372036854775807;
    internal_check_name('schedule_name', p_schedule.schedule_name);
    v_error := case
        when p_schedule.cron is null and p_schedule.interval_seconds is null
             or p_schedule.cron is not null and p_schedule.interval_seconds is not null
            then 'exactly one of cron and interval_seconds is required'
        -- Compare bytes: texts are compared by the session's NLS_COMP and NLS_SORT.
        when p_schedule.missed is null
             or utl_raw.cast_to_raw(p_schedule.missed) not in (
                 utl_raw.cast_to_raw('skip'), utl_raw.cast_to_raw('once'),
                 utl_raw.cast_to_raw('all')
             )
            then 'missed must be skip, once or all, got '
                || coalesce(substr(p_schedule.missed, 1, 100), 'null')
        when p_schedule.counts_from is null
             or utl_raw.cast_to_raw(p_schedule.counts_from) not in (
                 utl_raw.cast_to_raw('start'), utl_raw.cast_to_raw('end')
             )
            then 'counts_from must be start or end, got '
                || coalesce(substr(p_schedule.counts_from, 1, 100), 'null')
        when p_schedule.counts_from = 'end' and p_schedule.cron is not null
            then 'counts_from end requires interval_seconds'
        when p_schedule.overlap not in (0, 1)
            then 'overlap must be 0 or 1'
        when p_schedule.is_paused not in (0, 1)
            then 'is_paused must be 0 or 1'
        when p_schedule.starts_at not between c_first and c_last
             or p_schedule.ends_at not between c_first and c_last
            then 'starts_at and ends_at must be between the years 2000 and 2100'
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
                internal_tick_headers(v_longest, v_now), p_schedule.priority, null, null, null,
                p_schedule.max_attempts, p_schedule.group_key, null, null, null
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
        internal_refuse('the schedule has no tick within 10 years or before ends_at');
    end if;
end internal_check_schedule;

function internal_tick_headers(p_schedule in t_schedule, p_tick in timestamp)
return clob
is
-- purpose   Return a tick's headers: the schedule's own, its name, the tick, the message before.
-- differs   edits the text, so that numbers keep their digits
    c_blanks  constant varchar2(4 char) := chr(9) || chr(10) || chr(13) || chr(32);
    v_headers clob := '{';
    v_last    varchar2(4 char);
    v_name    varchar2(400 char);
begin
    if p_schedule.headers is not null then
        -- Drop the closing brace.
        v_headers := rtrim(p_schedule.headers, c_blanks);
        v_headers := rtrim(substr(v_headers, 1, length(v_headers) - 1), c_blanks);
    end if;
    v_last := substr(v_headers, -1);
    if ascii(v_last) <> ascii('{') then
        v_headers := v_headers || ', ';
    end if;
    -- A name has no control characters.
    v_name := replace(replace(p_schedule.schedule_name, '\', '\\'), '"', '\"');
    v_headers := v_headers || '"schedule": "' || v_name || '", "tick": "'
        || to_char(p_tick, 'yyyy-mm-dd"T"hh24:mi:ss.ff6"Z"', 'nls_calendar=gregorian') || '"';
    if p_schedule.counts_from = 'end' and p_schedule.last_message_id is not null then
        v_headers := v_headers || ', "previous_message_id": '
            || internal_number_text(p_schedule.last_message_id);
    end if;
    return v_headers || '}';
end internal_tick_headers;

procedure internal_check_time_zone(p_time_zone in varchar2)
is
-- purpose   Refuse a time zone that the server does not know.
-- errors    RQ711
    v_local timestamp(6);
begin
    begin
        -- A name begins with a letter, unlike an offset, and has no blank before an abbreviation
        -- such as CEST.
        if length(p_time_zone) <= 64
           and ascii(lower(p_time_zone)) between ascii('a') and ascii('z')
           and instr(p_time_zone, chr(32)) = 0 then
            v_local := internal_local_of(sys_extract_utc(systimestamp), p_time_zone);
        end if;
    exception
        when others then
            -- ORA-01882 means an unknown name; a malformed one may raise another ORA-018xx.
            if sqlcode not between -1899 and -1800 then
                raise;
            end if;
    end;
    if v_local is null then
        internal_refuse(
            'time_zone must be UTC or a name the server knows, such as Europe/Berlin, got '
            || coalesce(substr(p_time_zone, 1, 100), 'null')
        );
    end if;
end internal_check_time_zone;

function internal_local_of(p_time in timestamp, p_time_zone in varchar2)
return timestamp
is
-- purpose   Convert UTC to the local time of a time zone.
-- differs   elsewhere an expression
begin
    return cast(from_tz(p_time, '+00:00') at time zone p_time_zone as timestamp);
end internal_local_of;

function internal_next_tick(p_schedule in t_schedule, p_after in timestamp)
return timestamp
is
-- purpose   Return the first tick of a schedule after p_after, or null.
-- errors    RQ711
    -- The last microsecond of 9999, the server's last year.
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
        -- Count microseconds from starts_at, so that ticks do not drift.
        v_start := internal_microseconds(p_schedule.starts_at);
        v_step := round(p_schedule.interval_seconds * 1000000);
        v_passed := internal_microseconds(v_after) - v_start;
        v_next := v_start + case
            when p_schedule.counts_from = 'end' and v_passed >= 0 then v_passed + v_step
            else (floor(v_passed / v_step) + 1) * v_step
        end;
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
-- purpose   Return the first time after p_after that matches p_bits; null if none within 10 years.
    c_day    constant interval day to second := numtodsinterval(26, 'hour');
    c_minute constant interval day to second := numtodsinterval(1, 'minute');
    v_local  timestamp(6);
    v_next   timestamp(6);
    v_from   timestamp(6);
    v_time   timestamp(6);
    v_change timestamp(6);
begin
    if substr(p_bits, 135, 1) = '1' then
        -- With a fixed minute and hour, each local time fires once.
        v_local := internal_to_minute(internal_local_of(p_after, p_time_zone));
        loop
            v_local := internal_next_cron_local(p_bits, v_local + c_minute);
            if v_local is null then
                return null;
            end if;
            v_time := internal_local_to_utc(v_local, p_time_zone);
            if v_time > p_after then
                return v_time;
            end if;
        end loop;
    end if;

    -- Any other expression also fires in an hour that occurs twice. The next local time is as far
    -- away as the clocks say, unless the offset changes before it. Check 26 hours for a change,
    -- then go to 26 hours before that time: no change moves it further.
    v_from := internal_to_minute(p_after) + c_minute;
    loop
        v_local := internal_local_of(v_from, p_time_zone);
        v_next := internal_next_cron_local(p_bits, v_local);
        if v_next is null then
            return null;
        end if;
        v_time := v_from + (v_next - v_local);
        v_change := internal_offset_change(
            v_from, least(v_time, v_from + c_day), p_time_zone
        );
        if v_change is not null then
            v_from := v_change;
        elsif v_time <= v_from + c_day then
            return v_time;
        else
            v_from := greatest(v_from + c_day, v_time - c_day);
        end if;
    end loop;
end internal_next_cron;

function internal_to_minute(p_time in timestamp)
return timestamp
is
-- purpose   Return a time without its seconds.
-- differs   elsewhere an expression: trunc returns a date, which may be rounded
begin
    return p_time - numtodsinterval(extract(second from p_time), 'second');
end internal_to_minute;

function internal_next_cron_local(p_bits in varchar2, p_from in timestamp)
return timestamp
is
-- purpose   Return the first local minute from p_from on that matches p_bits; null if none within 10 years.
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
            -- An ISO week begins on Monday in every territory; Sunday is 0 here.
            v_weekday := mod(v_day - trunc(v_day, 'iw') + 1, 7);
            v_is_weekday := substr(p_bits, 128 + v_weekday, 1) = '1';
            if v_is_day and v_is_weekday
               or substr(p_bits, 136, 1) = '1' and (v_is_day or v_is_weekday) then
                -- Find the first hour, and in it the first minute.
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
-- purpose   Convert a local time to UTC: the first if it occurs twice, the end of the gap if it is skipped.
    c_day constant interval day to second := numtodsinterval(1, 'day');
    -- By the offset of the day before, and of the day after.
    v_before timestamp(6);
    v_after  timestamp(6);
begin
    -- Convert from UTC only: the server refuses a local time in a gap (ORA-01878).
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

function internal_offset_of(p_time in timestamp, p_time_zone in varchar2)
return number
is
-- purpose   Return the UTC offset of a time zone in minutes.
-- differs   elsewhere an expression
begin
    return (
        internal_microseconds(internal_local_of(p_time, p_time_zone))
        - internal_microseconds(p_time)
    ) / 60000000;
end internal_offset_of;

function internal_offset_change(
    p_from      in timestamp,
    p_to        in timestamp,
    p_time_zone in varchar2
)
return timestamp
is
-- purpose   Return the first change of the UTC offset after p_from, up to p_to: whole minutes; or null.
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
-- purpose   Parse a cron expression into 136 digits, 0 or 1.
-- errors    RQ711
    c_star     constant pls_integer := ascii('*');
    v_word     raw(800);
    v_rest     varchar2(200 char);
    v_blank    pls_integer;
    v_fields   t_texts;
    v_weekdays varchar2(8 char);
begin
    if length(p_cron) <= 200 then
        -- Compare bytes: texts are compared by the session's NLS_COMP and NLS_SORT.
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
            'cron must be 5 fields (minute, hour, day, month, weekday) or a word such as'
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
-- purpose   Parse a cron field into 0 and 1 for each value from p_low on; p_words has their short names.
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

    -- A value or a step has 1 or 2 digits. Compare character codes: a session can set NLS_SORT.
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
        v_position pls_integer;
    begin
        if p_text is null or length(p_text) <> 3 then
            return number_of(p_text);
        end if;
        for i in 1 .. 3 loop
            if ascii(substr(p_text, i, 1)) not between ascii('a') and ascii('z') then
                return null;
            end if;
        end loop;
        v_position := instr(p_words, p_text);
        return case when mod(v_position, 4) = 1 then p_low + trunc(v_position / 4) end;
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
                'the ' || p_name || ' field of cron must be *, a value from '
                || internal_number_text(p_low) || ' to ' || internal_number_text(p_high)
                || ', a range, a step or a list, got ' || substr(p_field, 1, 60)
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
-- purpose   Return a schedule; its queue_id is null if there is none.
-- differs   elsewhere part of require_schedule and run_schedules
    v_schedule t_schedule;
    cursor keyed is
        select s.queue_id, s.schedule_key, s.schedule_name, s.cron, s.interval_seconds,
               s.time_zone, s.missed, s.overlap, s.starts_at, s.ends_at, s.message_type,
               s.priority, s.group_key, s.max_attempts, s.is_paused, s.next_run_at,
               s.last_message_id, s.counts_from, s.is_running, s.headers, s.body, s.body_binary
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
-- purpose   Lock and return a schedule; raise an error if there is none.
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
        internal_refuse('schedule_name is required');
    end if;
    if length(p_schedule_name) <= 100 then
        v_key := utl_raw.cast_to_raw(p_schedule_name);
        open named;
        fetch named into v_held;
        close named;
    end if;
    if v_held is null then
        raise_application_error(
            -20702, 'RQ702 schedule_not_found: schedule "' || substr(p_schedule_name, 1, 100)
                || '" does not exist'
        );
    end if;
    -- Read it under the lock, to see other sessions' changes.
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
-- purpose   Enqueue the message of a locked schedule.
-- locks     as internal_store
-- errors    RQ701 RQ711
-- differs   does not call enqueue, which would move the calling routine's savepoint
    v_error varchar2(32767);
    v_new   t_new_messages;
begin
    -- Only max_body_length can have changed since the schedule was checked.
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
        p_schedule.group_key, null, null, null, null
    );
    internal_store(p_queue.queue_id, p_queue_name, v_new);
    p_message_id := v_new(1).message_id;
    p_outcome := v_new(1).outcome;
end internal_enqueue_tick;

function internal_tick_key(p_schedule in t_schedule)
return varchar2
is
-- purpose   Return the dedup key of a schedule's messages; null if they may overlap.
-- differs   elsewhere part of enqueue_tick
begin
    return case when p_schedule.overlap = 0 then 'schedule:' || p_schedule.schedule_name end;
end internal_tick_key;

function internal_run_schedules(p_queue in t_queue, p_queue_name in varchar2)
return number
is
-- purpose   Run the due schedules of a queue that no other session is running; return the number of messages.
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
-- purpose   Lock a due schedule; return false if another session has locked it or run it.
-- locks     the schedule row, skipped if locked
-- differs   elsewhere a cursor: a locking cursor does not survive a rollback here
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
-- purpose   Enqueue up to 100 due ticks of a schedule and set its next tick; return the number of messages.
-- locks     as internal_can_send and internal_enqueue_tick
-- commits   never; an error rolls back this schedule's work
    -- ORA-01013: the user cancelled the call.
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
    if p_schedule.counts_from = 'end' then
        return internal_run_after_end(p_queue, p_queue_name, p_schedule);
    end if;
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
        -- The next call retries errors of locks and of the server's state. An error that would come
        -- again is recorded and the tick skipped: a refusal (ORA-20xxx), a value that does not fit
        -- (ORA-01400, 01438, 02290, 06502, 12899), an unknown time zone (ORA-01882).
        if v_code between -20999 and -20000
           or v_code in (-1400, -1438, -2290, -6502, -12899, -1882) then
            internal_skip_tick(p_schedule, v_now, v_error);
        end if;
        return 0;
end internal_run_due;

function internal_run_after_end(
    p_queue      in t_queue,
    p_queue_name in varchar2,
    p_schedule   in t_schedule
)
return number
is
-- purpose   Enqueue the due tick of a schedule that counts from the end, or check for the end.
-- locks     as internal_can_send and internal_enqueue_tick
-- errors    RQ701 RQ711
    v_now       constant timestamp(6) := sys_extract_utc(systimestamp);
    v_dedup_key constant raw(800) := utl_raw.cast_to_raw(internal_tick_key(p_schedule));
    v_next      timestamp(6) := v_now + numtodsinterval(1, 'second');
    v_can_send  boolean;
    v_id        number;
    v_last_id   number;
    v_outcome   varchar2(20 char);
begin
    savepoint rowq_schedule_part;
    if p_schedule.is_running = 1 then
        select max(d.message_id) into v_id
        from rowq_dedup d
        where d.queue_id = p_queue.queue_id
          and d.dedup_key = v_dedup_key;
    else
        v_can_send := internal_can_send(p_queue.queue_id, p_schedule, v_id);
        if not v_can_send then
            rollback to savepoint rowq_schedule_part;
            return 0;
        end if;
        -- A dead message that was reset has the key: wait for it again.
        if v_id is null then
            internal_enqueue_tick(
                p_queue, p_queue_name, p_schedule, p_schedule.next_run_at, v_id, v_outcome
            );
            v_last_id := case when v_outcome = 'enqueued' then v_id end;
        end if;
    end if;
    if v_id is null then
        v_next := internal_next_tick(p_schedule, v_now);
    end if;

    update rowq_schedule s
    set s.next_run_at     = v_next,
        s.is_running      = nvl2(v_id, 1, 0),
        s.last_run_at     = nvl2(v_last_id, v_now, s.last_run_at),
        s.last_message_id = coalesce(v_last_id, s.last_message_id),
        s.last_error      = case when p_schedule.is_running = 1 then s.last_error end
    where s.queue_id = p_schedule.queue_id
      and s.schedule_key = p_schedule.schedule_key;
    return case when v_last_id is null then 0 else 1 end;
end internal_run_after_end;

function internal_can_send(
    p_queue_id in number,
    p_schedule in t_schedule,
    p_owner_id out number
)
return boolean
is
-- purpose   Return whether a tick can run without waiting. p_owner_id is an unfinished earlier message or null.
-- locks     the buckets of the group and of the dedup key, and, briefly, a dedup row; skips locked
--           ones
-- differs   elsewhere the insert waits with a timeout
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

    -- A locked row is being deleted with its message, and an insert would wait for that. Release
    -- the lock again, so that no worker waits for this transaction. A worker that is already
    -- waiting still waits: a rollback to a savepoint does not wake it.
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
-- purpose   Record why a schedule enqueued no message, and set its next tick after p_now.
-- locks     the schedule row, which the caller has locked
-- differs   elsewhere part of run_due
    -- ORA-01882: the server has lost the time zone.
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
            -- No next tick until the schedule is altered.
            v_tick := null;
    end;
    -- Remove the server's number before a refusal, such as ORA-20711.
    if instr(v_error, 'RQ') = 12 then
        v_error := substr(v_error, 12);
    end if;
    update rowq_schedule s
    set s.next_run_at = v_tick,
        s.last_error  = v_error
    where s.queue_id = p_schedule.queue_id
      and s.schedule_key = p_schedule.schedule_key;
end internal_skip_tick;
